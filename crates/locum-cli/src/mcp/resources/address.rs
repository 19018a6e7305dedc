//! Addresses of resources: `locum://tasks/t_01/result?offset=4000` and its like, read and written.

use std::fmt;
use std::str::FromStr;

use locum::ids::Seq;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const SCHEME: &str = "locum://";

/// What a name may hold as it is; the rest is encoded.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b':');

/// What can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) enum Address {
    Agent(String),
    Task(String),
    Transcript(String),
    Result(String),
    /// A value of the shared context, by its key.
    Value(String),
}

/// Where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) struct Spot {
    pub(in crate::mcp) address: Address,
    /// After which entry of a log.
    pub(in crate::mcp) after: Seq,
    /// From which character on.
    pub(in crate::mcp) offset: usize,
}

impl Spot {
    /// The same thing from another character on.
    pub(super) fn at(&self, offset: usize) -> Self {
        Self { offset, ..self.clone() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (folder, name, part) = match self {
            Self::Agent(name) => ("agents", name, ""),
            Self::Task(name) => ("tasks", name, ""),
            Self::Transcript(name) => ("tasks", name, "/transcript"),
            Self::Result(name) => ("tasks", name, "/result"),
            Self::Value(key) => ("context", key, ""),
        };
        write!(f, "{SCHEME}{folder}/{}{part}", utf8_percent_encode(name, PLAIN))
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, after, offset } = self;
        match (after, offset) {
            (0, 0) => write!(f, "{address}"),
            (0, offset) => write!(f, "{address}?offset={offset}"),
            (after, 0) => write!(f, "{address}?after={after}"),
            (after, offset) => write!(f, "{address}?after={after}&offset={offset}"),
        }
    }
}

impl FromStr for Spot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let nothing = || format!("there is no resource `{}`", text.chars().take(200).collect::<String>());
        let rest = text.strip_prefix(SCHEME).ok_or_else(nothing)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parts: Vec<&str> = path.split('/').collect();
        let decoded = |name: &str| match percent_decode_str(name).decode_utf8() {
            Ok(name) if !name.is_empty() => Ok(name.into_owned()),
            _ => Err(nothing()),
        };
        let address = match parts.as_slice() {
            ["agents", name] => Address::Agent(decoded(name)?),
            ["tasks", name] => Address::Task(decoded(name)?),
            ["tasks", name, "transcript"] => Address::Transcript(decoded(name)?),
            ["tasks", name, "result"] => Address::Result(decoded(name)?),
            ["context", key] => Address::Value(decoded(key)?),
            _ => return Err(nothing()),
        };
        let mut spot = Self { address, after: 0, offset: 0 };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("after", number)) if matches!(spot.address, Address::Transcript(_)) => {
                    spot.after = number.parse().map_err(|_| "`after` must be a number".to_owned())?;
                }
                Some(("offset", number)) => {
                    spot.offset = number.parse().map_err(|_| "`offset` must be a number".to_owned())?;
                }
                _ => return Err(nothing()),
            }
        }
        Ok(spot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in [
            "locum://agents/explore",
            "locum://tasks/t_01",
            "locum://tasks/t_01/transcript",
            "locum://tasks/t_01/transcript?after=3",
            "locum://tasks/t_01/transcript?after=3&offset=9",
            "locum://tasks/t_01/result?offset=4000",
            "locum://context/team:goal",
            "locum://context/a%20b",
        ] {
            assert_eq!(text.parse::<Spot>().map(|spot| spot.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "locum://",
            "locum://tasks",
            "locum://tasks/",
            "locum://tasks/t_01/",
            "locum://tasks/t_01/diff",
            "locum://agents/a/b",
            "locum://agents/%ff",
            "file:///etc/passwd",
            "locum://tasks/t_01?after=1",
            "locum://tasks/t_01/result?offset=x",
            "locum://tasks/t_01/result?offset=-1",
            "locum://tasks/t_01/result?offset=99999999999999999999",
            "locum://tasks/t_01/result?colour=red",
        ] {
            assert!(text.parse::<Spot>().is_err(), "{text}");
        }
    }
}
