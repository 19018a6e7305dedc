//! What the pages of `docs/` promise: every command in them runs as it is written, and says what the page shows.
//!
//! The blocks of a page are played in their order, in a project of its own. A block of `sh` is run by a shell that stops
//! at the first command that fails; a block of `text` after it shows lines that must be among what it said, `…` standing
//! for anything; a block whose language is followed by a path is written to that file.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::home::{Home, Ran, run};

/// A part of a page that is played.
enum Block {
    Command(String),
    Shown(String),
    File { path: String, text: String },
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize().unwrap()
}

fn blocks(page: &str) -> Vec<Block> {
    let fenced = page.split("\n```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n').and_then(|(kind, text)| block_of(kind, text))).collect()
}

fn block_of(kind: &str, text: &str) -> Option<Block> {
    match kind.split_once(' ') {
        Some((_, path)) => Some(Block::File { path: path.to_owned(), text: format!("{text}\n") }),
        None if kind == "sh" => Some(Block::Command(text.to_owned())),
        None if kind == "text" => Some(Block::Shown(text.to_owned())),
        None => None,
    }
}

/// A line of a page is said if its pieces around `…` come in their order in one line.
fn is_said(shown: &str, said: &str) -> bool {
    said.lines().any(|line| {
        let mut rest = line;
        shown.split('…').map(str::trim).all(|piece| match rest.split_once(piece) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    })
}

/// A project under version control, in which `locum` is a command.
pub(crate) fn project() -> Home {
    let home = Home::new();
    std::fs::create_dir(home.root().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_locum"), home.root().join("bin/locum")).unwrap();
    std::fs::remove_dir(home.project().join(".git")).unwrap();
    let commit = "git init -q . && git add . && git -c user.name=t -c user.email=t@localhost commit -qm first";
    assert_eq!(shell(&home, commit).code, Some(0));
    home
}

/// Runs a script that stops at the first command that fails.
pub(crate) fn shell(home: &Home, script: &str) -> Ran {
    run(program(home, "bash", &["-euo", "pipefail", "-c", script]), b"")
}

/// A program that finds `locum`.
pub(crate) fn program(home: &Home, program: &str, arguments: &[&str]) -> std::process::Command {
    let path = format!("{}:{}", home.root().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = home.command(&[]);
    let variables: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = std::process::Command::new(program);
    command.args(arguments).env_clear().current_dir(home.project());
    command.envs(variables.into_iter().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
    command
}

/// Plays a page; what it promises and does not keep.
fn play(page: &str) -> Result<(), String> {
    let home = project();
    let mut said = String::new();
    for block in blocks(page) {
        match block {
            Block::File { path, text } => {
                home.write(&path, &text);
            }
            Block::Command(script) => {
                let ran = shell(&home, &script);
                said = format!("{}\n{}", ran.stdout, ran.stderr);
                if ran.code != Some(0) {
                    return Err(format!("this fails:\n{script}\n{said}"));
                }
            }
            Block::Shown(text) => {
                if let Some(line) = text.lines().find(|line| !is_said(line, &said)) {
                    return Err(format!("this is shown and not said: {line}\n{said}"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_command_of_every_page_runs_and_says_what_is_shown() {
    let pages = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let pages: Vec<PathBuf> =
        pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    assert!(!pages.is_empty());
    let broken = |path: &PathBuf| {
        let broken = play(&std::fs::read_to_string(path).unwrap()).err()?;
        Some(format!("{}: {broken}", path.file_name()?.display()))
    };
    let broken: Vec<String> = pages.iter().filter_map(broken).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}

#[test]
fn a_page_that_promises_too_much_is_found() {
    let check = |page: &str| play(page).is_ok();
    assert!(check("\n```sh\necho one two three\n```\n\n```text\none … three\n```\n"));
    assert!(!check("\n```sh\necho one two three\n```\n\n```text\nthree … one\n```\n"));
    assert!(!check("\n```sh\nfalse\necho later\n```\n"));
    assert!(check("\n```toml a/b.toml\nx = 1\n```\n\n```sh\ngrep -q x a/b.toml\n```\n"));
}
