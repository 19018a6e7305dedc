//! `locum agents`: who can be asked.

use locum::Executor;
use locum::agent::hidden::escape;
use locum::agents::FileProblem;
use locum::protocol::FaceDefaults;

use super::agents_show;
use crate::args::{Agents, Global};
use crate::entrance::Entrance;
use crate::output::{Exit, Output, Table};
use crate::roll::Roll;

pub(super) async fn agents(args: Agents, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Entrance::open(global, output, Executor::InProcess)?;
    let exit = match args {
        Agents::List => door.roll().await.map(|roll| list(&door, &roll)),
        Agents::Show { name } => {
            let shown = door.here()?.opened.desk.show_agent(&name, &FaceDefaults::person()).await;
            shown.map(|shown| agents_show::show(&shown, output))
        }
        // They need no desk of a runtime and were answered before one was made.
        Agents::Lint(_) | Agents::New(_) | Agents::Trust(_) => Ok(Exit::Done),
    };
    Ok(exit.unwrap_or_else(|refusal| output.refuse(&refusal)))
}

fn list(door: &Entrance, roll: &Roll) -> Exit {
    if door.output.is_json() {
        door.output.json(roll);
        return Exit::Done;
    }
    let mut table = Table::new(&["AGENT", "SOURCE", "MODEL", "TURNS", "TOOLS", "FOR"]);
    for agent in &roll.agents {
        let line = &agent.line;
        let source = match agent.mark {
            Some(mark) => format!("{}, {}", line.source, mark.as_str()),
            None => line.source.clone(),
        };
        table.row([
            line.name.to_string(),
            source,
            line.model.clone(),
            line.max_turns.to_string(),
            line.tools.len().to_string(),
            escape(&line.description),
        ]);
    }
    for problem in &roll.problems {
        let dash = || "-".to_owned();
        table.row([stem(problem), "broken".to_owned(), dash(), dash(), dash(), problem.to_string()]);
    }
    door.output.answer(&table.render(door.output.width()));
    if let Some(project) = roll.project.as_ref().filter(|project| !project.trust.is_in_force()) {
        door.output
            .note(&format!("this project is {}; `locum agents trust` shows and trusts it", project.trust.as_str()));
    }
    Exit::Done
}

fn stem(problem: &FileProblem) -> String {
    problem.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
