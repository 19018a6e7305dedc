//! What locum costs. Every figure is a ratio to a floor in the same run: a bare HTTP client that keeps an append-only
//! request body and does nothing else. Absolute times are noise on a shared machine.
//!
//! The model server, the floor and locum each run in a process of their own, so that CPU time and peak memory are
//! theirs alone.

mod agents;
mod apart;
mod case;
mod commands;
mod floor;
mod measure;
mod report;
mod rounds;
mod rows;
mod scale;
mod server;
mod shape;
mod startup;
mod subject;
mod suite;
mod wire;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // The children of a run; what they measure they print as one line of JSON.
        ["serve"] => server::serve(),
        ["case", case, address] => case::run(case, address),
        ["scale", address] => scale::run(address, false),
        ["scale", address, "quick"] => scale::run(address, true),
        ["nothing"] => Ok(()),
        options => suite::run(options),
    }
}
