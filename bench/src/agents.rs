//! What it costs to read agent files: a thousand of them, with their pages in memory.

use std::path::Path;

use anyhow::Context as _;

use crate::measure::Meter;

/// How many files.
pub(crate) const FILES: usize = 1000;

/// Milliseconds of CPU for reading all of them. The first round warms the file system's cache and is not counted.
pub(crate) fn measure(directory: &Path) -> anyhow::Result<f64> {
    read(directory)?;
    let meter = Meter::start();
    read(directory)?;
    Ok(meter.stop().cpu_us / 1e3)
}

/// Writes files as people write them, in three of the dialects.
pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    for number in 0..FILES {
        let fields = match number % 3 {
            0 => "tools: Read, Grep, Glob, Bash\nmodel: sonnet\ncolor: orange",
            1 => "tools:\n  - read\n  - grep\n  - bash\ndisallowedTools: [bash]\nmaxTurns: 15\nmcpServers: github",
            _ => "tools: read, grep, find, ls\nmaxTurns: 5\nmodel: auto-cheap\nlocum: {budget: {max_cost_usd: 0.5}}",
        };
        let body = "Look at the code that the task names, then say what you found and where.\n".repeat(20);
        let text = format!(
            "---\nname: agent-{number}\ndescription: \"Number {number}: reviews changes, finds what is missing\"\n{fields}\n---\n{body}"
        );
        let path = directory.join(format!("agent-{number}.md"));
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn read(directory: &Path) -> anyhow::Result<()> {
    let (agents, problems) = locum::agents::in_directory(directory);
    anyhow::ensure!(problems.is_empty(), "{problems:?}");
    anyhow::ensure!(agents.len() == FILES, "{} agents", agents.len());
    Ok(())
}
