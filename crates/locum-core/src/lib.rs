//! The domain of locum: plain data and pure decisions.
//!
//! A task is a log. [`task::Task`] is a fold over [`task::TaskEvent`]s, [`task::Task::next_step`] decides what
//! happens next, and [`admission`] decides what may happen at all. Nothing in this crate waits, reads a clock, opens
//! a file or knows the environment: time, randomness and ids are arguments.

pub mod ids;
pub mod limits;
pub mod usage;

pub mod transcript;

pub mod agent;

pub mod protocol;

pub mod task;

pub mod admission;
pub mod budget;
pub mod input_schema;
pub mod permission;
pub mod release;
pub mod routing;
pub mod session;

pub mod board;
pub mod liveness;
pub mod neutral;
pub mod outside;
pub mod shared_context;
