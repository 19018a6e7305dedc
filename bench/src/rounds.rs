//! How cases are measured: in rounds, against a server in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::case::{Case, Who};
use crate::measure::Cost;
use crate::scale::Scale;
use crate::shape::Shape;

/// What every row needs.
pub(crate) struct Bench {
    /// Few rounds, for a first look.
    pub(crate) quick: bool,
    /// The binary whose start is measured.
    pub(crate) locum: PathBuf,
    /// The command of another MCP server whose start is measured too.
    pub(crate) beside: Option<String>,
    pub(crate) server: Server,
}

impl Bench {
    /// How many rounds there are.
    pub(crate) fn repeats(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }

    /// How many rounds there are of so many tasks: what takes a few hundredths of a second is measured more often.
    fn repeats_of(&self, tasks: usize) -> usize {
        match tasks {
            _ if self.quick => 1,
            0..100 => self.repeats(),
            100..1000 => 25,
            1000.. => 9,
        }
    }
}

/// What cases cost, measured in turn: whatever else the machine does meets all of them alike.
pub(crate) struct Rounds {
    /// By case, then by round.
    costs: Vec<Vec<Cost>>,
}

impl Rounds {
    /// Measures these cases.
    pub(crate) fn run(bench: &Bench, cases: &[Case]) -> anyhow::Result<Self> {
        let mut costs = vec![Vec::new(); cases.len()];
        let tasks = cases.iter().map(|case| case.tasks).max().unwrap_or_default();
        for _ in 0..bench.repeats_of(tasks) {
            for (case, costs) in cases.iter().zip(&mut costs) {
                costs.push(bench.server.measure(&serde_json::to_string(case)?)?);
            }
        }
        Ok(Self { costs })
    }

    /// Everybody, in the order of [`Who::ALL`].
    pub(crate) fn of_all(bench: &Bench, tasks: usize, shape: Shape) -> anyhow::Result<Self> {
        Self::run(bench, &Who::ALL.map(|who| Case::new(who, tasks, shape)))
    }

    /// The median of something that a case cost.
    pub(crate) fn median(&self, case: usize, value: impl Fn(&Cost) -> f64) -> f64 {
        middle(self.costs[case].iter().map(value).collect())
    }

    /// The CPU time of a case as a multiple of the floor's, which is the first case, in the same round.
    pub(crate) fn to_floor(&self, case: usize) -> f64 {
        let ratio = |(cost, floor): (&Cost, &Cost)| cost.cpu_us / floor.cpu_us;
        middle(self.costs[case].iter().zip(&self.costs[0]).map(ratio).collect())
    }
}

/// The median.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The model server, in a process of its own that ends with this one.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("no standard output")?).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    fn measure(&self, case: &str) -> anyhow::Result<Cost> {
        told(&["case", case, &self.address])
    }

    /// Measures many tasks.
    pub(crate) fn scale(&self, quick: bool) -> anyhow::Result<Scale> {
        let arguments = ["scale", &self.address, "quick"];
        told(if quick { &arguments } else { &arguments[..2] })
    }
}

/// What this program says when it is started with these arguments.
fn told<T: serde::de::DeserializeOwned>(arguments: &[&str]) -> anyhow::Result<T> {
    let output = Command::new(std::env::current_exe()?).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{arguments:?}: {complaint}");
    Ok(serde_json::from_str(&text)?)
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends with its standard input; there is nothing left to do if it does not.
        self.child.wait().ok();
    }
}
