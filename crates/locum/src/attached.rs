//! Tasks in a process of their own, which works for the one that started it and ends with it.
//!
//! The worker has the driver and the tools that read, write and run commands. It has no keys and no store: its parent
//! holds the lease, writes the log, asks the models and runs every other tool. Both have the task, folded from the
//! same records, so a model call costs no more than a word on the pipe: the parent knows what to ask.
//!
//! [`frame`] is what is said on the two pipes, `worker` and `link` are the worker's side, `parent` and `line` the other.

mod frame;
mod line;
mod link;
mod parent;
mod worker;

pub(crate) use link::Link;
pub(crate) use parent::{Post, drive};
pub(crate) use worker::run;

/// The word after [`WORKER_ARGUMENT`](crate::launch::WORKER_ARGUMENT) that makes a worker an attached one.
pub(crate) const ATTACHED: &str = "attached";
