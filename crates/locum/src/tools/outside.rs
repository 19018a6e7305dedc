//! Marks around text from outside, with a seal that was made for it.

use ring::rand::{SecureRandom, SystemRandom};

/// Where seals come from.
#[derive(Debug, Default)]
pub(crate) enum Seals {
    /// From the system's randomness: nobody outside of this process knows one before it is used.
    #[default]
    Random,
    /// Always the same one.
    #[cfg(test)]
    Fixed(&'static str),
}

impl Seals {
    /// The text with marks around it, and a remark in the last one.
    pub(crate) fn marked(&self, source: &str, text: &str, remark: &str) -> String {
        locum_core::outside::marked(&self.seal(), source, text, remark)
    }

    fn seal(&self) -> String {
        match self {
            Self::Random => {
                let mut bytes = fastrand::u64(..).to_be_bytes();
                // Where the system has no randomness, what is there is still unknown to whoever wrote the text.
                SystemRandom::new().fill(&mut bytes).ok();
                format!("{:016x}", u64::from_be_bytes(bytes))
            }
            #[cfg(test)]
            Self::Fixed(seal) => (*seal).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_a_seal_of_its_own() {
        let seals = Seals::default();
        let texts: std::collections::BTreeSet<String> = (0..100).map(|_| seals.marked("x", "y", "")).collect();
        assert_eq!(texts.len(), 100);
        let plain = texts.iter().map(|text| locum_core::outside::without_seals(text));
        assert_eq!(plain.collect::<std::collections::BTreeSet<_>>().len(), 1);
    }
}
