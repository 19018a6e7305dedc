//! The one entrance to the engine.

/// A handle on the engine, bound to one session and caller.
#[derive(Clone)]
pub struct Desk {}
