//! The hosts that an agent's commands may reach: `docs.rs`, `*.crates.io`, `10.0.0.5:8080`, or `*` for the whole public
//! internet.

use core::net::Ipv6Addr;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One entry of a `network` list. It is written down as its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    name: Name,
    /// The only port, if one is named.
    port: Option<u16>,
}

/// Which hosts are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    /// All of them.
    Every,
    /// Those below this name.
    Below(String),
    /// This one.
    One(String),
}

impl HostPattern {
    /// Reads an entry. What is wrong with it is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{}` is not a host: {why}", text.chars().take(80).collect::<String>());
        let text = text.trim().to_ascii_lowercase();
        if text.contains("://") || text.contains('/') {
            return Err(wrong("leave out https:// and the path"));
        }
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((_, rest)) if !rest.is_empty() && !rest.starts_with(':') => {
                return Err(wrong("write a name, `*.` and a name, or an address"));
            }
            Some((host, rest)) => (host.to_owned(), rest.strip_prefix(':')),
            None if text.matches(':').count() > 1 => (text.clone(), None),
            None => text.split_once(':').map_or((text.clone(), None), |(host, port)| (host.to_owned(), Some(port))),
        };
        let port = port
            .map(|port| port.parse().ok().filter(|port| *port != 0))
            .map(|port: Option<u16>| port.ok_or_else(|| wrong("its port must be a number from 1 to 65535")));
        let port = port.transpose()?;
        let is_label = |label: &str| {
            let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(is_accepted)
        };
        let is_name = |name: &str| name.len() <= 253 && name.split('.').all(is_label);
        let bare = host.strip_suffix('.').unwrap_or(&host);
        let name = match bare.strip_prefix("*.") {
            _ if host == "*" => Name::Every,
            Some(below) if is_name(below) => Name::Below(below.to_owned()),
            None if is_name(bare) => Name::One(bare.to_owned()),
            Some(_) | None => match bare.parse::<Ipv6Addr>() {
                Ok(address) => Name::One(address.to_string()),
                Err(_) => return Err(wrong("write a name, `*.` and a name, or an address")),
            },
        };
        Ok(Self { name, port })
    }

    /// Whether a connection to this host is meant. The host is in small letters, an IPv6 address without brackets.
    pub fn fits(&self, host: &str, port: u16) -> bool {
        let is_below = |below: &str| host.strip_suffix(below).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'));
        let is_meant = match &self.name {
            Name::Every => true,
            Name::Below(below) => is_below(below),
            Name::One(name) => name == host,
        };
        is_meant && self.port.is_none_or(|only| only == port)
    }

    /// Whether it names this machine itself.
    pub fn names_machine(&self) -> bool {
        matches!(&self.name, Name::One(name) if name == "localhost" || name.starts_with("127.") || name == "::1")
    }

    /// Whether it names one host and no other: then that host may be one that is not public.
    pub fn names_one(&self) -> bool {
        matches!(self.name, Name::One(_))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.name {
            Name::Every => "*".to_owned(),
            Name::Below(below) => format!("*.{below}"),
            Name::One(name) if name.contains(':') && self.port.is_some() => format!("[{name}]"),
            Name::One(name) => name.clone(),
        };
        f.write_str(&name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text).unwrap()
    }

    #[test]
    fn entries_are_read_and_written() {
        for text in ["docs.rs", "*.crates.io", "*", "10.0.0.5:8080", "localhost", "::1", "[::1]:80", "a_b.example:443"]
        {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern(" Docs.RS. ").to_string(), "docs.rs");
        assert_eq!(pattern("[0:0::0001]").to_string(), "::1");
        for (text, why) in [
            ("", "write a name"),
            ("https://docs.rs", "leave out https://"),
            ("docs.rs/x", "leave out https://"),
            ("docs.rs:0", "its port"),
            ("docs.rs:x", "its port"),
            ("*.", "write a name"),
            ("a.*.b", "write a name"),
            ("a b", "write a name"),
            ("[::1]x", "write a name"),
            ("user@host", "write a name"),
        ] {
            let error = HostPattern::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn hosts_fit_as_they_are_named() {
        for (text, host, port, expected) in [
            ("docs.rs", "docs.rs", 443, true),
            ("docs.rs", "a.docs.rs", 443, false),
            ("docs.rs:443", "docs.rs", 80, false),
            ("*.docs.rs", "a.docs.rs", 80, true),
            ("*.docs.rs", "a.b.docs.rs", 80, true),
            ("*.docs.rs", "docs.rs", 80, false),
            ("*.docs.rs", "evildocs.rs", 80, false),
            ("*", "anything.example", 1, true),
            ("::1", "::1", 1, true),
        ] {
            assert_eq!(pattern(text).fits(host, port), expected, "{text} {host}");
        }
    }
}
