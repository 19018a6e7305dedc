//! `locum doctor`: whether everything that locum needs is there, and what to do where it is not.

use locum::Executor;
use locum::checkup::{Checked, Health};
use locum::settings::environment::LOCUM_SERVER;
use locum::setup::Setup;
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};

use crate::args::Global;
use crate::door::{self, Orchestrator};
use crate::output::{Exit, Output};
use crate::remote::Remote;

pub(super) async fn doctor(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let setup = door::setup(global, Orchestrator::Person, Executor::InProcess);
    let mut checked = setup.checkup().await;
    if let Some(address) = global.server.as_deref().or_else(|| setup.environment.get(LOCUM_SERVER)) {
        checked.push(server(address, &setup).await);
    }
    checked.push(terminal(output));
    let exit = if checked.iter().any(|checked| checked.health == Health::Poor) { Exit::Failed } else { Exit::Done };
    if output.is_json() {
        output.json(&json!({ "checks": checked }));
        return Ok(exit);
    }
    let lines: Vec<String> = checked.iter().map(line).collect();
    output.answer(&lines.join("\n"));
    Ok(exit)
}

fn line(checked: &Checked) -> String {
    let mark = match checked.health {
        Health::Good => "ok  ".green().to_string(),
        Health::Fair => "note".yellow().to_string(),
        Health::Poor => "bad ".red().to_string(),
    };
    let advice = checked.advice.as_ref().map(|advice| format!("\n               {advice}")).unwrap_or_default();
    format!("{mark}  {:<8} {}{advice}", checked.topic, checked.found)
}

/// Whether the server that verbs are sent to answers.
async fn server(address: &str, setup: &Setup) -> Checked {
    let asked = match Remote::new(address, setup.session_id(), setup) {
        Ok(remote) => remote.get::<Value>("/v1/sessions").await.map_err(|refusal| refusal.message),
        Err(error) => Err(format!("{error:#}")),
    };
    let advice = "start it with `locum serve`, or leave --server and LOCUM_SERVER out".to_owned();
    let (health, found, advice) = match asked {
        Ok(_) => (Health::Good, format!("{address} answers; verbs are sent there"), None),
        Err(why) => (Health::Poor, why, Some(advice)),
    };
    Checked { topic: "server", health, found, advice }
}

fn terminal(output: Output) -> Checked {
    let plain = || "standard output is no terminal: plain text, nothing is cut".to_owned();
    let found = output.width().map_or_else(plain, |columns| format!("{columns} columns"));
    Checked { topic: "terminal", health: Health::Good, found, advice: None }
}
