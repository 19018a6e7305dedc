//! `locum agents trust`: shows what of a project would act, asks, and remembers the answer.

use std::path::Path;

use anyhow::Context as _;
use locum::Executor;
use locum::agents::{Review, Trust, TrustList};
use locum::clock::{Clock as _, SystemClock};
use locum::protocol::{Code, Refusal};
use locum::settings::project_root;
use serde_json::json;

use crate::args::{Global, TrustArgs};
use crate::door::{self, Orchestrator};
use crate::output::{Exit, Output, Table};

pub(super) fn trust(args: &TrustArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let setup = door::setup(global, Orchestrator::Person, Executor::InProcess);
    let list = setup.trust_list()?;
    if args.list {
        return show_list(&list, output);
    }
    if let Some(directory) = &args.revoke {
        return revoke(&list, directory, output);
    }
    let mut review = setup.review()?;
    if review.trust == Trust::Nothing {
        let message = "this project has no agents and no settings of its own; there is nothing to trust";
        return Ok(tell(&review, message, output));
    }
    if let Some(problem) = review.obstacle() {
        let refusal = Refusal::new(Code::NotTrusted, format!("the project cannot be trusted: {problem}"));
        return Ok(output.refuse(&refusal.hint("take it out of the project's settings; the user's own may set it")));
    }
    if review.trust == Trust::Trusted {
        return Ok(tell(&review, "this project is trusted already, as it is now", output));
    }
    let is_trusted = if args.yes { keep(&review)? } else { offer(&review, output)? };
    if is_trusted {
        review.trust = Trust::Trusted;
        return Ok(tell(&review, "trusted", output));
    }
    let refusal = Refusal::new(Code::NotTrusted, "the project was not trusted");
    Ok(output.refuse(&refusal.hint("`locum agents trust --yes` trusts it without a question")))
}

/// Shows what would act and asks whether it may; what was shown is what is trusted.
pub(crate) fn offer(review: &Review, output: Output) -> anyhow::Result<bool> {
    if !output.can_ask() || review.obstacle().is_some() {
        return Ok(false);
    }
    output.aside(&described(review));
    if output.asks(&format!("Trust {} as it is now?", review.root.display())) { keep(review) } else { Ok(false) }
}

fn keep(review: &Review) -> anyhow::Result<bool> {
    review.trust(SystemClock.now()).context("the project could not be trusted")?;
    Ok(true)
}

fn described(review: &Review) -> String {
    let changed = if review.trust == Trust::Changed { " (it has changed since it was trusted)" } else { "" };
    let mut text = format!("{}{changed}", review.root.display());
    for file in &review.files {
        text.push_str(&format!("\n  {}  {}", file.path, file.says));
        if let Some(problem) = &file.problem {
            text.push_str(&format!(": {problem}"));
        }
        if file.hidden_characters > 0 {
            text.push_str(&format!(" [{} HIDDEN CHARACTERS]", file.hidden_characters));
        }
    }
    text
}

fn tell(review: &Review, message: &str, output: Output) -> Exit {
    if output.is_json() {
        output.json(review);
    } else {
        output.answer(&format!("{}\n{message}", described(review)));
    }
    Exit::Done
}

fn show_list(list: &TrustList, output: Output) -> anyhow::Result<Exit> {
    let projects = list.all()?;
    if output.is_json() {
        output.json(&json!({"projects": projects}));
        return Ok(Exit::Done);
    }
    if projects.is_empty() {
        output.note("no project is trusted");
    } else {
        let mut table = Table::new(&["PROJECT", "TRUSTED", "AS"]);
        for project in projects {
            table.row([project.root.display().to_string(), project.trusted_at.to_string(), project.hash]);
        }
        output.answer(&table.render(output.width()));
    }
    Ok(Exit::Done)
}

fn revoke(list: &TrustList, directory: &Path, output: Output) -> anyhow::Result<Exit> {
    // One that is gone can be revoked by the path that the list shows.
    let root = if directory.is_dir() { project_root(directory) } else { directory.to_owned() };
    let was_trusted = list.revoke(&root)?;
    if output.is_json() {
        output.json(&json!({"root": root, "revoked": was_trusted}));
    } else if was_trusted {
        output.answer(&format!("{} is no longer trusted", root.display()));
    } else {
        output.answer(&format!("{} was not trusted", root.display()));
    }
    Ok(Exit::Done)
}
