//! `locum models`: which models there are, what they cost, which can be used, and which one routing would choose.

use locum::Executor;
use locum::desk::Routed;
use locum::routing::{Catalogue, ModelEntry};
use locum::usage::Price;
use serde_json::{Value, json};

use crate::args::{Global, Models, RouteArgs};
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) async fn models(args: Models, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let door = Door::open(global, output, Orchestrator::Model, Executor::InProcess)?;
    Ok(match args {
        Models::List => list(&door),
        Models::Show { name } => show(&door, &name),
        Models::Probe => probe(&door).await,
        Models::Route(args) => route(&door, &args),
    })
}

fn list(door: &Door) -> Exit {
    let catalogue = door.opened.desk.models();
    let (session, why) = door.opened.desk.session_model();
    if door.output.is_json() {
        let models: Vec<Value> = catalogue.models.iter().map(|entry| in_json(entry, catalogue)).collect();
        door.output.json(&json!({"session": {"model": session, "why": why}, "models": models}));
        return Exit::Done;
    }
    let mut table = Table::new(&["MODEL", "USABLE", "IN", "OUT", "WINDOW", "CODE/VISION/TEXT", "ALIASES"]);
    for entry in &catalogue.models {
        let dollars = |part: fn(&Price) -> f64| entry.price.as_ref().map_or("?".to_owned(), |price| money(part(price)));
        table.row([
            entry.name.to_string(),
            if is_usable(entry, catalogue) { "yes".to_owned() } else { "no".to_owned() },
            dollars(|price| price.input),
            dollars(|price| price.output),
            entry.context_window.map_or("?".to_owned(), |tokens| format!("{}k", tokens / 1000)),
            ratings(entry),
            entry.aliases.join(", "),
        ]);
    }
    door.output.answer(&table.render(door.output.width()));
    door.output.note("IN and OUT are US dollars per million tokens; a model is usable with its key or server set");
    door.output.note(&format!("the session's model is {session}: {why}"));
    Exit::Done
}

fn show(door: &Door, name: &str) -> Exit {
    let catalogue = door.opened.desk.models();
    let Some(model) = catalogue.resolve(name) else { return door.output.refuse(&catalogue.not_found(name)) };
    let entry = catalogue.entry(&model).cloned().unwrap_or_else(|| ModelEntry::named(model));
    if door.output.is_json() {
        door.output.json(&in_json(&entry, catalogue));
        return Exit::Done;
    }
    let price = entry.price.as_ref().map_or("not known".to_owned(), |price| {
        let parts = [price.input, price.output, price.cache_read, price.cache_write].map(money);
        format!(
            "{} in, {} out, {} cache read, {} cache write (US dollars per million tokens)",
            parts[0], parts[1], parts[2], parts[3]
        )
    });
    let aliases = if entry.aliases.is_empty() { "none".to_owned() } else { entry.aliases.join(", ") };
    let usable = if is_usable(&entry, catalogue) { "yes" } else { "no: no key and no server for it is set" };
    let window = entry.context_window.map_or("not known".to_owned(), |tokens| format!("{tokens} tokens"));
    door.output.answer(&format!(
        "{}\naliases   {aliases}\nusable    {usable}\nwindow    {window}\nprice     {price}\nratings   {} (code/vision/text)\nsupports  {}",
        entry.name,
        ratings(&entry),
        supports(&entry)
    ));
    Exit::Done
}

fn route(door: &Door, args: &RouteArgs) -> Exit {
    let Routed { ranking, choice } = door.opened.desk.route(&args.task.join(" "), &args.hints());
    let choice = match choice {
        Ok(choice) => choice,
        Err(refusal) => return door.output.refuse(&refusal),
    };
    if door.output.is_json() {
        let need = &ranking.need;
        let candidates = ranking.candidates.iter();
        door.output.json(&json!({
            "model": choice.receipt.effective,
            "why": choice.receipt.why,
            "warning": choice.warning,
            "need": {
                "task_type": need.task_type.as_str(),
                "complexity": need.complexity,
                "cost_preference": need.preference.as_str(),
                "model_scope": need.scope,
                "because": need.because,
            },
            "candidates": candidates.map(|candidate| json!({
                "model": candidate.name.to_string(),
                "score": candidate.score,
                "rating": candidate.rating,
                "price": candidate.price,
            })).collect::<Vec<_>>(),
            "passed_over": ranking.passed_over.iter()
                .map(|(name, why)| json!({"model": name.to_string(), "why": why}))
                .collect::<Vec<_>>(),
        }));
        return Exit::Done;
    }
    door.output.answer(&format!("{}\n{}\n", choice.receipt.effective, choice.receipt.why));
    let mut table = Table::new(&["MODEL", "SCORE", "RATING", "IN", "OUT", ""]);
    for candidate in &ranking.candidates {
        let dollars =
            |part: fn(&Price) -> f64| candidate.price.as_ref().map_or("?".to_owned(), |price| money(part(price)));
        let (input, output) = (dollars(|price| price.input), dollars(|price| price.output));
        let score = format!("{:.1}", candidate.score);
        table.row([candidate.name.to_string(), score, candidate.rating.to_string(), input, output, String::new()]);
    }
    for (name, why) in &ranking.passed_over {
        let none = || "-".to_owned();
        table.row([name.to_string(), none(), none(), none(), none(), why.clone()]);
    }
    door.output.answer(&table.render(door.output.width()));
    if let Some(warning) = &choice.warning {
        door.output.warn(warning);
    }
    Exit::Done
}

async fn probe(door: &Door) -> Exit {
    let servers = door.opened.desk.probe_models().await;
    if door.output.is_json() {
        let servers: Vec<Value> = servers
            .iter()
            .map(|server| match &server.models {
                Ok(models) => json!({"provider": server.provider, "url": server.url, "models": models}),
                Err(error) => json!({"provider": server.provider, "url": server.url, "error": error.message}),
            })
            .collect();
        door.output.json(&json!({ "servers": servers }));
        return Exit::Done;
    }
    let mut table = Table::new(&["SERVER", "URL", "MODELS"]);
    for server in &servers {
        let models = match &server.models {
            Ok(models) if models.is_empty() => "none".to_owned(),
            Ok(models) => models.join(", "),
            Err(error) => format!("no answer: {}", error.message),
        };
        table.row([server.provider.clone(), server.url.clone(), models]);
    }
    door.output.answer(&table.render(door.output.width()));
    Exit::Done
}

fn in_json(entry: &ModelEntry, catalogue: &Catalogue) -> Value {
    json!({
        "model": entry.name.to_string(),
        "provider": entry.name.provider,
        "id": entry.name.id,
        "aliases": entry.aliases,
        "usable": is_usable(entry, catalogue),
        "context_window": entry.context_window,
        "price": entry.price,
        "ratings": entry.ratings,
        "supports": entry.supports,
    })
}

/// The built-in models need neither key nor server.
fn is_usable(entry: &ModelEntry, catalogue: &Catalogue) -> bool {
    catalogue.is_reachable(&entry.name) || entry.name == catalogue.session.name || entry.name.id.is_empty()
}

fn ratings(entry: &ModelEntry) -> String {
    entry.ratings.map_or("?".to_owned(), |ratings| format!("{}/{}/{}", ratings.code, ratings.vision, ratings.text))
}

fn supports(entry: &ModelEntry) -> String {
    let supports = entry.supports;
    let known = [
        (supports.tools, "tools"),
        (supports.vision, "vision"),
        (supports.thinking, "thinking"),
        (supports.tools_as_schema, "tools as schema"),
    ];
    let named: Vec<&str> = known.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    if named.is_empty() { "nothing further".to_owned() } else { named.join(", ") }
}

/// A price, without zeros that say nothing.
fn money(dollars: f64) -> String {
    let text = format!("{dollars:.4}");
    let text = text.trim_end_matches('0');
    text.strip_suffix('.').unwrap_or(text).to_owned()
}
