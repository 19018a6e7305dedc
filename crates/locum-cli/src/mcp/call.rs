//! One call under way: it waits for its answer, tells of progress to a client that asked for it, and ends without an
//! answer when the client gives it up or leaves. A task that it waited for goes on either way.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use locum::faces::{Face, FaceAnswer};
use locum::progress::Progress;
use locum::{Desk, Following};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::pace::{Notice, Pace};
use crate::news;

/// How long a call may still take when the client said no more: enough to answer what needs no waiting.
const LEAVING: Duration = Duration::from_millis(300);

/// How a call ended.
pub(super) enum Ended {
    Answered(Box<FaceAnswer>),
    /// The client gave it up.
    GivenUp,
    /// The client left before there was an answer.
    Left,
}

/// What may happen next to a call that waits.
enum Next {
    Ended(Ended),
    News(Arc<Progress>),
    Due,
}

/// Carries a call to its end.
pub(super) async fn carry_out(
    face: Face,
    desk: &Desk,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
    left: &CancellationToken,
) -> Ended {
    let token = context.meta.get_progress_token();
    let (desk, mut following) = match &token {
        Some(_) => {
            let (desk, following) = desk.followed();
            (desk, Some(following))
        }
        None => (desk.clone(), None),
    };
    let input = Value::Object(request.arguments.unwrap_or_default());
    let mut answer = pin!(face.handle(&desk, &request.name, input));
    let mut leaving = pin!(async {
        left.cancelled().await;
        sleep(LEAVING).await;
    });
    let mut pace = Pace::new(Instant::now());
    loop {
        let next = tokio::select! {
            biased;
            answer = &mut answer => Next::Ended(Ended::Answered(Box::new(answer))),
            () = context.ct.cancelled() => Next::Ended(Ended::GivenUp),
            () = &mut leaving => Next::Ended(Ended::Left),
            () = sleep_until(pace.due()), if token.is_some() && !left.is_cancelled() => Next::Due,
            news = next_news(&mut following) => Next::News(news),
        };
        match (next, &token) {
            (Next::Ended(ended), _) => return ended,
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
