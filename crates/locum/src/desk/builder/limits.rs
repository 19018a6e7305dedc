//! How much is allowed, and whether anything is.

use locum_core::limits::Limits;
use locum_core::liveness::Patience;

use super::DeskBuilder;
use crate::writers::Others;

impl DeskBuilder {
    /// How many tasks may run and be started, how deep delegation may go, and how many turns an agent may have.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How long a task may be silent before it counts as stalled and is ended.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Who knows which files are written elsewhere; the store that was given, if this is left out.
    #[must_use]
    pub(crate) fn writing_among(mut self, others: Others) -> Self {
        self.others = Some(others);
        self
    }

    /// Switches delegation on or off. Off, every request that would start a task is refused with
    /// [`SubagentsDisabled`](crate::Code::SubagentsDisabled).
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Whether a task is refused that would not get all that was asked for, instead of starting with a receipt that says
    /// what was left out.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }
}
