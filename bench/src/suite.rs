//! A whole run: the cases, their medians, the ratios to the floor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use crate::case::{Case, Who};
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
            let mut floor_cpu = 0.0;
            for who in Who::ALL {
                let cost = median(options, server, who, tasks, shape)?;
                let cpu = cost.cpu_us / turns;
                let name = format!("{group}/{}", who.as_str());
                report.add(&format!("{name}/cpu per turn"), cpu, "µs", None);
                report.add(&format!("{name}/wall"), cost.wall_us / 1e3, "ms", None);
                let most = (tasks == 1000 && who == Who::Sqlite).then_some(64.0);
                report.add(&format!("{name}/peak memory"), cost.peak_kib as f64 / 1024.0, "MiB", most);
                let (promised, is_floor) = match who {
                    Who::Floor => (None, true),
                    Who::Memory => (Some(2.0), false),
                    Who::Sqlite => (Some(3.0), false),
                };
                if is_floor {
                    floor_cpu = cpu;
                } else {
                    let most = promised.filter(|_| tasks >= 100);
                    report.add(&format!("{name}/cpu to floor"), cpu / floor_cpu, "×", most);
                }
                if who == Who::Sqlite {
                    report.add(&format!("{name}/commits per turn"), cost.commits as f64 / turns, "", None);
                }
            }
        }
    }
    Ok(())
}

/// What a late turn costs against an early one: the difference of a long and a slightly longer task.
fn long_task(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    for who in Who::ALL {
        let cost = |turns: u32| -> anyhow::Result<f64> {
            let shape = Shape { turns, latency_ms: 0, chunks: 1, tool_bytes: 100 };
            // Several at once, so that what one turn costs stands out from the clock's grain.
            Ok(median(options, server, who, 20, shape)?.cpu_us / 20.0)
        };
        let early = (cost(20)? - cost(5)?) / 15.0;
        let late = (cost(210)? - cost(190)?) / 20.0;
        let most = (who != Who::Floor).then_some(3.0);
        report.add(&format!("long/{}/turn 200 to turn 10", who.as_str()), late / early, "×", most);
        report.add(&format!("long/{}/cpu of turn 200", who.as_str()), late, "µs", None);
    }
    Ok(())
}

/// 20 turns, each with a tool result of 100 kB.
fn large_results(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let shape = Shape { turns: 20, latency_ms: 0, chunks: 1, tool_bytes: 100_000 };
    let mut floor_cpu = 0.0;
    for who in Who::ALL {
        let cpu = median(options, server, who, 4, shape)?.cpu_us / 80.0;
        report.add(&format!("large/20 turns with 100 kB results/{}/cpu per turn", who.as_str()), cpu, "µs", None);
        if who == Who::Floor {
            floor_cpu = cpu;
        } else {
            report.add(
                &format!("large/20 turns with 100 kB results/{}/cpu to floor", who.as_str()),
                cpu / floor_cpu,
                "×",
                None,
            );
        }
    }
    Ok(())
}

/// One answer in 20,000 pieces.
fn long_stream(options: &Options, server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let chunks = 20_000;
    for who in Who::ALL {
        let shape = Shape { turns: 1, latency_ms: 0, chunks, tool_bytes: 0 };
        let cpu = median(options, server, who, 1, shape)?.cpu_us / f64::from(chunks);
        let most = (who != Who::Floor).then_some(5.0);
        report.add(&format!("stream/20000 chunks/{}/cpu per chunk", who.as_str()), cpu, "µs", most);
    }
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

fn median(options: &Options, server: &Server, who: Who, tasks: usize, shape: Shape) -> anyhow::Result<Cost> {
    let case = serde_json::to_string(&Case { who, tasks, shape: shape.to_string() })?;
    let mut costs = Vec::new();
    for _ in 0..options.repeats() {
        costs.push(server.measure(&case)?);
    }
    let by = |value: fn(&Cost) -> f64| middle(costs.iter().map(value).collect());
    Ok(Cost {
        cpu_us: by(|cost| cost.cpu_us),
        wall_us: by(|cost| cost.wall_us),
        peak_kib: by(|cost| cost.peak_kib as f64) as i64,
        commits: by(|cost| cost.commits as f64) as u64,
    })
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
