//! Models of the tests' own: one that remembers what it was asked, one that speaks beat by beat, and one that answers
//! only who has little to do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locum::models::{BoxFuture, Delta, Deltas, Model, ModelError, Prefix};
use locum::transcript::{Message, Prompt, Reply, Stop};
use locum::usage::TokenCount;
use tokio::time::Instant;

/// Passes everything on to another model, and remembers what it was asked and when.
#[derive(Clone)]
pub(crate) struct Witness {
    model: Arc<dyn Model>,
    asked: Arc<Mutex<Vec<Asked>>>,
    under_way: Arc<AtomicUsize>,
    most_under_way: Arc<AtomicUsize>,
}

/// One call of a model.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) agent: String,
    pub(crate) at: Instant,
    pub(crate) tools: Vec<String>,
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) notice: Option<String>,
    /// The most tokens of an answer.
    pub(crate) most: Option<u64>,
    pub(crate) temperature: Option<f64>,
}

impl Asked {
    /// What the user, that is the caller, said first.
    pub(crate) fn task(&self) -> &str {
        match &self.messages[0] {
            Message::User(text) => text,
            other => panic!("a conversation begins with {other:?}"),
        }
    }

    /// What the tools of the last reply answered.
    pub(crate) fn tool_answers(&self) -> Vec<String> {
        let answers = self.messages.iter().rev().map_while(|message| match message {
            Message::Tool { output, .. } => Some(output.text.clone()),
            Message::User(_) | Message::Assistant(_) => None,
        });
        let mut answers: Vec<String> = answers.collect();
        answers.reverse();
        answers
    }
}

impl Witness {
    pub(crate) fn new(model: impl Model + 'static) -> Self {
        Self {
            model: Arc::new(model),
            asked: Arc::default(),
            under_way: Arc::default(),
            most_under_way: Arc::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The most calls that were ever under way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_under_way.load(Ordering::SeqCst)
    }
}

impl Model for Witness {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        self.asked.lock().unwrap().push(Asked {
            agent: prompt.agent.to_string(),
            at: Instant::now(),
            tools: prompt.tools.iter().map(|tool| tool.name.clone()).collect(),
            system: prompt.system.to_owned(),
            messages: prompt.messages.to_vec(),
            notice: prompt.notice.map(str::to_owned),
            most: prompt.max_output_tokens,
            temperature: prompt.temperature,
        });
        Box::pin(async move {
            let here = UnderWay::enter(&self.under_way);
            self.most_under_way.fetch_max(here.now, Ordering::SeqCst);
            self.model.respond(prompt, prefix, deltas).await
        })
    }
}

/// Counts a call while it is under way, also one that is dropped.
struct UnderWay<'a> {
    count: &'a AtomicUsize,
    now: usize,
}

impl<'a> UnderWay<'a> {
    fn enter(count: &'a AtomicUsize) -> Self {
        Self { count, now: count.fetch_add(1, Ordering::SeqCst) + 1 }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One thing that a model does on the way to an answer.
#[derive(Debug, Clone)]
pub(crate) enum Beat {
    /// Nothing, for so many milliseconds.
    Silence(u64),
    /// Says more.
    Says(&'static str),
    /// Shows that it lives.
    Lives,
    /// Ends with everything that it has said.
    Ends,
    /// Fails.
    Fails(ModelError),
    /// Never goes on.
    Hangs,
    /// Breaks inside.
    Panics,
    /// Breaks before it has even begun.
    PanicsAtOnce,
}

/// A model that follows beats: for each call of a task one list.
#[derive(Debug, Clone)]
pub(crate) struct Speaker(pub(crate) Vec<Vec<Beat>>);

impl Speaker {
    /// One call.
    pub(crate) fn once(beats: impl IntoIterator<Item = Beat>) -> Self {
        Self(vec![beats.into_iter().collect()])
    }
}

impl Model for Speaker {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let beats = &self.0[usize::try_from(prompt.call).unwrap()];
        assert!(!matches!(beats[0], Beat::PanicsAtOnce), "this model breaks before it begins");
        Box::pin(async move {
            let mut text = String::new();
            for beat in beats {
                match beat {
                    Beat::Silence(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
                    Beat::Says(more) => {
                        deltas(Delta::Text(more));
                        text.push_str(more);
                    }
                    Beat::Lives => deltas(Delta::Alive),
                    Beat::Ends => break,
                    Beat::Fails(error) => return Err(error.clone()),
                    Beat::Hangs => std::future::pending().await,
                    Beat::Panics | Beat::PanicsAtOnce => panic!("this model breaks"),
                }
            }
            let tokens = locum_core::usage::TokenCount::default();
            Ok(Reply { text, tool_calls: Vec::new(), stop: Stop::End, tokens, opaque: None })
        })
    }
}

/// Answers only those who were asked to narrow what they do, and those who are `free`.
pub(crate) struct Narrowed;

impl Model for Narrowed {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        _deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            if prompt.task != "free" && !prompt.task.contains("Narrow its scope") {
                std::future::pending::<()>().await;
            }
            let text = "Answered.".to_owned();
            Ok(Reply { text, tool_calls: Vec::new(), stop: Stop::End, tokens: TokenCount::default(), opaque: None })
        })
    }
}
