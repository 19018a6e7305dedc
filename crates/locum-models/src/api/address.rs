//! Where an API is, and the headers of every request to it. What cannot be an address or a header is found out before
//! anything is sent.

use std::sync::{Mutex, PoisonError};

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Uri};
use locum_core::task::event::FailureKind;
use secrecy::ExposeSecret as _;

use crate::http::{Endpoint, host_of};
use crate::model::ModelError;

/// The address that every path is added to.
pub(super) struct Address {
    /// Without a slash at its end.
    base: String,
    /// A gateway may want a query, which comes after the path.
    query: String,
    host: String,
    /// What was asked for last: tasks ask at the same place again and again. Nothing awaits under this lock.
    last: Mutex<Option<(String, Uri)>>,
}

impl Address {
    /// An address with a scheme and a host.
    pub(super) fn parse(base_url: &str) -> Result<Self, ModelError> {
        let base_url = base_url.trim();
        let (base, query) = match base_url.split_once('?') {
            Some((base, query)) => (base, query.to_owned()),
            None => (base_url, String::new()),
        };
        let base = base.trim_end_matches('/').to_owned();
        let address = Self { base, query, host: String::new(), last: Mutex::default() };
        let url = address.join("/")?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
            return Err(wrong_address());
        }
        Ok(Self { host: host_of(&url), ..address })
    }

    /// The address of a path, which may have a query of its own. A version that both would name is named once.
    pub(super) fn with_path(&self, path: &str) -> Result<Uri, ModelError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, url)) = last.as_ref().filter(|(known, _)| known == path) {
            return Ok(url.clone());
        }
        let url = self.join(path)?;
        *last = Some((path.to_owned(), url.clone()));
        Ok(url)
    }

    fn join(&self, path: &str) -> Result<Uri, ModelError> {
        let version = path.split('/').nth(1).filter(|part| part.starts_with('v') && self.ends_with(part));
        let path = version.map_or(path, |version| &path[version.len() + 1..]);
        let separator = match (self.query.is_empty(), path.contains('?')) {
            (true, _) => "",
            (false, true) => "&",
            (false, false) => "?",
        };
        format!("{}{path}{separator}{}", self.base, self.query).parse().map_err(|_| wrong_address())
    }

    fn ends_with(&self, part: &str) -> bool {
        self.base.strip_suffix(part).is_some_and(|rest| rest.ends_with('/'))
    }

    /// The host, with the port where it is written.
    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

fn wrong_address() -> ModelError {
    let message = "the base URL is not an address such as https://api.openai.com/v1";
    ModelError::new(FailureKind::BadRequest, message)
}

/// The headers of every request. `key_header` carries the key, after a word such as `Bearer`; `common` are those of
/// the protocol.
pub(super) fn headers_of(
    endpoint: &Endpoint,
    key_header: (&'static str, &str),
    common: &[(&'static str, &'static str)],
) -> Result<HeaderMap, ModelError> {
    let wrong = |name: &str| {
        ModelError::new(FailureKind::BadRequest, format!("the header {name} has characters that no header has"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("locum/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in common {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let secret = |name: &str, text: &str| {
        let mut value = HeaderValue::from_str(text.trim()).map_err(|_| wrong(name))?;
        value.set_sensitive(true);
        Ok(value)
    };
    if let Some(key) = &endpoint.key {
        let (name, before) = key_header;
        let value = secret(name, &format!("{before}{}", key.expose_secret().trim()))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    for (name, text) in &endpoint.headers {
        let value = secret(name, text.expose_secret())?;
        let name: HeaderName = name.parse().map_err(|_| wrong(name))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_between_address_and_query_and_a_version_is_named_once() {
        for (base, path, expected) in [
            ("https://a/v1", "/chat/completions", "https://a/v1/chat/completions"),
            ("https://a/v1/", "/chat/completions", "https://a/v1/chat/completions"),
            ("https://a/x?y=1", "/chat/completions", "https://a/x/chat/completions?y=1"),
            ("https://a", "/v1/messages", "https://a/v1/messages"),
            ("https://a/v1", "/v1/messages", "https://a/v1/messages"),
            ("https://a/gateway-v1", "/v1/messages", "https://a/gateway-v1/v1/messages"),
            ("https://a?y=1", "/v1beta/models/m:s?alt=sse", "https://a/v1beta/models/m:s?alt=sse&y=1"),
        ] {
            let url = Address::parse(base).unwrap().with_path(path).unwrap();
            assert_eq!(url.to_string(), expected, "{base} {path}");
        }
    }
}
