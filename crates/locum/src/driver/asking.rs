//! Asking the model once: what is heard of it, who is told meanwhile, and what came of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use locum_core::task::Task;
use locum_core::task::event::{Activity, FailureKind};
use locum_core::transcript::{Reply, ToolSpec};
use locum_models::{Delta, ModelError, Prefix};

use super::attend::{Attention, Heard, Interrupt};
use crate::hands::Hands;
use crate::progress::Telling;
use crate::recorder;

/// The call that a task announced.
pub(crate) struct Asking<'a> {
    pub(crate) hands: &'a Hands,
    pub(crate) task: &'a Task,
    pub(crate) tools: &'a Arc<[ToolSpec]>,
    pub(crate) attention: &'a Attention,
    pub(crate) heard: &'a Heard,
}

impl Asking<'_> {
    /// Makes the call. What is heard of it is passed on to `relay` too, without secrets. Dropping the future ends the
    /// request.
    pub(crate) async fn ask(
        &self,
        prefix: &mut Prefix,
        relay: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Result<Reply, ModelError>, Interrupt> {
        let answer = self.call(prefix, relay).await;
        if let Ok(answer) = &answer {
            recorder::record(self.hands, self.task, self.tools, answer);
        }
        answer
    }

    async fn call(
        &self,
        prefix: &mut Prefix,
        relay: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<Result<Reply, ModelError>, Interrupt> {
        let Self { hands, task, tools, attention, heard } = self;
        let plan = task.plan();
        let model = match hands.models.open(task.model()) {
            Ok(model) => model,
            Err(error) => return Ok(Err(error)),
        };
        let prompt = task.prompt(tools);
        let mut telling = Telling::new(&hands.hub, plan, task.seq());
        let mut pieces = hands.redactor.pieces();
        let mut hear = |delta: Delta<'_>| match delta {
            Delta::Text(text) => {
                heard.push(text);
                pass_on(pieces.push(text), relay, &mut telling);
            }
            Delta::ToolCall { .. } => {
                heard.begin();
                relay(delta);
            }
            Delta::Alive => {
                heard.beat();
                relay(delta);
            }
            Delta::Held { provider, hold } => {
                heard.hold();
                hands.waits.begin(&plan.uid, provider, hold);
                relay(delta);
            }
        };
        // The call itself is inside too: a model may break before it returns its future.
        let respond = AssertUnwindSafe(async { model.respond(&prompt, prefix, &mut hear).await }).catch_unwind();
        let answered = attention.attend(respond, Activity::Model, heard).await;
        pass_on(pieces.finish(), relay, &mut telling);
        hands.waits.end(&plan.uid);
        Ok(answered?.unwrap_or_else(|_| Err(ModelError::new(FailureKind::BadRequest, "the model's adapter panicked"))))
    }
}

/// Passes cleaned text on. There may be none yet: what could be the beginning of a secret is held back.
fn pass_on(text: String, relay: &mut (dyn FnMut(Delta<'_>) + Send), telling: &mut Telling<'_>) {
    if !text.is_empty() {
        relay(Delta::Text(&text));
        telling.tell(text);
    }
}
