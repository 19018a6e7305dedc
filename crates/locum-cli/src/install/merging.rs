//! Entering a server into the text of a host's file: the same in every language that hosts write their files in. What is
//! changed is read again and held against what it should say, so nothing else can have changed.

use serde_json::{Map, Value};

use super::{json_text, toml_text};

/// What is said of a server, in the order in which people write it.
pub(super) type Fields = Vec<(&'static str, Value)>;

/// What became of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// It says this already.
    Same,
    /// It says this now.
    Changed(String),
}

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// With comments, and commas that nobody needs.
    Json,
    Toml,
}

/// Where a server is entered.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) folder: &'a str,
    pub(super) name: &'a str,
}

impl Language {
    /// A text that says nothing else.
    pub(super) fn only(self, spot: Spot<'_>, fields: &Fields) -> String {
        match self {
            Self::Json => json_text::only(spot, fields),
            Self::Toml => toml_text::only(spot, fields),
        }
    }

    /// What a text says, or where it makes no sense.
    fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Json => json_text::read(text),
            Self::Toml => toml_text::read(text),
        }
    }

    /// The text with these fields, as far as it is understood.
    fn write(self, text: &str, spot: Spot<'_>, fields: &Fields) -> Option<String> {
        match self {
            Self::Json => json_text::write(text, spot, fields),
            Self::Toml => Some(toml_text::write(text, spot, fields)),
        }
    }

    /// Sets what is said of one server. Whatever else was said, of it and of others, stays.
    pub(super) fn merge(self, text: &str, spot: Spot<'_>, fields: &Fields) -> Result<Merged, String> {
        let before = self.read(text)?;
        let mut expected = before.clone();
        let Spot { folder, name } = spot;
        let all = expected.as_object_mut().ok_or("it is not a JSON object")?;
        let servers = all.entry(folder).or_insert_with(|| Value::Object(Map::new()));
        let noun = if self == Self::Json { "object" } else { "table" };
        let servers = servers.as_object_mut().ok_or_else(|| format!("`{folder}` is no {noun}"))?;
        let wanted = fields.iter().map(|(field, value)| ((*field).to_owned(), value.clone()));
        match servers.get_mut(name) {
            Some(Value::Object(known)) => known.extend(wanted),
            Some(_) | None => drop(servers.insert(name.to_owned(), Value::Object(wanted.collect()))),
        }
        if expected == before {
            return Ok(Merged::Same);
        }
        match self.write(text, spot, fields) {
            Some(changed) if self.read(&changed).is_ok_and(|after| after == expected) => Ok(Merged::Changed(changed)),
            Some(_) | None => Err(format!("`{folder}` is written in a way that cannot be changed safely")),
        }
    }
}

/// A text with the ends of lines that another one has.
pub(super) fn like(text: &str, new: String) -> String {
    if text.contains("\r\n") { new.replace('\n', "\r\n") } else { new }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// What became of a text, which must say what it should from then on.
    pub(in crate::install) fn merged(language: Language, text: &str, folder: &str, fields: &Fields) -> String {
        let spot = Spot { folder, name: "locum" };
        match language.merge(text, spot, fields) {
            Ok(Merged::Same) => "same".to_owned(),
            Ok(Merged::Changed(text)) => {
                assert_eq!(language.merge(&text, spot, fields), Ok(Merged::Same), "{text}");
                text
            }
            Err(problem) => format!("refused: {problem}"),
        }
    }
}
