//! The one of several answers that is read. More than one is never asked for, and a list of one is not worth a place on
//! the heap for every piece of a stream.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// An answer that may say which one it is.
pub(crate) trait Indexed {
    fn index(&self) -> Option<u64>;
}

/// Of a list, the first whose number is zero, or that has none.
pub(crate) struct Chosen<T>(pub(crate) Option<T>);

impl<'de, T: Deserialize<'de> + Indexed> Deserialize<'de> for Chosen<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Choosing(PhantomData))
    }
}

struct Choosing<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Indexed> Visitor<'de> for Choosing<T> {
    type Value = Chosen<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut chosen = None;
        while let Some(one) = list.next_element::<T>()? {
            if chosen.is_none() && one.index().unwrap_or_default() == 0 {
                chosen = Some(one);
            }
        }
        Ok(Chosen(chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Answer {
        index: Option<u64>,
        text: String,
    }

    impl Indexed for Answer {
        fn index(&self) -> Option<u64> {
            self.index
        }
    }

    #[test]
    fn the_first_answer_is_read_and_every_other_must_make_sense() {
        for (json, text) in [
            ("[]", Ok(None)),
            (r#"[{"text": "a"}, {"text": "b"}]"#, Ok(Some("a"))),
            (r#"[{"index": 1, "text": "a"}, {"index": 0, "text": "b"}]"#, Ok(Some("b"))),
            (r#"[{"index": 1, "text": "a"}]"#, Ok(None)),
            (r#"[{"text": "a"}, {"index": 1}]"#, Err("missing field `text` at line 1 column 28")),
            (r#"{"text": "a"}"#, Err("invalid type: map, expected a list at line 1 column 0")),
        ] {
            let read = serde_json::from_str::<Chosen<Answer>>(json).map(|chosen| chosen.0.map(|answer| answer.text));
            let read = read.map_err(|error| error.to_string());
            let expected = text.map(|text| text.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(read, expected, "{json}");
        }
    }
}
