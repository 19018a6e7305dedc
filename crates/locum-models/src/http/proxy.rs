//! Through which proxy https addresses are reached.

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use secrecy::SecretString;

/// Through which proxy https addresses are reached, as the variables of these names say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    /// `HTTPS_PROXY`: an `http://` address, with a name and password where the proxy wants them.
    pub https_proxy: Option<String>,
    /// `NO_PROXY`: hosts, domains and networks that are reached directly.
    pub no_proxy: Option<String>,
}

/// A proxy that stands between this machine and a host.
#[derive(Debug, Clone)]
pub struct ProxyServer {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it wants to be told: the value of `Proxy-Authorization`.
    pub authorization: Option<SecretString>,
}

impl Proxy {
    /// The proxy through which an https host is reached; none if it is reached directly.
    ///
    /// # Errors
    ///
    /// The proxy is of a kind that cannot be used; the text says what to do.
    pub fn before(&self, host: &str) -> Result<Option<ProxyServer>, String> {
        let bracketed = if host.contains(':') { format!("https://[{host}]/") } else { format!("https://{host}/") };
        let Ok(uri) = bracketed.parse::<Uri>() else { return Ok(None) };
        let Some(proxy) = usable(&self.matcher(), &uri)? else { return Ok(None) };
        let authorization = proxy.basic_auth().and_then(|value| value.to_str().ok()).map(SecretString::from);
        let host = proxy.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Ok(Some(ProxyServer { host, port: proxy.uri().port_u16().unwrap_or(80), authorization }))
    }

    pub(super) fn matcher(&self) -> Matcher {
        let value = |value: &Option<String>| value.clone().unwrap_or_default();
        Matcher::builder().https(value(&self.https_proxy)).no(value(&self.no_proxy)).build()
    }
}

/// The proxy before an address, if it is one that can be used.
pub(super) fn usable(matcher: &Matcher, uri: &Uri) -> Result<Option<Intercept>, String> {
    let Some(proxy) = matcher.intercept(uri) else { return Ok(None) };
    if proxy.uri().scheme_str() == Some("http") {
        return Ok(Some(proxy));
    }
    Err(format!(
        "the proxy {} cannot be used: only http:// proxies are supported; change HTTPS_PROXY, or add the host to NO_PROXY",
        super::host_of(proxy.uri())
    ))
}
