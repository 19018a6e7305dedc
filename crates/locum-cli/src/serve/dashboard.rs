//! The dashboard: a page and its parts, as they were compiled in. They hold nothing of any task, so no token is needed
//! for them; what they show they read through the same routes as everybody, with the token.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, routing::get};

/// Scripts and styles of this server alone, and no connection to another one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// One file of the page.
struct Part {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file, by the address that the page asks for it.
const PARTS: &[Part] = &[
    Part { path: "/", kind: HTML, text: include_str!("dashboard/index.html") },
    Part { path: "/dashboard/style.css", kind: STYLE, text: include_str!("dashboard/style.css") },
    Part { path: "/dashboard/app.js", kind: SCRIPT, text: include_str!("dashboard/app.js") },
    Part { path: "/dashboard/api.js", kind: SCRIPT, text: include_str!("dashboard/api.js") },
    Part { path: "/dashboard/dom.js", kind: SCRIPT, text: include_str!("dashboard/dom.js") },
    Part { path: "/dashboard/tasks.js", kind: SCRIPT, text: include_str!("dashboard/tasks.js") },
    Part { path: "/dashboard/detail.js", kind: SCRIPT, text: include_str!("dashboard/detail.js") },
    Part { path: "/dashboard/views.js", kind: SCRIPT, text: include_str!("dashboard/views.js") },
];

/// Whether an address is part of the page.
pub(super) fn is_part(path: &str) -> bool {
    PARTS.iter().any(|part| part.path == path)
}

/// The routes of the page.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    PARTS.iter().fold(Router::new(), |router, part| router.route(part.path, get(async || show(part))))
}

fn show(part: &Part) -> Response {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (CONTENT_TYPE, HeaderValue::from_static(part.kind)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, part.text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_that_the_page_names_is_there_and_nothing_is_asked_of_others() {
        for part in PARTS {
            let named =
                part.text.split(['"', '\'']).filter(|word| word.starts_with("./") || word.starts_with("/dashboard/"));
            for name in named {
                let path = name.replacen("./", "/dashboard/", 1);
                assert!(is_part(&path), "{} names {name}", part.path);
            }
            let foreign = part.text.match_indices("http").map(|(at, _)| &part.text[at..]);
            let foreign: Vec<&str> = foreign.filter(|text| !text.starts_with("http://www.w3.org/2000/svg")).collect();
            assert!(foreign.is_empty(), "{}: {foreign:?}", part.path);
            assert!(!part.text.contains("innerHTML") && !part.text.contains("style=\""), "{}", part.path);
        }
    }
}
