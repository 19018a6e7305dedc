//! `locum man`: what `--help` says, as pages for `man`.

use std::path::Path;

use anyhow::Context as _;
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::output::{Exit, Output};

pub(super) fn man(args: &ManArgs, output: Output) -> anyhow::Result<Exit> {
    let pages = pages()?;
    let Some(directory) = &args.dir else {
        if let Some((_, page)) = pages.first() {
            output.answer(page);
        }
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    for (name, page) in &pages {
        write(&directory.join(name), page)?;
    }
    let (count, directory) = (pages.len(), directory.display());
    output.note(&format!("{count} pages are in {directory}; `man -M` and its like read them from a directory man1"));
    Ok(Exit::Done)
}

fn write(path: &Path, page: &str) -> anyhow::Result<()> {
    std::fs::write(path, page).with_context(|| format!("{} cannot be written", path.display()))
}

/// The page of the program and one for each verb, by the names of their files.
fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let mut command = Cli::whole_command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, &mut pages)?;
    Ok(pages)
}

fn render(command: &clap::Command, pages: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut page = Vec::new();
    let source = format!("locum {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).title(name.clone()).source(source).manual("locum").render(&mut page)?;
    pages.push((format!("{name}.1"), String::from_utf8(page)?));
    command.get_subcommands().filter(|verb| !verb.is_hide_set()).try_for_each(|verb| render(verb, pages))
}
