//! `locum watch`: the agents of a session on a screen, as they work. It shows and asks; what happens is the desk's.

mod feed;
mod frame;
mod keys;
mod layout;
pub(crate) mod palette;
mod scene;
mod transcript;
mod words;

use std::pin::{Pin, pin};
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use futures_util::future::select;
use futures_util::stream::{self, FuturesUnordered};
use locum::protocol::request::{Cancel, Collect};
use locum::protocol::{Refusal, Response, SubagentAction};
use locum::settings::environment::Environment;
use locum::{Desk, Executor, Request, SessionId, TaskId, ToolRequest};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use self::feed::{Feed, Learnt, Wanted};
use self::keys::{Errand, Wish};
use self::layout::Areas;
use self::palette::{Depth, Palette};
use self::scene::Scene;
use crate::args::Global;
use crate::entrance::Entrance;
use crate::output::screen::Screen;
use crate::output::{Exit, Output};

/// How often a spinner turns.
const BEAT: Duration = Duration::from_millis(120);

/// How many tasks are stopped at once.
const STOPS_MAX: usize = 8;

/// How many errands are under way at once; a person who wants more is told so.
const ERRANDS_MAX: usize = 16;

/// An errand under way: it ends with a sentence, or with another session to show.
type UnderWay = Pin<Box<dyn Future<Output = Done>>>;

enum Done {
    Said(String),
    Session(SessionId),
}

/// Shows the session until the person leaves.
pub(crate) async fn watch(global: &Global, output: Output) -> anyhow::Result<Exit> {
    let environment = Environment::of_process();
    if output.is_json() || !Screen::is_there() || environment.get("TERM") == Some("dumb") {
        output.complain(
            "watch draws on a terminal, and there is none",
            Some("`locum status` says how tasks stand; with --json for programs"),
        );
        return Ok(Exit::Failed);
    }
    let entrance = Entrance::open(global, output, Executor::InProcess)?;
    let door = entrance.here()?;
    door.look_after_orphans().await;
    let desk = door.opened.desk.clone();
    let mut scene = Scene::new(Palette::new(Depth::of(&environment)));
    let mut feed = Feed::new(desk.clone());
    let wanted = Wanted { session: desk.session().id.clone(), selected: None };
    scene.learn(feed.look(&wanted).await);
    let screen = Screen::open().context("the terminal cannot be drawn on")?;
    show(&desk, scene, screen, feed).await
}

/// What happens while a screen is shown.
enum Happening {
    Learnt(Box<Learnt>),
    Input(Event),
    Done(Done),
    Beat,
    Leave,
}

async fn show(desk: &Desk, mut scene: Scene, mut screen: Screen, feed: Feed) -> anyhow::Result<Exit> {
    let wanted = Wanted { session: desk.session().id.clone(), selected: scene.view.selected };
    let (want, wanted) = watch::channel(wanted);
    let (tell, mut learnt) = mpsc::channel(1);
    let (feeding, overhearing) = (pin!(feed.tell(wanted, tell)), pin!(desk.overhear()));
    // What tasks of other processes say is shown as well; to hear it never ends on its own.
    let mut feeding = select(feeding, overhearing);
    let mut under_way: FuturesUnordered<UnderWay> = FuturesUnordered::new();
    let mut input = EventStream::new();
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let (mut areas, mut is_leaving) = (Areas::default(), false);
    while !(is_leaving && under_way.is_empty()) {
        screen.draw(|buffer| areas = frame::draw(&scene, buffer).areas)?;
        let happening = tokio::select! {
            _ = &mut feeding => Happening::Leave,
            Some(learnt) = learnt.recv() => Happening::Learnt(Box::new(learnt)),
            event = input.next() => match event {
                Some(Ok(event)) => Happening::Input(event),
                Some(Err(_)) | None => Happening::Leave,
            },
            Some(done) = under_way.next(), if !under_way.is_empty() => Happening::Done(done),
            _ = beat.tick(), if scene.is_lively() => Happening::Beat,
            _ = terminate.recv() => Happening::Leave,
            _ = hang_up.recv() => Happening::Leave,
        };
        match happening {
            Happening::Learnt(learnt) => learn(&mut scene, *learnt, &want.borrow().session),
            Happening::Input(event) => {
                let intent = keys::intent(&event, scene.view.mode);
                match intent.and_then(|intent| scene.take(intent, &areas)) {
                    None => {}
                    Some(Wish::Quit) if is_leaving => return Ok(Exit::Done),
                    // What was asked for is seen to its end; who is in a hurry asks twice.
                    Some(Wish::Quit) => {
                        is_leaving = true;
                        scene.view.notice = Some("finishing what was asked for; q leaves at once".to_owned());
                    }
                    Some(Wish::Ask(_)) if under_way.len() >= ERRANDS_MAX => {
                        scene.view.notice = Some("still busy with what was asked before".to_owned());
                    }
                    Some(Wish::Ask(errand)) => {
                        under_way.push(carry_out(desk.in_session(want.borrow().session.clone()), errand));
                    }
                }
            }
            Happening::Done(Done::Said(notice)) => scene.view.notice = Some(notice),
            Happening::Done(Done::Session(session)) => {
                scene.view.selected = None;
                want.send_replace(Wanted { session, selected: None });
            }
            Happening::Beat => scene.beat = scene.beat.wrapping_add(1),
            Happening::Leave => return Ok(Exit::Done),
        }
        let selected = scene.view.selected;
        want.send_if_modified(|wanted| std::mem::replace(&mut wanted.selected, selected) != selected);
    }
    Ok(Exit::Done)
}

fn learn(scene: &mut Scene, learnt: Learnt, session: &SessionId) {
    match learnt {
        Learnt::Facts(facts) if facts.session == session.as_str() => scene.learn(facts),
        // What is known of a session that was left is no longer of interest.
        Learnt::Facts(_) => {}
        Learnt::Said(transcript) => scene.facts.transcript = Some(transcript),
    }
}

fn carry_out(desk: Desk, errand: Errand) -> UnderWay {
    Box::pin(async move {
        match errand {
            Errand::Cancel(ids) => Done::Said(cancel(&desk, &ids).await),
            Errand::Collect(id) => Done::Said(collect(&desk, id).await),
            Errand::Session(by) => other_session(&desk, by).await,
        }
    })
}

/// Stops tasks, and says how that went.
async fn cancel(desk: &Desk, ids: &[TaskId]) -> String {
    let stop = |id: TaskId| async move {
        let answer = ask(desk, SubagentAction::Cancel(Cancel { task_id: id.to_string() })).await;
        match answer {
            Ok(Response::Cancelled(task)) if task.receipt.confirmed => None,
            Ok(_) => Some(format!("{id} has not ended yet")),
            Err(refusal) => Some(format!("{id}: {}", refusal.message)),
        }
    };
    let problems: Vec<String> = stream::iter(ids.iter().copied())
        .map(stop)
        .buffered(STOPS_MAX)
        .filter_map(|problem| async { problem })
        .collect()
        .await;
    match (problems.first(), ids) {
        (Some(problem), _) => problem.clone(),
        (None, [id]) => format!("{id} is stopped"),
        (None, _) => format!("{} agents are stopped", ids.len()),
    }
}

async fn collect(desk: &Desk, id: TaskId) -> String {
    match ask(desk, SubagentAction::Collect(Collect { task_id: id.to_string() })).await {
        Ok(_) => format!("{id} is collected; `locum result {id}` has its text"),
        Err(refusal) => refusal.message,
    }
}

/// The session so many places further on.
async fn other_session(desk: &Desk, by: isize) -> Done {
    match feed::sessions(desk).await {
        Err(refusal) => Done::Said(refusal.message),
        Ok(ids) if ids.len() < 2 => Done::Said("the project has no other session".to_owned()),
        Ok(ids) => {
            let at = ids.iter().position(|id| *id == desk.session().id).unwrap_or(0);
            let next = if by < 0 { (at + ids.len() - 1) % ids.len() } else { (at + 1) % ids.len() };
            Done::Session(ids[next].clone())
        }
    }
}

/// Asks the desk as a person.
async fn ask(desk: &Desk, action: SubagentAction) -> Result<Response, Refusal> {
    desk.handle(Request::person(ToolRequest::Subagent(action))).await
}
