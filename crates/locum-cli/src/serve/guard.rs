//! Who may speak to the server at all. Everything here is decided from the head of a request, before its body is read:
//! the name it was sent to, the page that sent it, and the token.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use locum::protocol::Refusal;

use super::answer::Refused;
use super::dashboard;
use super::token::Token;

/// What may be read without a token: it tells nothing but that a server is there.
fn is_open(path: &str) -> bool {
    path == "/healthz" || dashboard::is_part(path)
}

/// The rules of one server.
pub(super) struct Guard {
    token: Token,
    /// The names that it is known by, without a port: a page of another name that was made to resolve to this machine
    /// is not one of them.
    hosts: Vec<String>,
}

impl Guard {
    pub(super) fn new(token: Token, address: SocketAddr, further: Vec<String>) -> Self {
        let mut hosts: Vec<String> = further.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        let ip = address.ip();
        if !ip.is_unspecified() {
            hosts.push(shown(ip));
        }
        if ip.is_loopback() || ip.is_unspecified() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        Self { token, hosts }
    }

    fn judge(&self, path: &str, headers: &HeaderMap) -> Result<(), Refused> {
        let forbidden = |message: String| Refused::with(StatusCode::FORBIDDEN, Refusal::invalid(message));
        let Some(host) = single(headers, HOST).map(str::to_ascii_lowercase) else {
            return Err(Refused::with(StatusCode::BAD_REQUEST, Refusal::invalid("the request names no one host")));
        };
        if !self.hosts.iter().any(|known| known == without_port(&host)) {
            return Err(forbidden(format!("this server is not called `{}`", shortened(&host))));
        }
        if headers.contains_key(ORIGIN) {
            let origin = single(headers, ORIGIN).map(str::to_ascii_lowercase).unwrap_or_default();
            let own = [format!("http://{host}"), format!("https://{host}")];
            if !own.contains(&origin) {
                return Err(forbidden(format!("pages of `{}` may not use this server", shortened(&origin))));
            }
        }
        if is_open(path) || self.token.is_shown_by(single(headers, AUTHORIZATION)) {
            return Ok(());
        }
        let refusal = Refusal::invalid("the token is missing or wrong");
        let hint = "send it as `Authorization: Bearer …`; the server says at its start where it is";
        Err(Refused::with(StatusCode::UNAUTHORIZED, refusal.hint(hint)))
    }
}

/// Lets a request through, or refuses it.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.judge(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => {
            let mut response = refused.into_response();
            if response.status() == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            response
        }
    }
}

/// A header that is there once, as text.
pub(super) fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    if values.next().is_some() { None } else { first.to_str().ok() }
}

fn shown(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The last part of an address in brackets is none.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    /// What a head is answered: `ok`, or the status.
    fn judged(address: &str, path: &str, head: &[(&'static str, &str)]) -> String {
        let guard = Guard::new(Token::parse(TOKEN).unwrap(), address.parse().unwrap(), vec!["Box.example".to_owned()]);
        let mut headers = HeaderMap::new();
        for (name, value) in head {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        match guard.judge(path, &headers) {
            Ok(()) => "ok".to_owned(),
            Err(refused) => refused.into_response().status().as_u16().to_string(),
        }
    }

    #[test]
    fn a_request_comes_to_a_known_name_from_its_own_page_with_the_token() {
        let bearer = format!("Bearer {TOKEN}");
        let (local, token) = (("host", "localhost:7411"), ("authorization", bearer.as_str()));
        for (expected, head) in [
            ("ok", vec![local, token]),
            ("ok", vec![("host", "127.0.0.1"), token]),
            ("ok", vec![("host", "[::1]:9"), token]),
            ("ok", vec![("host", "LOCALHOST:1"), token]),
            ("ok", vec![("host", "box.example"), token]),
            ("400", vec![token]),
            ("400", vec![local, local, token]),
            ("403", vec![("host", "evil.example"), token]),
            ("403", vec![("host", "localhost.evil.example"), token]),
            ("403", vec![("host", "[::1]evil:80"), token]),
            ("403", vec![("host", ""), token]),
            ("ok", vec![local, ("origin", "http://localhost:7411"), token]),
            ("403", vec![local, ("origin", "http://localhost:7412"), token]),
            ("403", vec![local, ("origin", "http://evil.example"), token]),
            ("403", vec![local, ("origin", "null"), token]),
            ("403", vec![local, ("origin", ""), token]),
            ("403", vec![local, ("origin", "http://localhost:7411"), ("origin", "http://localhost:7411"), token]),
            ("401", vec![local]),
            ("401", vec![local, token, token]),
            ("401", vec![local, ("authorization", "Bearer ")]),
            ("401", vec![local, ("authorization", TOKEN)]),
            ("401", vec![local, ("authorization", "Bearer 0123456789abcdef0123456789abcdee")]),
            ("401", vec![local, ("authorization", "Basic MDEyMw==")]),
        ] {
            assert_eq!(judged("127.0.0.1:7411", "/v1/requests", &head), expected, "{head:?}");
        }
        for open in ["/healthz", "/", "/dashboard/app.js"] {
            assert_eq!(judged("127.0.0.1:7411", open, &[local]), "ok");
        }
        for shut in ["/dashboard", "/dashboard/", "/dashboard/other.js", "//", "/metrics"] {
            assert_eq!(judged("127.0.0.1:7411", shut, &[local]), "401", "{shut}");
        }
        assert_eq!(judged("127.0.0.1:7411", "/healthz", &[("host", "evil.example")]), "403");
        assert_eq!(judged("192.0.2.7:80", "/x", &[("host", "192.0.2.7:80"), token]), "ok");
        assert_eq!(judged("192.0.2.7:80", "/x", &[("host", "localhost:80"), token]), "403");
    }
}
