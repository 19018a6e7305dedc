//! `locum config show`: every setting, its value and where it comes from.

use anyhow::Context as _;
use locum::Executor;
use locum::settings::Setting;
use locum::setup::Setup;
use serde_json::json;

use crate::args::Global;
use crate::door::{self, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) fn show(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let setup = door::setup(global, Orchestrator::Model, Executor::InProcess);
    let (settings, places) = setup.settings().context("the settings cannot be used")?;
    let redactor = setup.redactor(&settings);
    let shown = |setting: &Setting| redactor.value(setting.value.clone());
    if output.is_json() {
        let row = |setting: &Setting| {
            let (name, origin) = (&setting.name, setting.origin.to_string());
            anyhow::Ok(json!({"name": name, "value": shown(setting)?, "origin": origin}))
        };
        let all = settings.all().iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
        output.json(&json!({"settings": all, "config_file": places.config_file(), "database": places.database(), "logs": places.logs()}));
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]);
    for setting in settings.all() {
        table.row([setting.name.clone(), shown(setting)?.to_string(), setting.origin.to_string()]);
    }
    output.answer(&table.render(output.width()));
    if let Some(note) = not_in_force(&setup)? {
        output.note(&note);
    }
    output.note(&format!("settings {}", places.config_file().display()));
    output.note(&format!("store    {}", places.database().display()));
    output.note(&format!("logs     {}", places.logs().display()));
    Ok(Exit::Done)
}

/// What to say of a project's settings that are there and do nothing.
fn not_in_force(setup: &Setup) -> anyhow::Result<Option<String>> {
    let review = setup.review()?;
    let has_settings = review.files.iter().any(|file| file.path.ends_with("config.toml"));
    let is_idle = has_settings && !review.trust.is_in_force();
    Ok(is_idle.then(|| format!("the project's own settings are not in force: it is {}", review.trust.as_str())))
}
