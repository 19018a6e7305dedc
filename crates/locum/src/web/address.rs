//! An http address as a model writes it, read strictly: what two readers could understand differently is refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use locum_core::limits::WEB_ADDRESS_BYTES_MAX;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What stands in an address only in its encoded form.
const ENCODED: AsciiSet =
    CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'|').add(b'^');

/// Bytes of a host name.
const HOST_BYTES_MAX: usize = 253;

/// Ends of names that mean this machine or its neighbours, whatever they lead to.
const LOCAL_ENDS: [&str; 7] = ["localhost", "local", "localdomain", "internal", "intranet", "lan", "home.arpa"];

/// Where a page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    scheme: Scheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
    /// The path and the query.
    pub(crate) target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    /// A name, in small letters and without a dot at its end.
    Name(String),
    /// An address that is spelled out.
    Literal(IpAddr),
}

impl Host {
    /// Reads a host as it stands in an address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or("its bracket is not closed")?;
            if inner.contains('%') {
                return Err("an address with a zone is never public".to_owned());
            }
            let literal = inner.parse::<Ipv6Addr>().map_err(|_| format!("`{inner}` is not an IPv6 address"))?;
            return Ok(Self::Literal(IpAddr::V6(literal)));
        }
        if !text.is_ascii() {
            return Err("its host has letters beyond ASCII: write it as xn--…".to_owned());
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() {
            return Err("it names no host".to_owned());
        }
        let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_accepted);
        if name.len() > HOST_BYTES_MAX || !name.split('.').all(is_label) {
            return Err(format!("`{}` is not a host name", name.chars().take(80).collect::<String>()));
        }
        if let Ok(literal) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Literal(IpAddr::V4(literal)));
        }
        if is_number(name.rsplit('.').next().unwrap_or_default()) {
            return Err(format!("`{name}` is a number in a form that programs read differently: write a.b.c.d"));
        }
        Ok(Self::Name(name))
    }

    /// The host as it is looked up or matched: an IPv6 address without brackets.
    pub(crate) fn bare(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Literal(literal) => literal.to_string(),
        }
    }

    /// Why a name cannot be one of the public web, whatever it leads to.
    pub(crate) fn is_local_name(&self) -> bool {
        let Self::Name(name) = self else { return false };
        let ends = |end: &str| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        !name.contains('.') || LOCAL_ENDS.into_iter().any(ends)
    }
}

/// Whether the last part of a host makes all of it a number for somebody: `1`, `017`, `0x7f`.
fn is_number(label: &str) -> bool {
    let hexadecimal =
        label.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Literal(IpAddr::V4(literal)) => write!(f, "{literal}"),
            Self::Literal(IpAddr::V6(literal)) => write!(f, "[{literal}]"),
        }
    }
}

impl Address {
    /// Reads an address. What is wrong with it is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_matches([' ', '\t', '\n']);
        if text.len() > WEB_ADDRESS_BYTES_MAX {
            return Err(format!("it has {} bytes; {WEB_ADDRESS_BYTES_MAX} are the most", text.len()));
        }
        if text.contains(|char: char| char.is_control() || char == '\\') {
            return Err("it has control characters or a backslash in it".to_owned());
        }
        let (scheme, rest) = text.split_once("://").ok_or("it must begin with https:// or http://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err("only https:// and http:// addresses can be fetched".to_owned()),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err("it has a name or password before the host, which is not sent".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(scheme.port());
        Ok(Self { scheme, host: Host::parse(host)?, port, target: target_of(target) })
    }

    /// Where a redirect of this address leads to.
    pub(crate) fn join(&self, location: &str) -> Result<Self, String> {
        let location = location.trim();
        let before_path = &location[..location.find(['/', '?', '#']).unwrap_or(location.len())];
        if before_path.contains(':') {
            return Self::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme.as_str()));
        }
        let path = self.target.split('?').next().unwrap_or("/");
        let target = if location.starts_with('/') {
            location.to_owned()
        } else if location.is_empty() || location.starts_with('?') || location.starts_with('#') {
            format!("{path}{location}")
        } else {
            format!("{}/{location}", path.rsplit_once('/').map_or("", |(directory, _)| directory))
        };
        Self::parse(&format!("{}{target}", self.origin()))
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// The host, and the port where it is not the usual one: what a `Host` header says.
    pub(crate) fn authority(&self) -> String {
        if self.port == self.scheme.port() { self.host.to_string() } else { format!("{}:{}", self.host, self.port) }
    }

    fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The host and the port of an authority, if it names one.
pub(crate) fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let after_host = match (authority.starts_with('['), authority.rfind(']')) {
        (true, None) => return Err("its bracket is not closed".to_owned()),
        (_, bracket) => bracket.map_or(0, |bracket| bracket + 1),
    };
    let Some(colon) = authority[after_host..].find(':') else { return Ok((authority, None)) };
    let (host, port) = (&authority[..after_host + colon], &authority[after_host + colon + 1..]);
    if port.is_empty() {
        return Ok((host, None));
    }
    let number = port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
    let number = number.filter(|number| *number != 0).ok_or("its port is not a number from 1 to 65535")?;
    Ok((host, Some(number)))
}

/// The path and the query as they are sent: without the fragment, without `.` and `..`, encoded where they must be.
fn target_of(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    // A path that ends with a directory says so.
    if path.ends_with("/.") || path.ends_with("/..") {
        parts.push("");
    }
    let whole = format!("/{}{}", parts.join("/"), query.map_or_else(String::new, |query| format!("?{query}")));
    utf8_percent_encode(&whole, &ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, expected) in [
            ("https://Example.com", "https://example.com/"),
            (" http://a.example:80/x ", "http://a.example/x"),
            ("https://a.example:8443", "https://a.example:8443/"),
            ("https://a.example./b/../c/./d?e=f#g", "https://a.example/c/d?e=f"),
            ("https://a.example?q=a b", "https://a.example/?q=a%20b"),
            ("https://a.example/ä/%20", "https://a.example/%C3%A4/%20"),
            ("HTTPS://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
            ("http://a.example:/", "http://a.example/"),
            ("http://a.example/x/..", "http://a.example/"),
            ("http://1.2.3.example/", "http://1.2.3.example/"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), expected);
        }
        for (text, why) in [
            ("a.example", "must begin with https://"),
            ("http:/a.example", "must begin with https://"),
            ("ftp://a.example", "only https:// and http://"),
            ("file:///etc/passwd", "only https:// and http://"),
            ("http://", "names no host"),
            ("http:///x", "names no host"),
            ("http://user:word@a.example", "before the host"),
            ("http://a.example\\@b.example", "backslash"),
            ("http://a.ex\tample", "control characters"),
            ("http://a.example:0", "port"),
            ("http://a.example:65536", "port"),
            ("http://a.example:+80", "port"),
            ("http://a..example", "not a host name"),
            ("http://a%2eexample", "not a host name"),
            ("http://ä.example", "xn--"),
            ("http://[::1", "bracket"),
            ("http://[fe80::1%25eth0]", "zone"),
            ("http://[1.2.3.4]", "not an IPv6 address"),
            ("http://0x7f.1", "is a number"),
            ("http://2130706433", "is a number"),
            ("http://127.0.0.01", "is a number"),
            (&format!("http://a.example/{}", "x".repeat(5_000)), "bytes"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn redirects_are_resolved() {
        let base = Address::parse("https://a.example:1/b/c?d").unwrap();
        for (location, expected) in [
            ("https://z.example/x", "https://z.example/x"),
            ("//z.example/x", "https://z.example/x"),
            ("/x?y", "https://a.example:1/x?y"),
            ("x", "https://a.example:1/b/x"),
            ("../x", "https://a.example:1/x"),
            ("?y", "https://a.example:1/b/c?y"),
            ("", "https://a.example:1/b/c"),
            ("x?u=http://y", "https://a.example:1/b/x?u=http://y"),
        ] {
            assert_eq!(base.join(location).unwrap().to_string(), expected);
        }
        for location in ["javascript:alert(1)", "file:///etc/passwd", "http:x", "mailto:a@b"] {
            assert!(base.join(location).is_err(), "{location}");
        }
    }

    #[test]
    fn names_of_neighbours_are_known() {
        for (name, expected) in [
            ("localhost", true),
            ("a.localhost.", true),
            ("printer", true),
            ("metadata.google.internal", true),
            ("printer.local", true),
            ("a.home.arpa", true),
            ("example.com", false),
            ("notlocal.example", false),
            ("mylocal", true),
            ("x.mylocal", false),
        ] {
            assert_eq!(Host::parse(name).unwrap().is_local_name(), expected, "{name}");
        }
    }
}
