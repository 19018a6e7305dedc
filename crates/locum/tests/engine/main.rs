//! The engine through its one entrance, as an application uses it. Models and tools are the tests' own; time is
//! tokio's paused clock, so that a stall of ten minutes takes none.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod cast;
mod faulty;
mod repository;
mod stage;
mod stalls;

mod asking;
mod cycle;

mod endings;
mod retention;
mod retries;
mod tooling;
mod writing;

mod governing;
mod handing_over;
mod store_faults;

mod board;
mod budget_trees;
mod budgets;
mod callers;
mod depth;
mod faces;
mod modes;
mod queueing;

mod polling;
mod recording;
mod results;

mod chaos;
mod crowd;
mod examples;
mod hostile_git;
mod operations;
mod progress;
mod secrets;
mod sessions;
mod worktree_verbs;
mod worktrees;
