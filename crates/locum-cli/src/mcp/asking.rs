//! Asking the person at a client whether a call of an agent may be made. A client that opened a session is asked while
//! its calls go on. One whose requests stand alone is asked in the place of an answer, and asks again with what the
//! person said.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use locum::asking::{Answer, Asker, Question};
use locum::{SessionId, TaskId};
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

/// How long a question waits for the request that brings its answer: a person may be away for a while.
const ANSWER_WAIT: Duration = Duration::from_secs(15 * 60);

/// Questions of calls that wait at once; beyond it they are answered as if nobody were there.
const PENDING_MAX: usize = 1000;

/// Tasks that are remembered as asked for; beyond it they are forgotten until they are asked for again.
const POLLED_MAX: usize = 10_000;

/// The field of the form, and the name under which it is asked for.
const FIELD: &str = "allow";

/// The clients that can be asked.
#[derive(Default)]
pub(crate) struct Clients {
    known: Mutex<Known>,
    /// Rung when a question is there.
    bell: Notify,
}

#[derive(Default)]
struct Known {
    /// Those that opened a session and can be asked, by locum's session. The last one counts.
    peers: HashMap<SessionId, Peer<RoleServer>>,
    /// How many calls of a session could carry a question to their client.
    attending: HashMap<SessionId, usize>,
    /// Tasks that a client asks for again and again, and that could carry one, too.
    polled: HashSet<(SessionId, TaskId)>,
    pending: Vec<Pending>,
    count: u64,
}

/// A question that goes to its client in the place of an answer.
struct Pending {
    number: u64,
    question: Question,
    answer: oneshot::Sender<Answer>,
    /// Whether a call has taken it.
    is_told: bool,
}

impl Pending {
    /// The question under its name, which a call or a task takes to the client.
    fn tell(&mut self) -> (String, InputRequest) {
        self.is_told = true;
        (format!("{FIELD}{}", self.number), InputRequest::Elicitation(ElicitRequest::new(form(&self.question))))
    }
}

/// Whether a client says that it shows forms to a person.
pub(super) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // One that names no way at all means forms: there was nothing else when the capability was new.
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

impl Clients {
    /// Somebody who can be asked has opened a session.
    pub(super) fn enter(&self, session: SessionId, peer: Peer<RoleServer>) {
        let mut known = self.locked();
        known.peers.retain(|_, peer| !peer.is_transport_closed());
        known.peers.insert(session, peer);
    }

    /// A call of a session waits, and could carry a question.
    pub(super) fn attend(&self, session: SessionId) -> Attending<'_> {
        *self.locked().attending.entry(session.clone()).or_default() += 1;
        Attending { clients: self, session }
    }

    /// A task is asked for by a client that can be asked itself.
    pub(super) fn poll(&self, session: SessionId, task: TaskId) {
        let mut known = self.locked();
        if known.polled.len() >= POLLED_MAX {
            known.polled.clear();
        }
        known.polled.insert((session, task));
    }

    /// The questions of a task that wait for an answer.
    pub(super) fn questions(&self, session: &SessionId, task: TaskId) -> InputRequests {
        let mut known = self.locked();
        let is_meant = |pending: &&mut Pending| pending.question.session == *session && pending.question.task == task;
        known.pending.iter_mut().filter(is_meant).map(Pending::tell).collect()
    }

    /// Brings the answers that came with a request. What nobody waits for any more is passed over.
    pub(super) fn bring(&self, session: &SessionId, responses: &InputResponses) {
        for (name, response) in responses {
            let Some(number) = name.strip_prefix(FIELD).and_then(|number| number.parse::<u64>().ok()) else { continue };
            let mut known = self.locked();
            let is_meant = |pending: &Pending| pending.number == number && pending.question.session == *session;
            let Some(place) = known.pending.iter().position(is_meant) else { continue };
            let said = serde_json::from_value::<ElicitResult>(response.clone());
            // Whoever waited may have given up.
            known.pending.swap_remove(place).answer.send(said.map_or(Answer::Nobody, |said| answer(&said))).ok();
        }
    }

    fn locked(&self) -> MutexGuard<'_, Known> {
        // Nothing panics or awaits under this lock.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a question for the calls of its session, if there are any.
    fn leave(&self, question: &Question) -> Option<(u64, oneshot::Receiver<Answer>)> {
        let mut known = self.locked();
        let is_polled = known.polled.contains(&(question.session.clone(), question.task));
        let is_heard = is_polled || known.attending.contains_key(&question.session);
        if !is_heard || known.pending.len() >= PENDING_MAX {
            return None;
        }
        known.count += 1;
        let (number, (sender, receiver)) = (known.count, oneshot::channel());
        known.pending.push(Pending { number, question: question.clone(), answer: sender, is_told: false });
        self.bell.notify_waiters();
        Some((number, receiver))
    }
}

impl Asker for Clients {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let peer = self.locked().peers.get(&question.session).filter(|peer| !peer.is_transport_closed()).cloned();
            if let Some(peer) = peer {
                let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(question)));
                return match peer.send_request(request).await {
                    Ok(ClientResult::ElicitResult(said)) => answer(&said),
                    Ok(_) | Err(_) => Answer::Nobody,
                };
            }
            let Some((number, receiver)) = self.leave(question) else { return Answer::Nobody };
            let _left = Withdrawn { clients: self, number };
            match tokio::time::timeout(ANSWER_WAIT, receiver).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Answer::Nobody,
            }
        })
    }
}

/// Takes a question back that nobody waits for any more.
struct Withdrawn<'a> {
    clients: &'a Clients,
    number: u64,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.clients.locked().pending.retain(|pending| pending.number != self.number);
    }
}

/// A call that could carry a question, as long as it waits.
pub(super) struct Attending<'a> {
    clients: &'a Clients,
    session: SessionId,
}

impl Attending<'_> {
    /// Waits for a question of the session that no other call has taken. Dropping the future loses nothing.
    pub(super) async fn question(&self) -> InputRequests {
        loop {
            let rung = self.clients.bell.notified();
            if let Some(requests) = self.take() {
                return requests;
            }
            rung.await;
        }
    }

    fn take(&self) -> Option<InputRequests> {
        let mut known = self.clients.locked();
        let is_new = |pending: &&mut Pending| !pending.is_told && pending.question.session == self.session;
        Some(InputRequests::from([known.pending.iter_mut().find(is_new)?.tell()]))
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        let mut known = self.clients.locked();
        if let Some(count) = known.attending.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                known.attending.remove(&self.session);
            }
        }
    }
}

/// What is answered in the place of a result; `state` comes back with the next request.
pub(super) fn input_required(requests: InputRequests, state: String) -> InputRequiredResult {
    InputRequiredResult::new(Some(requests), Some(state))
}

fn form(question: &Question) -> ElicitRequestParams {
    let Question { task, agent, tool, about, rule, .. } = question;
    let schema = json!({
        "type": "object",
        "properties": {FIELD: {"type": "boolean", "title": "Allow this call"}},
        "required": [FIELD],
    });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("@{agent} ({task}) wants to use {tool}: {about}\nThe rule `{rule}` wants you to agree."),
        requested_schema: serde_json::from_value(schema).unwrap_or_else(|_| ElicitationSchema::new(Default::default())),
    }
}

fn answer(said: &ElicitResult) -> Answer {
    let is_allowed = said.content.as_ref().and_then(|content| content.get(FIELD)) == Some(&Value::Bool(true));
    match said.action {
        ElicitationAction::Accept if is_allowed => Answer::Yes,
        ElicitationAction::Accept | ElicitationAction::Decline | ElicitationAction::Cancel => Answer::No,
        _ => Answer::Nobody,
    }
}
