//! A whole run: the cases, their medians, the ratios to the floor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::agents;
use crate::case::{Case, Who};
use crate::commands;
use crate::measure::Cost;
use crate::report::Report;
use crate::shape::Shape;
use crate::startup::Start;

/// How a run was asked for.
struct Options {
    quick: bool,
    json: Option<PathBuf>,
    compare: Option<PathBuf>,
    locum: PathBuf,
}

impl Options {
    fn parse(words: &[&str]) -> anyhow::Result<Self> {
        let mut options =
            Self { quick: false, json: None, compare: None, locum: PathBuf::from("target/release/locum") };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(PathBuf::from).with_context(|| format!("{word} needs a file"));
            match *word {
                "--quick" => options.quick = true,
                "--json" => options.json = Some(value()?),
                "--compare" => options.compare = Some(value()?),
                "--locum" => options.locum = value()?,
                other => anyhow::bail!("unknown option {other}; there are --quick, --json FILE, --compare OLD.json"),
            }
        }
        Ok(options)
    }

    fn repeats(&self) -> usize {
        if self.quick { 1 } else { 5 }
    }
}

/// Measures everything, prints a table, writes JSON where it was asked for.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let options = Options::parse(words)?;
    let old = options.compare.as_ref().map(|path| -> anyhow::Result<Report> {
        Ok(serde_json::from_str(&std::fs::read_to_string(path).with_context(|| path.display().to_string())?)?)
    });
    let old = old.transpose()?;
    let server = Server::start()?;
    let mut report = Report::default();
    crowds(&options, &server, &mut report)?;
    long_task(&options, &server, &mut report)?;
    large_results(&options, &server, &mut report)?;
    long_stream(&options, &server, &mut report)?;
    starts(&options, &mut report)?;
    agent_files(&options, &mut report)?;
    sandboxed(&options, &mut report)?;
    report.leave_out("worker/cpu per turn in a process of its own");
    let mut out = std::io::stdout();
    write!(out, "{}", report.table(old.as_ref()))?;
    for name in report.missed() {
        writeln!(out, "missed: {name}")?;
    }
    if let Some(path) = &options.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    Ok(())
}

/// 1 to 1000 tasks of 5 turns, without and with latency.
fn crowds(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let counts: &[usize] = if options.quick { &[1, 100] } else { &[1, 10, 100, 1000] };
    for latency_ms in [0, 20] {
        let shape = Shape { turns: 5, latency_ms, chunks: 1, tool_bytes: 100 };
        for &tasks in counts {
            let group = format!("crowd/{tasks:04} tasks of 5 turns, {latency_ms:02} ms");
            let turns = (tasks * 5) as f64;
            let rounds = Rounds::of_all(options, server, tasks, shape)?;
            for (place, who) in Who::ALL.into_iter().enumerate() {
                let name = format!("{group}/{}", who.as_str());
                let cpu = rounds.median(place, |cost| cost.cpu_us) / turns;
                report.add(&format!("{name}/cpu per turn"), cpu, "µs", None);
                report.add(&format!("{name}/wall"), rounds.median(place, |cost| cost.wall_us) / 1e3, "ms", None);
                let most = (tasks == 1000 && who != Who::Floor).then_some(64.0);
                let peak = rounds.median(place, |cost| cost.peak_kib as f64) / 1024.0;
                report.add(&format!("{name}/peak memory"), peak, "MiB", most);
                if let Some(promised) = cpu_to_floor_max(who) {
                    let most = (tasks >= 100).then_some(promised);
                    report.add(&format!("{name}/cpu to floor"), rounds.to_floor(place), "×", most);
                }
                if who == Who::Sqlite {
                    report.add(&format!("{name}/commits"), rounds.median(place, |cost| cost.commits as f64), "", None);
                }
            }
        }
    }
    Ok(())
}

/// How often the floor's CPU time a turn may cost.
fn cpu_to_floor_max(who: Who) -> Option<f64> {
    match who {
        Who::Floor => None,
        Who::Memory => Some(2.0),
        Who::Sqlite => Some(3.0),
    }
}

/// What a late turn costs against an early one: the difference of a long and a slightly longer task.
fn long_task(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    // Several at once, so that what one turn costs stands out from the clock's grain.
    let tasks = 20;
    for who in Who::ALL {
        let case = |turns| Case::new(who, tasks, Shape { turns, latency_ms: 0, chunks: 1, tool_bytes: 100 });
        let rounds = Rounds::run(options, server, &[case(5), case(20), case(190), case(210)])?;
        let cost = |place: usize| rounds.median(place, |cost| cost.cpu_us) / tasks as f64;
        let early = (cost(1) - cost(0)) / 15.0;
        let late = (cost(3) - cost(2)) / 20.0;
        let most = (who != Who::Floor).then_some(3.0);
        report.add(&format!("long/{}/turn 200 to turn 10", who.as_str()), late / early, "×", most);
        report.add(&format!("long/{}/cpu of turn 200", who.as_str()), late, "µs", None);
    }
    Ok(())
}

/// 20 turns, each with a tool result of 100 kB.
fn large_results(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let shape = Shape { turns: 20, latency_ms: 0, chunks: 1, tool_bytes: 100_000 };
    let rounds = Rounds::of_all(options, server, 4, shape)?;
    for (place, who) in Who::ALL.into_iter().enumerate() {
        let name = format!("large/20 turns with 100 kB results/{}", who.as_str());
        report.add(&format!("{name}/cpu per turn"), rounds.median(place, |cost| cost.cpu_us) / 80.0, "µs", None);
        if who != Who::Floor {
            report.add(&format!("{name}/cpu to floor"), rounds.to_floor(place), "×", None);
        }
    }
    Ok(())
}

/// One answer in 20,000 pieces.
fn long_stream(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let chunks = 20_000;
    let rounds = Rounds::of_all(options, server, 1, Shape { turns: 1, latency_ms: 0, chunks, tool_bytes: 0 })?;
    for (place, who) in Who::ALL.into_iter().enumerate() {
        let cpu = rounds.median(place, |cost| cost.cpu_us) / f64::from(chunks);
        let most = (who != Who::Floor).then_some(5.0);
        report.add(&format!("stream/20000 chunks/{}/cpu per chunk", who.as_str()), cpu, "µs", most);
    }
    Ok(())
}

/// What the sandbox adds to a command.
fn sandboxed(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let row = "sandbox/a command in a sandbox over a plain one";
    let (mut shut_in, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..options.repeats() {
        let home = tempfile::tempdir()?;
        let Some(time) = commands::measure(&options.locum, home.path(), "full")? else {
            report.leave_out(row);
            return Ok(());
        };
        shut_in.push(time);
        plain.extend(commands::measure(&options.locum, home.path(), "none")?);
    }
    report.add(row, middle(shut_in) - middle(plain), "ms", Some(20.0));
    Ok(())
}

fn starts(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let mut nothing = 0.0;
    for start in Start::ALL {
        let mut times = Vec::new();
        for _ in 0..options.repeats() * 4 {
            times.push(start.measure(&options.locum, home.path())?);
        }
        let time = middle(times);
        if start == Start::Nothing {
            nothing = time;
        }
        report.add(&format!("start/{}", start.as_str()), time, "ms", None);
        if start == Start::Version {
            report.add("start/locum --version over an empty program", time - nothing, "ms", Some(15.0));
        }
    }
    Ok(())
}

/// A thousand agent files.
fn agent_files(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    agents::write(directory.path())?;
    let times: anyhow::Result<Vec<f64>> = (0..options.repeats()).map(|_| agents::measure(directory.path())).collect();
    report.add(&format!("agents/{} files read, cpu", agents::FILES), middle(times?), "ms", Some(50.0));
    Ok(())
}

/// What cases cost, measured in turn: whatever else the machine does meets all of them alike.
struct Rounds {
    /// By case, then by round.
    costs: Vec<Vec<Cost>>,
}

impl Rounds {
    fn run(options: &Options, server: &Server, cases: &[Case]) -> anyhow::Result<Self> {
        let mut costs = vec![Vec::new(); cases.len()];
        for _ in 0..options.repeats() {
            for (case, costs) in cases.iter().zip(&mut costs) {
                costs.push(server.measure(&serde_json::to_string(case)?)?);
            }
        }
        Ok(Self { costs })
    }

    /// Everybody, in the order of [`Who::ALL`].
    fn of_all(options: &Options, server: &Server, tasks: usize, shape: Shape) -> anyhow::Result<Self> {
        Self::run(options, server, &Who::ALL.map(|who| Case::new(who, tasks, shape)))
    }

    fn median(&self, case: usize, value: impl Fn(&Cost) -> f64) -> f64 {
        middle(self.costs[case].iter().map(value).collect())
    }

    /// The CPU time of a case as a multiple of the floor's, which is the first case, in the same round.
    fn to_floor(&self, case: usize) -> f64 {
        let ratio = |(cost, floor): (&Cost, &Cost)| cost.cpu_us / floor.cpu_us;
        middle(self.costs[case].iter().zip(&self.costs[0]).map(ratio).collect())
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The model server, in a process of its own that ends with this one.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start() -> anyhow::Result<Self> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("no standard output")?).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    fn measure(&self, case: &str) -> anyhow::Result<Cost> {
        let output = Command::new(std::env::current_exe()?).args(["case", case, &self.address]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{case}: {complaint}");
        Ok(serde_json::from_str(&text)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends with its standard input; there is nothing left to do if it does not.
        self.child.wait().ok();
    }
}
