//! What a request says beside its body: parameters of its address, each taken once and none left over, and the session.

use std::collections::BTreeMap;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use locum::SessionId;
use locum::protocol::Refusal;
use percent_encoding::percent_decode_str;

use super::answer::Refused;
use super::guard::single;

/// The header that names a session, in requests and in answers.
pub(crate) const SESSION_HEADER: &str = "locum-session";

/// The parameters of an address, and the session that it or a header names.
#[derive(Debug)]
pub(super) struct Parameters {
    left: BTreeMap<String, String>,
    header: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Parameters {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refused> {
        let mut left = BTreeMap::new();
        for pair in parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name)?;
            if left.insert(name.clone(), decoded(value)?).is_some() {
                return Err(Refusal::invalid(format!("the parameter `{}` is there twice", shortened(&name))).into());
            }
        }
        let header = match parts.headers.contains_key(SESSION_HEADER) {
            false => None,
            true => match single(&parts.headers, axum::http::HeaderName::from_static(SESSION_HEADER)) {
                Some(text) => Some(text.to_owned()),
                None => return Err(Refusal::invalid("the request names no one session").into()),
            },
        };
        Ok(Self { left, header })
    }
}

impl Parameters {
    /// Takes a parameter out.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.left.remove(name)
    }

    /// Takes a parameter out that must be of a kind.
    pub(super) fn parsed<T: std::str::FromStr>(&mut self, name: &str, kind: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let wrong = |_| Refusal::invalid(format!("the parameter `{name}` must be {kind}"));
        text.parse().map(Some).map_err(wrong)
    }

    /// Takes out how much is wanted, from one to a most.
    pub(super) fn limit(&mut self, default: usize, most: usize) -> Result<usize, Refusal> {
        match self.parsed("limit", "a number from 1")? {
            Some(0) => Err(Refusal::invalid("the parameter `limit` must be a number from 1")),
            limit => Ok(limit.unwrap_or(default).min(most)),
        }
    }

    /// Takes out the session that is named, by the header or by the parameter.
    pub(super) fn session(&mut self) -> Result<Option<SessionId>, Refusal> {
        let named = match (self.header.take(), self.take("session")) {
            (Some(header), Some(parameter)) if header != parameter => {
                return Err(Refusal::invalid("the header and the parameter name two sessions"));
            }
            (header, parameter) => header.or(parameter),
        };
        named.map(|id| SessionId::parse(&id).map_err(|error| Refusal::invalid(error.to_string()))).transpose()
    }

    /// Refuses what nobody took.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(name) => Err(Refusal::invalid(format!("there is no parameter `{}` here", shortened(name)))),
        }
    }
}

/// The one name in a path.
pub(super) struct Named(pub(super) String);

impl<S: Sync + Send> FromRequestParts<S> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(Refusal::invalid("the address is not UTF-8").into()),
        }
    }
}

fn decoded(text: &str) -> Result<String, Refusal> {
    let text = text.replace('+', " ");
    match percent_decode_str(&text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Refusal::invalid("the address is not UTF-8")),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
