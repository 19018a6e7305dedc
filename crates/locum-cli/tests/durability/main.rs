//! What survives: tasks whose process is killed, work that is handed from process to process, and secrets that must
//! be found nowhere. Every test drives the real binary in a home of its own; whoever watches does so through the
//! store that the processes share.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a campaign says its seed and what it did; it is shown where it fails")]

mod home;
mod log;
mod model_server;
mod observer;

mod apart;
mod background;
mod budgets;
mod cancels;
mod crowd;
mod hand_over;
mod kills;
mod orphans;

mod failures;
mod missing_key;
mod requests;
mod secrets;

mod settings;
mod worktrees;
mod writers;
