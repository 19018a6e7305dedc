//! What git sees of the world: an environment of its own, and settings over those of the repository.

use std::ffi::OsString;

/// Entries of a repository's configuration that are looked at: a few thousand branches have each a handful.
pub(super) const SETTINGS_MAX: usize = 50_000;

/// The whole environment of git, without what says which repository it works in.
const ENVIRONMENT: [(&str, &str); 25] = [
    ("PATH", "/usr/bin:/bin"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    // Looking at the user's checkout must not change its index.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_SSH_COMMAND", "/bin/false"),
    ("GIT_PROXY_COMMAND", "/bin/false"),
    ("GIT_EDITOR", "/bin/false"),
    ("GIT_SEQUENCE_EDITOR", "/bin/false"),
    ("GIT_PAGER", "cat"),
    // Nothing is fetched behind anybody's back, not even objects that a partial clone lacks.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_ADVICE", "0"),
    ("GIT_AUTHOR_NAME", "locum"),
    ("GIT_AUTHOR_EMAIL", "locum@localhost"),
    ("GIT_COMMITTER_NAME", "locum"),
    ("GIT_COMMITTER_EMAIL", "locum@localhost"),
];

/// Settings that are in force whatever the repository says.
const SETTINGS: [(&str, &str); 35] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.pager", "cat"),
    ("core.editor", "/bin/false"),
    ("core.askPass", "/bin/false"),
    ("core.sshCommand", "/bin/false"),
    ("core.gitProxy", "none"),
    ("core.alternateRefsCommand", "/bin/false"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    // Others write to the same repository: wait for them rather than fail.
    ("core.filesRefLockTimeout", "10000"),
    ("core.packedRefsTimeout", "10000"),
    ("credential.helper", ""),
    ("credential.interactive", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("diff.renames", "false"),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.relative", "false"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("status.showUntrackedFiles", "all"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gpg.program", "/bin/false"),
    ("gpg.ssh.program", "/bin/false"),
    ("gpg.ssh.defaultKeyCommand", "/bin/false"),
    ("gpg.x509.program", "/bin/false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("merge.verbosity", "0"),
    ("checkout.workers", "1"),
];

/// Settings with a name in the middle that say which program git runs, and what is said instead. A filter that is
/// empty is none; a merge driver that fails is a conflict, where one that does nothing would choose a side.
const NAMED: [(&str, &str, &str); 10] = [
    ("filter", "clean", ""),
    ("filter", "smudge", ""),
    ("filter", "process", ""),
    ("filter", "required", "false"),
    ("merge", "driver", "false"),
    ("diff", "command", "/bin/false"),
    ("diff", "textconv", "/bin/false"),
    ("submodule", "update", "none"),
    ("submodule", "recurse", "false"),
    ("credential", "helper", ""),
];

/// The environment, without what is said of a repository.
pub(super) fn environment() -> Vec<(OsString, OsString)> {
    ENVIRONMENT.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

/// The settings over those of a repository whose own configuration has these keys, as environment variables.
pub(super) fn settings<'a>(keys: impl Iterator<Item = &'a str>) -> Vec<(OsString, OsString)> {
    let mut settings: Vec<(String, &str)> = SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
    settings.extend(keys.filter_map(overridden));
    settings.sort();
    settings.dedup();
    let mut variables = vec![("GIT_CONFIG_COUNT".into(), settings.len().to_string().into())];
    for (place, (key, value)) in settings.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{place}").into(), key.into()));
        variables.push((format!("GIT_CONFIG_VALUE_{place}").into(), value.into()));
    }
    variables
}

/// What is said instead of a setting that names a program.
fn overridden(key: &str) -> Option<(String, &'static str)> {
    let (section, rest) = key.split_once('.')?;
    let (_, last) = rest.rsplit_once('.')?;
    let (_, _, value) = NAMED
        .iter()
        .find(|(family, variable, _)| family.eq_ignore_ascii_case(section) && variable.eq_ignore_ascii_case(last))?;
    Some((key.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_name_programs_are_overridden() {
        let check = |key: &str| overridden(key).map(|(_, value)| value);
        assert_eq!(check("filter.lfs.smudge"), Some(""));
        assert_eq!(check("filter.a.b.c.clean"), Some(""));
        assert_eq!(check("merge.ours.driver"), Some("false"));
        assert_eq!(check("diff.pdf.textconv"), Some("/bin/false"));
        assert_eq!(check("core.autocrlf"), None);
        assert_eq!(check("filter.clean"), None);
        let variables = settings(["filter.x.clean", "filter.x.clean", "user.name"].into_iter());
        assert_eq!(variables.len(), 1 + 2 * (SETTINGS.len() + 1));
    }
}
