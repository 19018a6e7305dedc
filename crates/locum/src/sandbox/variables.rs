//! The environment of a command: a short list of names, so that no key reaches it.

use std::collections::BTreeMap;

use crate::settings::environment::Environment;

/// Where programs and files are found and how text looks; never a secret.
const PASSED_ON: [&str; 24] = [
    "CARGO_HOME",
    "COLUMNS",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LOGNAME",
    "NO_COLOR",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "SHELL",
    "SOURCE_DATE_EPOCH",
    "TZ",
    "USER",
];

/// Where programs are when the environment does not say.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a command inherits.
pub(super) fn inherited(environment: &Environment) -> BTreeMap<String, String> {
    let passed = PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())));
    let mut variables: BTreeMap<String, String> = passed.collect();
    variables.entry("PATH".to_owned()).or_insert_with(|| PATH_DEFAULT.to_owned());
    // No program should draw for a person who is not there, or wait for one.
    variables.insert("TERM".to_owned(), "dumb".to_owned());
    // Git must not try to write what it cannot.
    variables.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
    variables.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
    variables.insert("PAGER".to_owned(), "cat".to_owned());
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_is_inherited() {
        let given = [("PATH", "/bin"), ("OPENAI_API_KEY", "sk-secret"), ("LANG", "C"), ("SSH_AUTH_SOCK", "/run/agent")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let names: Vec<String> = inherited(&Environment::new(given, "/".into())).into_keys().collect();
        assert_eq!(names, ["GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "LANG", "PAGER", "PATH", "TERM"]);
        let path = inherited(&Environment::new([], "/".into())).remove("PATH");
        assert_eq!(path.as_deref(), Some(PATH_DEFAULT));
    }
}
