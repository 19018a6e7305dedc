//! Toolchains in a home directory: what a build needs from a home that is otherwise hidden. They are readable only, and
//! the files in which such tools keep credentials are not among them.

use std::path::{Path, PathBuf};

/// Where toolchains live below a home.
const BELOW_HOME: [&str; 24] = [
    ".cargo/bin",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".rustup",
    ".nvm",
    ".volta",
    ".fnm",
    ".bun/bin",
    ".deno/bin",
    ".pyenv",
    ".rbenv",
    ".goenv",
    ".sdkman/candidates",
    ".asdf/installs",
    ".asdf/shims",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    "go",
    "sdk",
];

/// Variables that name a toolchain's place, and what of it is needed; an empty list means all of it.
const NAMED: [(&str, &[&str]); 7] = [
    ("CARGO_HOME", &["bin", "env", "git", "registry"]),
    ("RUSTUP_HOME", &[]),
    ("GOROOT", &[]),
    ("GOPATH", &[]),
    ("NVM_DIR", &[]),
    ("PYENV_ROOT", &[]),
    ("JAVA_HOME", &[]),
];

/// Files in these places that hold credentials.
pub(super) const CREDENTIALS: [&str; 3] = ["credentials", "credentials.toml", "config.toml"];

/// The toolchains that are there. A variable that names the root of all files, or the home itself, names none.
pub(super) fn find<'a>(home: Option<&Path>, variable: impl Fn(&str) -> Option<&'a str>) -> Vec<PathBuf> {
    let below = home.into_iter().flat_map(|home| BELOW_HOME.iter().map(move |name| home.join(name)));
    let named = NAMED.iter().flat_map(|(name, parts)| {
        let place = variable(name).map(PathBuf::from).filter(|place| is_narrow(place, home));
        place.into_iter().flat_map(|place| match parts.is_empty() {
            true => vec![place],
            false => parts.iter().map(|part| place.join(part)).collect(),
        })
    });
    let mut found: Vec<PathBuf> = below.chain(named).filter_map(|path| path.canonicalize().ok()).collect();
    found.retain(|path| is_narrow(path, home));
    found.sort();
    found.dedup();
    found
}

/// Whether a place is one toolchain's and not everything around it.
fn is_narrow(place: &Path, home: Option<&Path>) -> bool {
    place.is_absolute() && place.components().count() > 2 && !home.is_some_and(|home| home.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_are_found_and_what_is_around_them_is_not() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for directory in [".cargo/registry", ".cargo/bin", ".ssh", "elsewhere/go"] {
            std::fs::create_dir_all(home.join(directory)).unwrap();
        }
        std::fs::write(home.join(".cargo/credentials.toml"), "secret").unwrap();
        let below = |names: &[&str]| names.iter().map(|name| home.join(name)).collect::<Vec<_>>();
        let elsewhere = home.join("elsewhere/go").to_string_lossy().into_owned();
        let at_home = home.to_string_lossy().into_owned();
        for (variables, expected) in [
            (vec![], below(&[".cargo/bin", ".cargo/registry"])),
            (vec![("GOPATH", elsewhere.as_str())], below(&[".cargo/bin", ".cargo/registry", "elsewhere/go"])),
            (vec![("GOPATH", at_home.as_str()), ("GOROOT", "/")], below(&[".cargo/bin", ".cargo/registry"])),
            (vec![("GOPATH", "relative"), ("NVM_DIR", "/home")], below(&[".cargo/bin", ".cargo/registry"])),
        ] {
            let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            assert_eq!(find(Some(&home), variable), expected, "{variables:?}");
        }
    }
}
