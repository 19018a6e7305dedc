//! Every failure of a model server, at the first, a middle and the last turn, in every shape: each ends in its own
//! outcome after the right number of attempts, none completes falsely, and half a tool call never runs.

mod faults;
mod server;
mod shape;

use std::sync::Arc;
use std::time::Duration;

use locum::models::{BoxFuture, Deltas, Model, ModelError, Prefix, Registry};
use locum::transcript::{Message, Prompt, Repeat, Reply};
use locum_core::task::TaskEvent;
use locum_core::task::event::FailureKind;
use locum_core::task::plan::ModelName;
use serde_json::{Value, json};

use self::faults::{Case, Expected, cases};
use self::server::{Fault, Server, When};
use self::shape::{ANSWER, Call, Shape, Stop, TURNS, stream};
use crate::stage::{Ledger, agent, check, noting_tool, run, scene};

/// The calls that are made of one turn before it is given up.
const ATTEMPTS_MAX: usize = 6;

/// Longer than any case takes on the paused clock: six attempts of a quarter of an hour.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// How a task went.
struct Went {
    answer: Value,
    notes: Vec<String>,
    failures: Vec<FailureKind>,
}

impl Went {
    fn notes_of(&self, turn: usize) -> usize {
        let own = [format!("note {{\"n\":{turn}}}"), "note {\"n\":10}".to_owned(), "note {\"n\":11}".to_owned()];
        self.notes.iter().filter(|note| own.contains(note)).count()
    }
}

/// A task of an agent with the tool `note`, against a server.
async fn play(shape: Shape, server: &Server) -> Went {
    let (model, access) = shape.access(&server.base_url());
    finish(scene().access(access).session_model(model, "the test's")).await
}

async fn finish(builder: locum::DeskBuilder) -> Went {
    let ledger = Ledger::default();
    let note = noting_tool("note", Repeat::Unsafe, &ledger);
    let desk = builder.tool(note).agent(agent("eve", &["note"])).build().unwrap();
    let answer = tokio::time::timeout(PATIENCE, run(&desk, "eve", "Note it.")).await.expect("everything ends");
    let log = desk.log_of("t_01").await.unwrap();
    let failures = log.iter().filter_map(|record| match &record.event {
        TaskEvent::ModelFailed { failure, .. } => Some(failure.kind),
        _ => None,
    });
    Went { answer, notes: ledger.lines(), failures: failures.collect() }
}

/// Plays a case once and always, and checks what comes of it.
async fn check_case(shape: Shape, turn: usize, case: &Case) {
    let place = format!("{shape:?}, turn {turn}: {}", case.name);
    let start = |when| Server::start(shape, Some(Fault { turns: turn..=turn, when, acts: case.acts.clone() }));
    let before: Vec<String> = (1..turn).map(|turn| format!("note {{\"n\":{turn}}}")).collect();

    let server = start(When::Always).await;
    let went = play(shape, &server).await;
    assert!(went.notes.starts_with(&before), "{place}: {:?}", went.notes);
    let given_up = |kind: FailureKind, attempts: usize| {
        check(&went.answer, &json!({"status": "failed", "reason": "model"}));
        assert_eq!(went.failures, vec![kind; attempts], "{place}: {}", went.answer);
        assert_eq!(server.attempts(turn), attempts, "{place}");
        assert_eq!(went.notes, before, "{place}: nothing of the failed turn ran");
    };
    match case.expected {
        Expected::Passes(kind) => given_up(kind, ATTEMPTS_MAX),
        Expected::Lasts(kind) => given_up(kind, 1),
        Expected::Ends(reason) => {
            check(&went.answer, &json!({"status": "failed", "reason": reason.as_str()}));
            assert_eq!((went.failures.len(), server.attempts(turn)), (0, 1), "{place}");
            assert_eq!(went.notes, before, "{place}: nothing of the last turn ran");
        }
        Expected::AnsweredToTheModel => {
            check(&went.answer, &json!({"status": "completed", "result": ANSWER}));
            assert_eq!((went.failures.len(), went.notes_of(turn)), (0, 0), "{place}: {:?}", went.notes);
        }
        Expected::Fine { notes } => {
            check(&went.answer, &json!({"status": "completed", "result": ANSWER}));
            assert_eq!((went.failures.len(), went.notes_of(turn)), (0, notes), "{place}: {:?}", went.notes);
            assert!(went.answer["usage"]["input_tokens"].as_u64() > Some(0), "{place}: {}", went.answer);
        }
    }

    if let Expected::Passes(kind) = case.expected {
        let server = start(When::Once).await;
        let went = play(shape, &server).await;
        check(&went.answer, &json!({"status": "completed", "result": ANSWER, "turns_used": TURNS}));
        assert_eq!((went.failures.as_slice(), server.attempts(turn)), ([kind].as_slice(), 2), "{place}");
        assert_eq!(went.notes, ["note {\"n\":1}", "note {\"n\":2}"], "{place}: each turn ran once");
    }
}

async fn check_turn(shape: Shape, turn: usize) {
    for case in cases(shape, turn) {
        check_case(shape, turn, &case).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_chat_completions_at_the_first_turn() {
    check_turn(Shape::OpenAiChat, 1).await;
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_chat_completions_at_a_middle_turn() {
    check_turn(Shape::OpenAiChat, 2).await;
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_chat_completions_at_the_last_turn() {
    check_turn(Shape::OpenAiChat, 3).await;
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_messages_at_the_first_turn() {
    check_turn(Shape::Anthropic, 1).await;
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_messages_at_a_middle_turn() {
    check_turn(Shape::Anthropic, 2).await;
}

#[tokio::test(start_paused = true)]
async fn every_failure_of_messages_at_the_last_turn() {
    check_turn(Shape::Anthropic, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_writes_valid_input_is_told_so_and_stopped_at_the_fifth() {
    for shape in SHAPES {
        let call = Call { index: 0, id: "call_a", name: "note", arguments: &["{\"n\": "] };
        let events = [shape.begin(), shape.calls(&[call]), shape.finish(Stop::Tools)].concat();
        let server =
            Server::start(shape, Some(Fault { turns: 1..=usize::MAX, when: When::Always, acts: stream(&events) }))
                .await;
        let went = play(shape, &server).await;
        check(&went.answer, &json!({"status": "failed", "reason": "loop", "turns_used": 5}));
        assert_eq!((went.notes.len(), went.failures.len()), (0, 0));
    }
}

#[test]
fn what_the_server_says_is_well_formed_in_every_shape() {
    for shape in [Shape::OpenAiChat, Shape::Anthropic] {
        for turn in 1..=TURNS {
            let said = [shape.speech(turn), shape.unknown(), shape.finish(shape.reason(turn))].concat();
            for event in said.split_terminator("\n\n").filter(|event| !event.starts_with(':')) {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
                let parsed: Result<Value, _> = serde_json::from_str(data);
                assert!(parsed.is_ok() || data == "[DONE]", "{event}");
                let named = event.lines().find_map(|line| line.strip_prefix("event: "));
                if let (Shape::Anthropic, Some(name), Ok(value)) = (shape, named, parsed) {
                    assert!(value["type"] == name || name == "future_event", "{event}");
                }
            }
        }
    }
}

const SHAPES: [Shape; 2] = [Shape::OpenAiChat, Shape::Anthropic];

/// A model that is another server's from one turn on.
struct Switch {
    turn: usize,
    models: [Arc<dyn Model>; 2],
}

impl Model for Switch {
    fn respond<'a>(
        &'a self,
        prompt: &'a Prompt<'a>,
        prefix: &'a mut Prefix,
        deltas: &'a mut Deltas<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let replies = prompt.messages.iter().filter(|message| matches!(message, Message::Assistant(_))).count();
        Box::pin(async move {
            // Without a name, a server would be asked for one.
            let prompt = Prompt { model: "chaos", ..prompt.clone() };
            self.models[usize::from(replies + 1 >= self.turn)].respond(&prompt, prefix, deltas).await
        })
    }
}

fn opened(shape: Shape, base_url: &str) -> Arc<dyn Model> {
    let (model, access) = shape.access(base_url);
    let (provider, id) = model.split_once(':').unwrap();
    Registry::new(access).open(&ModelName { provider: provider.to_owned(), id: id.to_owned() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_tried_again_at_any_turn() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = format!("http://{}/v1", nobody.local_addr().unwrap());
    drop(nobody);
    // No name has a part of more than 63 characters, so nobody is even asked for it.
    let nameless = format!("http://{}.invalid/v1", "x".repeat(64));
    for shape in SHAPES {
        for turn in 1..=TURNS {
            let server = Server::start(shape, None).await;
            let secure = server.secure_url();
            for (place, address) in [("refused", &refused), ("no such name", &nameless), ("no TLS", &secure)] {
                let models = [opened(shape, &server.base_url()), opened(shape, address)];
                let went = finish(scene().model("switch", Arc::new(Switch { turn, models }))).await;
                check(&went.answer, &json!({"status": "failed", "reason": "model"}));
                assert_eq!(went.failures, [FailureKind::Network; ATTEMPTS_MAX], "{place}: {}", went.answer);
                assert_eq!(went.notes.len(), turn - 1, "{place}");
            }
        }
    }
}
