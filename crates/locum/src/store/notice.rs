//! Whether a write is told to those who watch [`Store::changes`](super::Store::changes).

/// Whether watchers are told of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    /// They are not.
    None,
    /// A task was accepted, released or ended, or a command was sent.
    Changed,
}

impl Notice {
    pub(super) fn when(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::None }
    }
}
