//! The worker's way to its parent: everything that a worker has no keys, no store or no tool for is asked for here.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use locum_core::task::Record;
use locum_core::task::event::FailureKind;
use locum_core::task::plan::GrantedTool;
use locum_core::transcript::{Prompt, Reply, ToolOutput, ToolSpec};
use locum_models::model::Deltas;
use locum_models::{Model, ModelError, Prefix};
use serde_json::Value;
use tokio::sync::mpsc;

use super::frame::{Given, Outbox, Piece, Said, ToParent, Wanted};
use crate::asking::{self, Asker, Question};
use crate::store::{self, Appended};
use crate::tools::{Prepared, Tool, ToolFuture, ToolLayerError, ToolScope};

/// Pieces of a reply that wait for the driver; a full queue makes the reader of frames wait.
const PIECES_MAX: usize = 64;

/// What a worker has asked for and not got yet.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(super) outbox: Outbox,
    // Nothing awaits under this lock.
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    last: u64,
    waiting: HashMap<u64, mpsc::Sender<Answer>>,
}

/// What comes back.
#[derive(Debug)]
pub(super) enum Answer {
    Heard(Piece),
    Given(Given),
}

/// One thing that was asked for. Dropped before it is given, the parent is told.
struct Asking<'a> {
    link: &'a Link,
    id: u64,
    answers: mpsc::Receiver<Answer>,
    given: bool,
}

impl Link {
    /// Asks the parent to make records durable.
    pub(crate) async fn append(&self, records: &[Record]) -> Result<Appended, store::Error> {
        let given = self.get(Wanted::Append { records: records.to_vec() }).await;
        match given.map_err(|error| store::Error::Failed(Box::new(error)))? {
            Given::Appended { nearing } => Ok(Appended { moved: Vec::new(), nearing }),
            Given::Overdrawn { shortage } => Err(store::Error::Overdrawn(shortage)),
            other => Err(store::Error::Failed(Box::new(unexpected(&other)))),
        }
    }

    /// Asks the parent for a file, for as long as the task lasts.
    pub(crate) async fn claim(&self, path: &str) -> Result<(), String> {
        match self.get(Wanted::Claim { path: path.to_owned() }).await {
            Ok(Given::Claimed { refused: None }) => Ok(()),
            Ok(Given::Claimed { refused: Some(why) }) => Err(why),
            Ok(other) => Err(format!("cannot be written: {}", unexpected(&other))),
            Err(error) => Err(format!("cannot be written: {error}")),
        }
    }

    /// Sends a line to the operation log.
    pub(crate) fn log(&self, line: String) {
        // A log that cannot be written never stops the work that it describes.
        self.outbox.push(&ToParent::Log { line }).ok();
    }

    /// Hands an answer to whoever asked; nobody may wait for it any more.
    pub(super) async fn take(&self, id: u64, answer: Answer) {
        let waiting = self.locked().waiting.get(&id).cloned();
        if let Some(waiting) = waiting {
            waiting.send(answer).await.ok();
        }
    }

    async fn get(&self, wanted: Wanted) -> io::Result<Given> {
        self.ask(wanted)?.given(&mut |_| {}).await
    }

    fn ask(&self, wanted: Wanted) -> io::Result<Asking<'_>> {
        let (sender, answers) = mpsc::channel(PIECES_MAX);
        let id = {
            let mut asked = self.locked();
            asked.last += 1;
            let id = asked.last;
            asked.waiting.insert(id, sender);
            id
        };
        let asking = Asking { link: self, id, answers, given: false };
        self.outbox.push(&ToParent::Wanted { id, wanted })?;
        Ok(asking)
    }

    fn locked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asking<'_> {
    async fn given(mut self, hear: &mut (dyn FnMut(Piece) + Send)) -> io::Result<Given> {
        loop {
            match self.answers.recv().await {
                Some(Answer::Heard(piece)) => hear(piece),
                Some(Answer::Given(given)) => {
                    self.given = true;
                    return Ok(given);
                }
                None => return Err(io::Error::other("the parent of this worker is gone")),
            }
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.link.locked().waiting.remove(&self.id);
        if !self.given {
            // Without a parent there is nobody to tell.
            self.link.outbox.push(&ToParent::Unwanted { id: self.id }).ok();
        }
    }
}

fn unexpected(given: &Given) -> io::Error {
    io::Error::other(format!("the parent of this worker gave something else: {given:?}"))
}

/// Every model, asked by the parent: it has the same task and knows what to ask.
pub(super) struct ParentModel(pub(super) Arc<Link>);

impl Model for ParentModel {
    fn respond<'a>(
        &'a self,
        _prompt: &'a Prompt<'a>,
        _prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let lost = |error: io::Error| ModelError::new(FailureKind::BadRequest, error.to_string());
            let asking = self.0.ask(Wanted::Reply).map_err(lost)?;
            match asking.given(&mut |piece| deltas(piece.as_delta())).await.map_err(lost)? {
                Given::Reply(reply) => Ok(*reply),
                Given::Failure(failure) => Err(failure.into()),
                other => Err(lost(unexpected(&other))),
            }
        })
    }
}

/// Whoever the parent can ask.
pub(super) struct ParentAsker(pub(super) Arc<Link>);

impl Asker for ParentAsker {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, asking::Answer> {
        Box::pin(async move {
            match self.0.get(Wanted::Consent(question.into())).await {
                Ok(Given::Consent(Said::Yes)) => asking::Answer::Yes,
                Ok(Given::Consent(Said::No)) => asking::Answer::No,
                // Without a parent there is nobody.
                Ok(_) | Err(_) => asking::Answer::Nobody,
            }
        })
    }
}

/// A tool that the parent runs: one that delegates or shares context, or an application's own.
pub(super) struct ParentTool {
    spec: ToolSpec,
    link: Arc<Link>,
}

impl ParentTool {
    /// The parent tells the model about it, so there is nothing to tell here.
    pub(super) fn new(granted: GrantedTool, link: Arc<Link>) -> Self {
        let GrantedTool { name, repeat, .. } = granted;
        Self { spec: ToolSpec { name, description: String::new(), input_schema: Value::Null, repeat }, link }
    }
}

impl Tool for ParentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare<'a>(&'a self, input: &'a Value, _scope: &'a ToolScope) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        Box::pin(async move {
            let wanted = Wanted::Prepared { name: self.spec.name.clone(), input: input.clone() };
            match self.link.get(wanted).await {
                Ok(Given::Prepared { subject, intent }) => Ok(Prepared { subject, intent }),
                Ok(Given::Output(output)) => Err(output),
                Ok(other) => Err(ToolOutput::failed(unexpected(&other).to_string())),
                Err(error) => Err(ToolOutput::failed(error.to_string())),
            }
        })
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            let wanted = Wanted::Output { name: self.spec.name.clone(), input, intent: scope.intent.clone() };
            match self.link.get(wanted).await {
                Ok(Given::Output(output)) => Ok(output),
                Ok(Given::ToolLayer { why }) => Err(ToolLayerError(why)),
                Ok(other) => Err(ToolLayerError(unexpected(&other).to_string())),
                Err(error) => Err(ToolLayerError(error.to_string())),
            }
        })
    }
}
