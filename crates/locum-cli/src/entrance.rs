//! The desk that a person's verb goes to: in this process, or behind a server that `--server` names. Here alone it is
//! decided which; the verbs do not know.

use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use indicatif::MultiProgress;
use locum::progress::Progress;
use locum::protocol::{FaceDefaults, Refusal, SubagentAction};
use locum::settings::environment::LOCUM_SERVER;
use locum::task::Record;
use locum::{Executor, Request, Response, ToolRequest};
use tokio::sync::broadcast;

use crate::args::Global;
use crate::door::{self, Door, Orchestrator};
use crate::output::Output;
use crate::remote::{Abandoned, Remote};
use crate::roll::Roll;

/// A way to a desk, wherever that is.
pub(crate) struct Entrance {
    pub(crate) output: Output,
    /// The model that this call names.
    pub(crate) call_model: Option<String>,
    strict: bool,
    side: Side,
}

enum Side {
    Here(Box<Door>),
    There(Remote),
}

impl Entrance {
    /// Opens the store and builds the desk, unless a server is named.
    pub(crate) fn open(global: &Global, output: Output, executor: Executor) -> anyhow::Result<Self> {
        let setup = door::setup(global, Orchestrator::Person, executor);
        let named = global.server.as_deref().or_else(|| setup.environment.get(LOCUM_SERVER));
        let Some(address) = named else {
            return Ok(Self::here_at(Door::open(global, output, Orchestrator::Person, executor)?));
        };
        for (is_given, flag) in [
            (!global.agents.is_empty(), "--agents"),
            (global.record.is_some(), "--record"),
            (global.sandbox.is_some(), "--sandbox"),
            (global.log_payloads, "--log-payloads"),
        ] {
            ensure!(
                !is_given,
                "{flag} is for the process that works on tasks: give it to `locum serve`, not to a client"
            );
        }
        let remote = Remote::new(address, setup.session_id(), &setup)?;
        let call_model = global.model.as_deref().map(|model| setup.model_name(model));
        Ok(Self { output, call_model, strict: global.strict, side: Side::There(remote) })
    }

    /// The entrance that a door of this process is.
    pub(crate) fn here_at(door: Door) -> Self {
        // The desk itself is strict where it was told to be.
        let (output, call_model) = (door.output, door.call_model.clone());
        Self { output, call_model, strict: false, side: Side::Here(Box::new(door)) }
    }

    /// The door to the desk in this process, for what no server does.
    pub(crate) fn here(&self) -> anyhow::Result<&Door> {
        match &self.side {
            Side::Here(door) => Ok(door),
            Side::There(_) => bail!("a server does not do this for others: leave --server and LOCUM_SERVER out"),
        }
    }

    /// Asks the desk.
    pub(crate) async fn handle(&self, request: Request) -> Result<Response, Refusal> {
        match &self.side {
            Side::Here(door) => door.opened.desk.handle(request).await,
            Side::There(remote) => remote.handle(self.strictly(request), Abandoned::GoesOn).await,
        }
    }

    /// Asks the desk as a person.
    pub(crate) async fn ask(&self, action: SubagentAction) -> Result<Response, Refusal> {
        match &self.side {
            Side::Here(door) => door.ask(action).await,
            Side::There(_) => self.handle(Request::person(ToolRequest::Subagent(action))).await,
        }
    }

    /// Asks the desk under given terms, for somebody who waits for the answer and may stop what was started.
    pub(crate) async fn ask_and_wait(&self, action: SubagentAction, face: FaceDefaults) -> Result<Response, Refusal> {
        match &self.side {
            Side::Here(door) => door.ask_under(action, face).await,
            Side::There(remote) => {
                let request = Request { tool: ToolRequest::Subagent(action), face };
                remote.handle(self.strictly(request), Abandoned::IsCancelled).await
            }
        }
    }

    /// The log of a task.
    pub(crate) async fn log_of(&self, task_id: &str) -> Result<Vec<Record>, Refusal> {
        match &self.side {
            Side::Here(door) => door.opened.desk.log_of(task_id).await,
            Side::There(remote) => remote.log_of(task_id).await,
        }
    }

    /// Everybody who is there.
    pub(crate) async fn roll(&self) -> Result<Roll, Refusal> {
        match &self.side {
            Side::Here(door) => Roll::call(&door.opened.desk, &FaceDefaults::person()).await,
            Side::There(remote) => remote.get("/v1/agents").await,
        }
    }

    /// News about the tasks of this process; none where they are another's.
    pub(crate) fn progress(&self) -> Option<broadcast::Receiver<Arc<Progress>>> {
        match &self.side {
            Side::Here(door) => Some(door.opened.desk.progress()),
            Side::There(_) => None,
        }
    }

    /// The lines of progress.
    pub(crate) fn bars(&self) -> MultiProgress {
        match &self.side {
            Side::Here(door) => door.bars.clone(),
            Side::There(_) => MultiProgress::new(),
        }
    }

    /// Stops what a call that is no longer waited for has started. A server sees by itself that its client left.
    pub(crate) async fn stop(&self) {
        match &self.side {
            Side::Here(door) => door.opened.desk.cancel_held().await,
            Side::There(_) => {}
        }
    }

    /// Hands on what this process has begun and does not wait for. A server stays.
    pub(crate) async fn hand_on(&self) -> anyhow::Result<()> {
        match &self.side {
            Side::Here(door) => {
                door.opened.desk.clone().close().await.context("unfinished tasks could not be handed on")?;
                Ok(())
            }
            Side::There(_) => Ok(()),
        }
    }

    /// Ends what this process keeps for its tasks.
    pub(crate) async fn leave(&self) {
        match &self.side {
            Side::Here(door) => door.leave().await,
            Side::There(_) => {}
        }
    }

    /// Sees to tasks whose worker is gone. A server does so for its sessions.
    pub(crate) async fn look_after_orphans(&self) {
        match &self.side {
            Side::Here(door) => door.look_after_orphans().await,
            Side::There(_) => {}
        }
    }

    fn strictly(&self, mut request: Request) -> Request {
        request.face.strict |= self.strict;
        request
    }
}
