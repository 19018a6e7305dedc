//! What a person sees while tasks run: one line for each, with agent, turn, tool and elapsed time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use locum::Uid;
use locum::progress::{News, Progress};
use locum::task::TaskEvent;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::voice::Voice;
use crate::news;

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The lines of the tasks that run.
pub(crate) struct Live<'a> {
    bars: MultiProgress,
    lines: HashMap<Uid, ProgressBar>,
    voice: Option<&'a mut Voice>,
}

impl<'a> Live<'a> {
    /// Lines among these bars.
    pub(crate) fn new(bars: MultiProgress, voice: Option<&'a mut Voice>) -> Self {
        Self { bars, lines: HashMap::new(), voice }
    }

    /// Shows news until there is none. Never returns on its own while tasks may run: it is dropped with the wait that
    /// it accompanies.
    pub(crate) async fn show(&mut self, mut news: Receiver<Arc<Progress>>) {
        loop {
            match news.recv().await {
                Ok(progress) => self.take(&progress),
                // What was missed is in the log; the next news is newer anyway.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
            }
        }
    }

    fn take(&mut self, progress: &Progress) {
        if let Some(voice) = &mut self.voice
            && let Some(lines) = voice.hear(progress)
        {
            self.bars.suspend(|| voice.say(&lines));
        }
        if let News::Event(record) = &progress.news
            && matches!(record.event, TaskEvent::Ended { .. })
        {
            if let Some(line) = self.lines.remove(&progress.uid) {
                line.finish_and_clear();
            }
            return;
        }
        if let Some(words) = news::words(progress) {
            self.line(progress).set_message(words);
        }
    }

    fn line(&mut self, progress: &Progress) -> &ProgressBar {
        let bars = &self.bars;
        self.lines.entry(progress.uid.clone()).or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner:.cyan} {prefix:.bold} {wide_msg} {elapsed:.dim}");
            let line = bars.add(ProgressBar::new_spinner());
            // A template that cannot be read leaves the default style.
            if let Ok(style) = style {
                line.set_style(style);
            }
            line.set_prefix(format!("@{} {}", progress.agent, progress.task_id));
            line.enable_steady_tick(TICK);
            line
        })
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        for line in self.lines.values() {
            line.finish_and_clear();
        }
        // A terminal that went away needs no clearing.
        self.bars.clear().ok();
    }
}
