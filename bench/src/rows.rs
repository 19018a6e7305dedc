//! What is measured: each function is one group of rows.

use locum::models::providers::Protocol;

use crate::agents;
use crate::apart;
use crate::case::{Case, Who};
use crate::commands;
use crate::report::Report;
use crate::rounds::{Bench, Rounds, middle};
use crate::shape::Shape;
use crate::startup::{self, Start};

/// 1 to 1000 tasks of 5 turns, without and with latency.
pub(crate) fn crowds(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let counts: &[usize] = if bench.quick { &[1, 100] } else { &[1, 10, 100, 1000] };
    for latency_ms in [0, 20] {
        let shape = Shape { turns: 5, latency_ms, chunks: 1, tool_bytes: 100 };
        for &tasks in counts {
            let group = format!("crowd/{tasks:04} tasks of 5 turns, {latency_ms:02} ms");
            let turns = (tasks * 5) as f64;
            let rounds = Rounds::of_all(bench, tasks, shape)?;
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
pub(crate) fn long_task(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    // Several at once, so that what one turn costs stands out from the clock's grain.
    let tasks = 20;
    for who in Who::ALL {
        let case = |turns| Case::new(who, tasks, Shape { turns, latency_ms: 0, chunks: 1, tool_bytes: 100 });
        let rounds = Rounds::run(bench, &[case(5), case(20), case(190), case(210)])?;
        let cost = |place: usize| rounds.median(place, |cost| cost.cpu_us) / tasks as f64;
        let early = (cost(1) - cost(0)) / 15.0;
        let late = (cost(3) - cost(2)) / 20.0;
        let row = format!("long/{}/turn 200 to turn 10", who.as_str());
        // A difference that is not positive is noise, and must not pass for a promise that was kept.
        if early <= 0.0 || late <= 0.0 {
            report.leave_out(&row);
            continue;
        }
        let most = (who != Who::Floor).then_some(3.0);
        report.add(&row, late / early, "×", most);
        report.add(&format!("long/{}/cpu of turn 200", who.as_str()), late, "µs", None);
    }
    Ok(())
}

/// 20 turns, each with a tool result of 100 kB.
pub(crate) fn large_results(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let shape = Shape { turns: 20, latency_ms: 0, chunks: 1, tool_bytes: 100_000 };
    let rounds = Rounds::of_all(bench, 4, shape)?;
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
pub(crate) fn long_stream(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let chunks = 20_000;
    let shape = Shape { turns: 1, latency_ms: 0, chunks, tool_bytes: 0 };
    let speakers = Protocol::ALL.map(|protocol| Who::ALL.map(|who| (protocol, who))).concat();
    let cases: Vec<Case> = speakers.iter().map(|(protocol, who)| Case::speaking(*protocol, *who, 1, shape)).collect();
    let rounds = Rounds::run(bench, &cases)?;
    for (place, (protocol, who)) in speakers.into_iter().enumerate() {
        let cpu = rounds.median(place, |cost| cost.cpu_us) / f64::from(chunks);
        let most = (who != Who::Floor).then_some(3.0);
        report.add(&format!("stream/20000 chunks/{protocol}/{}/cpu per chunk", who.as_str()), cpu, "µs", most);
    }
    Ok(())
}

/// Every protocol beside a floor that speaks it too.
pub(crate) fn protocols(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let shape = Shape { turns: 5, latency_ms: 0, chunks: 1, tool_bytes: 100 };
    for protocol in Protocol::ALL {
        for tasks in [100, 1000] {
            let cases = Who::ALL.map(|who| Case::speaking(protocol, who, tasks, shape));
            let rounds = Rounds::run(bench, &cases)?;
            for (place, who) in Who::ALL.into_iter().enumerate() {
                let name = format!("protocol/{protocol}/{tasks:04} tasks/{}", who.as_str());
                let cpu = rounds.median(place, |cost| cost.cpu_us) / (tasks * 5) as f64;
                report.add(&format!("{name}/cpu per turn"), cpu, "µs", None);
                if let Some(promised) = cpu_to_floor_max(who) {
                    report.add(&format!("{name}/cpu to floor"), rounds.to_floor(place), "×", Some(promised));
                }
            }
        }
    }
    Ok(())
}

/// How long the binary takes to be there.
pub(crate) fn starts(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    let mut nothing = 0.0;
    for start in Start::ALL {
        let mut times = Vec::new();
        for _ in 0..bench.repeats() * 4 {
            times.push(start.measure(&bench.locum, home.path())?);
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
    if let Some(command) = &bench.beside {
        let times: anyhow::Result<Vec<f64>> =
            (0..bench.repeats() * 4).map(|_| startup::beside(command, home.path())).collect();
        report.add(&format!("start/`{command}` to tools/list"), middle(times?), "ms", None);
    }
    Ok(())
}

/// A thousand agent files.
pub(crate) fn agent_files(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    agents::write(directory.path())?;
    let times: anyhow::Result<Vec<f64>> = (0..bench.repeats()).map(|_| agents::measure(directory.path())).collect();
    report.add(&format!("agents/{} files read, cpu", agents::FILES), middle(times?), "ms", Some(50.0));
    Ok(())
}

/// What the sandbox adds to a command.
pub(crate) fn sandboxed(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let row = "sandbox/a command in a sandbox over a plain one";
    let (mut shut_in, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..bench.repeats() {
        let home = tempfile::tempdir()?;
        let Some(time) = commands::measure(&bench.locum, home.path(), "full")? else {
            report.leave_out(row);
            return Ok(());
        };
        shut_in.push(time);
        plain.extend(commands::measure(&bench.locum, home.path(), "none")?);
    }
    report.add(row, middle(shut_in) - middle(plain), "ms", Some(20.0));
    Ok(())
}

/// What a process of its own adds to a task.
pub(crate) fn workers(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let (inside, apart) = apart::measure(&bench.locum, bench.repeats() * 10)?;
    report.add("worker/start to first model request, in process", middle(inside.clone()), "ms", None);
    let over = middle(apart) - middle(inside);
    report.add("worker/start to first model request, over in process", over, "ms", Some(25.0));
    Ok(())
}

/// Ten thousand tasks, a hundred at a time, and five thousand at once; a tenth of both where it is quick.
pub(crate) fn many(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let scale = bench.server.scale(bench.quick)?;
    let soak = format!("scale/{} tasks with 5 % faults", scale.soaked);
    report.add(&format!("{soak}/memory left by each"), scale.bytes_per_task / 1024.0, "KiB", Some(1.0));
    report.add(&format!("{soak}/descriptors left"), scale.descriptors_left as f64, "", Some(0.0));
    report.add(&format!("{soak}/processes left"), scale.children_left as f64, "", Some(0.0));
    report.add(&format!("{soak}/completed"), scale.soak_completed as f64, "", None);
    let crowd = format!("scale/{} tasks at once, 200 ms", scale.crowd);
    report.add(&format!("{crowd}/peak memory"), scale.crowd_mib, "MiB", Some(400.0));
    report.add(&format!("{crowd}/not completed"), (scale.crowd - scale.crowd_completed) as f64, "", Some(0.0));
    report.add(&format!("{crowd}/status, median"), scale.status_p50_ms, "ms", None);
    report.add(&format!("{crowd}/status, 99th percentile"), scale.status_p99_ms, "ms", Some(20.0));
    report.add(&format!("{crowd}/wall"), scale.crowd_s, "s", None);
    Ok(())
}
