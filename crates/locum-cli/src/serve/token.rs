//! The token that clients show, in a file that only its user can read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Random bytes of a token that is made here.
const BYTES: usize = 32;
/// The shortest token that somebody else may have made: what cannot be guessed.
const CHARS_MIN: usize = 32;
/// The longest: it stands in the head of every request.
const CHARS_MAX: u64 = 1024;

/// A token. It is not shown by `Debug`.
pub(crate) struct Token(String);

impl Token {
    /// A token as somebody wrote it down.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        let is_token = text.len() >= CHARS_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(is_token, "a token has at least {CHARS_MIN} letters and digits");
        Ok(Self(text.to_owned()))
    }

    /// The token as it is sent.
    pub(crate) fn as_bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// An address of the dashboard that brings it along. What stands after `#` is not sent to any server.
    pub(super) fn in_address(&self, url: &str) -> String {
        format!("{url}#token={}", utf8_percent_encode(&self.0, NON_ALPHANUMERIC))
    }

    /// Whether this `Authorization` shows it. How long that takes does not tell where they differ.
    pub(super) fn is_shown_by(&self, authorization: Option<&str>) -> bool {
        let Some((scheme, shown)) = authorization.and_then(|value| value.split_once(' ')) else { return false };
        let (shown, token) = (shown.as_bytes(), self.0.as_bytes());
        let differing = shown.iter().zip(token).fold(0, |differing, (one, other)| differing | (one ^ other));
        scheme.eq_ignore_ascii_case("bearer") && shown.len() == token.len() && differing == 0
    }
}

/// Reads the token, or makes one where there is no file.
pub(super) fn find_or_make(path: &Path) -> anyhow::Result<Token> {
    match read(path) {
        Ok(Some(token)) => Ok(token),
        Ok(None) => make(path).with_context(|| format!("the token cannot be written to {}", path.display())),
        Err(error) => Err(error),
    }
}

/// Reads the token; none where there is no file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<Token>> {
    let shown = path.display();
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("the token cannot be read from {shown}")),
    };
    let mode = file.metadata().with_context(|| format!("{shown} cannot be looked at"))?.permissions().mode();
    ensure!(mode & 0o077 == 0, "others can read the token in {shown}: chmod 600 it, or remove it for a new one");
    let mut text = String::new();
    file.take(CHARS_MAX + 1).read_to_string(&mut text).with_context(|| format!("{shown} cannot be read"))?;
    let token = Token::parse(&text).with_context(|| format!("{shown} holds no token: remove it for a new one"))?;
    Ok(Some(token))
}

fn make(path: &Path) -> anyhow::Result<Token> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut random = [0; BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    Ok(Token(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_for_its_user_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/server.token");
        let made = find_or_make(&path).unwrap();
        assert_eq!(made.0.len(), 64);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(find_or_make(&path).unwrap().0, made.0);
        let other = directory.path().join("other.token");
        assert_ne!(find_or_make(&other).unwrap().0, made.0);
    }

    #[test]
    fn a_file_that_others_can_read_or_that_holds_no_token_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        for (text, mode, complaint) in [
            ("0123456789abcdef0123456789abcdef", 0o644, "others can read"),
            ("0123456789abcdef0123456789abcdef", 0o620, "others can read"),
            ("", 0o600, "holds no token"),
            ("short", 0o600, "holds no token"),
            ("0123456789abcdef 0123456789abcdef", 0o600, "holds no token"),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let Err(error) = find_or_make(&path) else { panic!("{text:?} {mode:o} is taken") };
            assert!(error.to_string().contains(complaint), "{error}");
        }
    }
}
