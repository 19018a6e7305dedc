//! One call under way: it waits for its answer, tells of progress to a client that asked for it, and ends without an
//! answer when the client gives it up or leaves. A task that it waited for goes on either way.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use locum::faces::FaceAnswer;
use locum::progress::Progress;
use locum::protocol::SubagentAction;
use locum::protocol::request::Cancel;
use locum::{Desk, Following, Uid};
use rmcp::model::{
    CallToolRequestParams, InputRequests, InputRequiredResult, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

use super::asking::{self, Attending};
use super::pace::{Notice, Pace};
use super::repeat::Repeat;
use super::server::{House, Place};
use crate::news;

/// How long a call may still take when the client said no more: enough to answer what needs no waiting.
const LEAVING: Duration = Duration::from_millis(300);

/// What a client says of a call that it may give up, among what it says about its request.
const ABANDONED: &str = "locum/abandoned";

/// How a call ended.
pub(super) enum Ended {
    Answered(Box<FaceAnswer>),
    /// A person has to be asked first; the client asks again with what they said.
    Asks(Box<InputRequiredResult>),
    /// The client gave it up.
    GivenUp,
    /// The client left before there was an answer.
    Left,
}

/// What may happen next to a call that waits.
enum Next {
    Answer(FaceAnswer),
    Question(InputRequests),
    GivenUp,
    Left,
    News(Arc<Progress>),
    Due,
}

/// Carries a call to its end.
pub(super) async fn carry_out(
    Place { face, desk }: &Place,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    House { left, clients, .. }: &House,
) -> Result<Ended, ErrorData> {
    let token = context.meta.get_progress_token();
    let ends_when_given_up = wants_end(context)?;
    let (desk, mut following) = match token.is_some() || ends_when_given_up {
        true => {
            let (desk, following) = desk.followed();
            (desk, Some(following))
        }
        false => (desk.clone(), None),
    };
    let session = &desk.session().id;
    clients.bring(session, &request.input_responses.unwrap_or_default());
    let attending = can_be_asked_in_answers(context).then(|| clients.attend(session.clone()));
    let repeat = Repeat::of(request.request_state, &desk)?;
    let mut input = Value::Object(request.arguments.unwrap_or_default());
    if attending.is_some() {
        repeat.mark(*face, &request.name, &mut input);
    }
    let mut answer = pin!(face.handle(&desk, &request.name, input));
    let mut leaving = pin!(async {
        left.cancelled().await;
        sleep(LEAVING).await;
    });
    let mut pace = Pace::new(Instant::now());
    loop {
        let next = tokio::select! {
            biased;
            answer = &mut answer => Next::Answer(answer),
            () = context.ct.cancelled() => Next::GivenUp,
            () = &mut leaving => Next::Left,
            question = next_question(attending.as_ref()) => Next::Question(question),
            () = sleep_until(pace.due()), if token.is_some() && !left.is_cancelled() => Next::Due,
            news = next_news(&mut following) => Next::News(news),
        };
        match (next, &token) {
            (Next::Answer(answer), _) => return Ok(Ended::Answered(Box::new(answer))),
            (Next::Question(question), _) => {
                return Ok(Ended::Asks(Box::new(asking::input_required(question, repeat.state()))));
            }
            (Next::GivenUp, _) => {
                if let Some(following) = following.filter(|_| ends_when_given_up) {
                    end(&desk, &following.tasks()).await;
                }
                return Ok(Ended::GivenUp);
            }
            (Next::Left, _) => return Ok(Ended::Left),
            (Next::News(news), _) => {
                if let Some(words) = news::words(&news) {
                    pace.take(format!("@{} {} {words}", news.agent, news.task_id));
                }
            }
            (Next::Due, Some(token)) => {
                // The SDK sends no more notifications once the client has left, and would keep this waiting.
                left.run_until_cancelled(tell(context, token, pace.tell(Instant::now()))).await;
            }
            (Next::Due, None) => {}
        }
    }
}

/// Whether the client said beforehand that what the call started ends with it, if it is given up.
fn wants_end(context: &RequestContext<RoleServer>) -> Result<bool, ErrorData> {
    match context.meta.get(ABANDONED) {
        None => Ok(false),
        Some(wish) if wish == "cancel" => Ok(true),
        Some(_) => Err(ErrorData::invalid_params(format!("`{ABANDONED}` must be cancel"), None)),
    }
}

/// Ends tasks that nobody waits for any more.
async fn end(desk: &Desk, tasks: &[Uid]) {
    for uid in tasks {
        // One that is gone needs no end.
        let Ok(task) = desk.task(uid.as_str()).await else { continue };
        let cancel = Cancel { task_id: task.status.task_id.to_string() };
        desk.handle(SubagentAction::Cancel(cancel)).await.ok();
    }
}

/// Whether a request is of the later era, in which none needs an earlier one.
pub(super) fn stands_alone(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether the client can be asked only in the place of an answer: others are asked at any time.
fn can_be_asked_in_answers(context: &RequestContext<RoleServer>) -> bool {
    stands_alone(context) && asking::can_ask(context.client_capabilities().as_ref())
}

async fn next_question(attending: Option<&Attending<'_>>) -> InputRequests {
    match attending {
        Some(attending) => attending.question().await,
        None => std::future::pending().await,
    }
}

async fn next_news(following: &mut Option<Following>) -> Arc<Progress> {
    match following {
        Some(following) => following.next().await,
        None => std::future::pending().await,
    }
}

/// Sends a notification. It returns when that is written, so that none can follow the answer.
async fn tell(context: &RequestContext<RoleServer>, token: &ProgressToken, Notice { progress, message }: Notice) {
    let notice = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
    // A client that cannot be told any more has left, which the connection notices.
    context.peer.notify_progress(notice).await.ok();
}
