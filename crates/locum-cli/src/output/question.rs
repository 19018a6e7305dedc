//! What tasks want to be asked, at the terminal: one question at a time, while no line of progress moves.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressDrawTarget};
use locum::asking::{Answer, Asker, Question};
use locum::models::BoxFuture;
use nix::fcntl::OFlag;
use nix::sys::termios::{FlushArg, tcflush};
use owo_colors::OwoColorize as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Semaphore;

use super::Output;

/// Bytes of an answer: a word.
const ANSWER_BYTES_MAX: usize = 200;

/// The person at the terminal.
pub(crate) struct Person {
    output: Output,
    /// The lines that must stand still while somebody reads.
    bars: MultiProgress,
    turn: Semaphore,
    /// The rules that the person agreed to for as long as this command runs.
    agreed: Mutex<BTreeSet<String>>,
}

/// Nothing moves until it is dropped.
struct Stillness<'a>(&'a MultiProgress);

impl<'a> Stillness<'a> {
    fn of(bars: &'a MultiProgress) -> Self {
        // A terminal that went away needs no clearing.
        bars.clear().ok();
        bars.set_draw_target(ProgressDrawTarget::hidden());
        Self(bars)
    }
}

impl Drop for Stillness<'_> {
    fn drop(&mut self) {
        self.0.set_draw_target(ProgressDrawTarget::stderr());
    }
}

impl Person {
    /// The person who reads these lines.
    pub(crate) fn new(output: Output, bars: MultiProgress) -> Self {
        Self { output, bars, turn: Semaphore::new(1), agreed: Mutex::default() }
    }

    async fn answer(&self, question: &Question) -> io::Result<Answer> {
        // What was typed before the question was there is no answer to it.
        let terminal = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open("/dev/stdin")?;
        tcflush(&terminal, FlushArg::TCIFLUSH)?;
        let _still = Stillness::of(&self.bars);
        let Question { task, agent, tool, about, rule, .. } = question;
        self.output.aside(&format!("{} wants to use {}: {about}", format!("@{agent} {task}").bold(), tool.bold()));
        self.output.aside(&format!("the rule `{rule}` wants you to agree: [y]es, [a]lways in this run, [N]o"));
        // A terminal is read like a pipe: nothing blocks, and whoever gives up leaves no reader behind.
        let said = line(Receiver::from_file_unchecked(terminal)?).await?;
        Ok(match said.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "a" | "always" => {
                self.agreed.lock().unwrap_or_else(PoisonError::into_inner).insert(rule.clone());
                Answer::Yes
            }
            _ => Answer::No,
        })
    }
}

impl Asker for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Ok(_turn) = self.turn.acquire().await else { return Answer::Nobody };
            if self.agreed.lock().unwrap_or_else(PoisonError::into_inner).contains(&question.rule) {
                return Answer::Yes;
            }
            self.answer(question).await.unwrap_or(Answer::Nobody)
        })
    }
}

/// One line of the terminal; what there is of it where the input ends.
async fn line(mut terminal: Receiver) -> io::Result<String> {
    let mut said = Vec::with_capacity(ANSWER_BYTES_MAX);
    while !said.contains(&b'\n') && said.len() < ANSWER_BYTES_MAX && terminal.read_buf(&mut said).await? > 0 {}
    Ok(String::from_utf8_lossy(&said).into_owned())
}
