//! What a check found, in the form `path:line: rule: what is wrong, what to do`.

use std::fmt;

/// Whether a finding stops CI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Worth a thought; printed only.
    Warning,
    /// Has to be put right.
    Failure,
}

/// One finding.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: &'static str,
    pub(crate) message: String,
}

impl Problem {
    /// A finding that fails the run.
    pub(crate) fn failure(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Failure, path: path.to_owned(), line, rule, message: message.into() }
    }

    /// The same finding, printed without failing the run.
    pub(crate) fn into_warning(self) -> Self {
        Self { severity: Severity::Warning, ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, message, .. } = self;
        let word = match self.severity {
            Severity::Warning => "warning: ",
            Severity::Failure => "",
        };
        write!(formatter, "{word}{path}:{line}: {rule}: {message}")
    }
}
