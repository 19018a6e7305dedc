//! Frames of several sizes, and what every frame keeps to.

use locum::ids::{AgentName, BoardTaskId};
use locum::protocol::response::{BoardStatus, BoardTask, TaskStatus};
use locum::task::Status;
use locum::usage::Usage;
use locum::{TaskId, Timestamp};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use unicode_width::UnicodeWidthStr as _;

use super::super::palette::{Depth, Palette};
use super::super::scene::{Facts, Mode, Scene};
use super::super::transcript::{Entry, Job, Speaker, Transcript};
use super::*;

const NOW: i64 = 1_700_000_100_000;
const NAMES: [&str; 5] = ["scout", "reviewer", "worker", "test-writer", "explore"];

pub(super) fn task(id: u32, agent: &str, status: Status) -> TaskStatus {
    let ended = status.is_final().then_some(Timestamp::from_millis(NOW - 5_000));
    TaskStatus {
        task_id: TaskId::new(id),
        agent: AgentName::parse(agent).expect("a name"),
        status,
        turns_used: id % 7 + 1,
        label: None,
        error: (status == Status::Failed).then(|| "the model gave up".to_owned()),
        reason: None,
        position: (status == Status::Queued).then_some(1),
        waiting_for: None,
        activity: Some(format!("turn {}: grep", id % 7 + 1)),
        usage: Usage {
            input_tokens: 1_200 * u64::from(id),
            output_tokens: 90,
            cost_usd: Some(0.0123 * f64::from(id)),
            ..Usage::default()
        },
        poll_after_ms: None,
        hint: None,
        created_at: Timestamp::from_millis(NOW - 7_000 * i64::from(id)),
        completed_at: ended,
    }
}

pub(super) fn on_board(id: u32, subject: &str, status: BoardStatus, owner: Option<(&str, Status)>) -> BoardTask {
    BoardTask {
        id: BoardTaskId::new(id),
        subject: subject.to_owned(),
        description: None,
        active_form: Some(format!("Doing {subject}")),
        status,
        owner: owner.map(|(name, _)| format!("subagent:{name}:t_01")),
        owner_status: owner.map(|(_, status)| status),
        blocked_by: if id == 4 { vec![BoardTaskId::new(1)] } else { Vec::new() },
        comments: Vec::new(),
        metadata: serde_json::Map::new(),
        created_at: Timestamp::from_millis(NOW),
        completed_at: None,
        archived_at: None,
    }
}

pub(super) fn transcript(texts: &[(Speaker, &str)]) -> Transcript {
    let entries = texts.iter().map(|(speaker, text)| Entry { speaker: *speaker, text: (*text).to_owned() });
    let mut transcript = Transcript::new(TaskId::new(1), 0);
    transcript.entries.extend(entries);
    transcript
}

/// A session in which so many agents run, one task is queued and one has ended.
pub(in super::super) fn running(count: u32) -> Facts {
    let name = |id: u32| NAMES[id as usize % NAMES.len()];
    let mut tasks: Vec<TaskStatus> = (1..=count).map(|id| task(id, name(id - 1), Status::Running)).collect();
    tasks.push(task(count + 1, "scout", Status::Queued));
    tasks.push(task(count + 2, "planner", Status::Failed));
    let about = |task: &TaskStatus| (task.task_id, format!("Look at part {} of the harbour", task.task_id));
    Facts {
        session: "main".to_owned(),
        place: (1, 2),
        now: Timestamp::from_millis(NOW),
        about: tasks.iter().map(about).collect(),
        tasks,
        board: vec![
            on_board(1, "the lexer", BoardStatus::InProgress, Some(("scout", Status::Running))),
            on_board(2, "the parser", BoardStatus::InProgress, Some(("reviewer", Status::Completed))),
            on_board(3, "the tests", BoardStatus::Completed, Some(("worker", Status::Completed))),
            on_board(4, "the release", BoardStatus::Pending, None),
        ],
        jobs: vec![Job {
            task: TaskId::new(1),
            agent: "scout".to_owned(),
            number: 1,
            command: "python3 -m http.server".to_owned(),
        }],
        transcript: Some(transcript(&[
            (Speaker::Event, "accepted for @scout with offline, 10 turns, tools: read grep"),
            (Speaker::Caller, "Where is the retry loop?"),
            (Speaker::Agent, "I will look for it.\n\nFirst in the driver, then in what the models share."),
            (Speaker::Event, "grep {\"pattern\":\"retry\"}"),
            (Speaker::Tool, "src/driver.rs:12: fn retry()"),
        ])),
        trouble: None,
    }
}

fn idle() -> Facts {
    Facts { session: "main".to_owned(), ..Facts::default() }
}

fn long_names() -> Facts {
    let mut facts = running(3);
    facts.tasks[0].agent = AgentName::parse(&"extraordinarily-long-".repeat(3)[..60]).expect("a name");
    facts.tasks[1].label = Some("a label that goes on for much longer than any line of a terminal has room ".repeat(4));
    facts.board[0].subject = "one thing after another ".repeat(12);
    facts.board[0].active_form = None;
    facts.board[0].owner = Some(format!("subagent:{}:t_01", facts.tasks[0].agent));
    facts.session = "s-".repeat(60);
    facts
}

fn wide_characters() -> Facts {
    let mut facts = running(3);
    facts.tasks[0].label = Some("漢字のラベル、長い長い長い長い長い長い長い".to_owned());
    facts.tasks[1].activity = Some("🦀🦀🦀 👩‍💻 é ñ".to_owned());
    facts.board[0].active_form = Some("テストを書いています、たくさんのテスト".to_owned());
    facts.transcript = Some(transcript(&[(Speaker::Agent, &"日本語の文章が続きます。".repeat(20))]));
    facts
}

pub(in super::super) fn scene(facts: Facts) -> Scene {
    let mut scene = Scene::new(Palette::new(Depth::Many));
    scene.learn(facts);
    scene
}

const SIZES: [(u16, u16); 4] = [(60, 20), (80, 24), (140, 40), (200, 60)];

fn frame(scene: &Scene, (width, height): (u16, u16)) -> (Terminal<TestBackend>, Drawn) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let mut drawn = None;
    terminal.draw(|frame| drawn = Some(draw(scene, frame.buffer_mut()))).expect("a frame");
    (terminal, drawn.expect("it was drawn"))
}

/// What is read on a screen; a wide character takes the place of two.
fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for line in buffer.area.rows() {
        let mut skip = 0;
        for place in line.positions() {
            let symbol = buffer[place].symbol();
            if skip == 0 {
                text.push_str(symbol);
                skip = symbol.width().max(1);
            }
            skip -= 1;
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

#[test]
fn frames_of_every_size() {
    let mut helped = scene(running(3));
    helped.view.mode = Mode::Help;
    let scenes = [
        ("idle", scene(idle())),
        ("3_running", scene(running(3))),
        ("30_running", scene(running(30))),
        ("long_names", scene(long_names())),
        ("wide_characters", scene(wide_characters())),
        ("help", helped),
    ];
    for (name, scene) in &scenes {
        for (width, height) in SIZES {
            let (terminal, _) = frame(scene, (width, height));
            insta::assert_snapshot!(format!("{name}_{width}x{height}"), text(terminal.backend().buffer()));
        }
    }
}

#[test]
fn no_size_is_too_small() {
    for facts in [idle(), running(3), running(30), long_names(), wide_characters()] {
        let mut scene = scene(facts);
        for mode in [Mode::Looking, Mode::Help, Mode::Filtering] {
            scene.view.mode = mode;
            for (width, height) in [(0, 0), (1, 1), (2, 30), (30, 2), (9, 4), (20, 7), (110, 5)] {
                draw(&scene, &mut Buffer::empty(Rect::new(0, 0, width, height)));
            }
        }
    }
}

#[test]
fn a_thousand_tasks_cost_no_more_lines_than_the_screen_has() {
    let mut many = scene(running(1_000));
    many.facts.board = (1..=1_000).map(|id| on_board(id, "x", BoardStatus::Pending, None)).collect();
    many.facts.jobs = many.facts.jobs.iter().cycle().take(1_000).cloned().collect();
    let said: Vec<(Speaker, &str)> = std::iter::repeat_n((Speaker::Agent, "a line"), 1_000).collect();
    many.facts.transcript = Some(transcript(&said));
    many.arrange();
    for size in SIZES {
        for at in [0, 500, 999] {
            many.select(at);
            let (_, drawn) = frame(&many, size);
            // Two panes stand side by side on a wide screen.
            assert!(drawn.lines <= 2 * usize::from(size.1), "{} lines for {size:?}", drawn.lines);
        }
    }
}

#[test]
fn spinners_turn_only_while_somebody_works() {
    let mut scene = scene(running(3));
    let before = frame(&scene, (140, 40)).0.backend().buffer().clone();
    scene.beat += 1;
    let after = frame(&scene, (140, 40)).0.backend().buffer().clone();
    let changed = before.diff(&after);
    // Three agents, one command, and the one task of the board whose owner runs.
    assert_eq!(changed.len(), 5, "{changed:?}");
    assert!(changed.iter().all(|(_, _, cell)| SPINNER.contains(&cell.symbol())));
}

#[test]
fn nothing_that_a_child_wrote_reaches_the_terminal_as_a_command() {
    let attack = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{9b}31m\r\n\u{202e}x";
    let mut facts = running(3);
    for task in &mut facts.tasks {
        (task.label, task.activity) = (Some(attack.to_owned()), Some(attack.to_owned()));
        task.error = task.error.as_ref().map(|_| attack.to_owned());
    }
    for task in &mut facts.board {
        (task.subject, task.active_form, task.owner) = (attack.into(), Some(attack.into()), Some(attack.into()));
    }
    facts.jobs[0].command = attack.to_owned();
    facts.about.values_mut().for_each(|about| about.push_str(attack));
    facts.trouble = Some(attack.to_owned());
    facts.transcript = Some(transcript(&[(Speaker::Agent, attack), (Speaker::Tool, attack)]));
    for size in SIZES {
        let (terminal, _) = frame(&scene(facts.clone()), size);
        for cell in terminal.backend().buffer().content() {
            let commands = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
            assert!(!cell.symbol().contains(commands), "{:?}", cell.symbol());
        }
    }
}

#[test]
fn colours_are_those_that_the_terminal_has() {
    for depth in [Depth::Plain, Depth::Sixteen, Depth::Many] {
        let mut scene = scene(running(3));
        scene.palette = Palette::new(depth);
        let (terminal, _) = frame(&scene, (140, 40));
        let colours: Vec<Color> =
            terminal.backend().buffer().content().iter().flat_map(|cell| [cell.fg, cell.bg]).collect();
        let has = |wanted: fn(&Color) -> bool| colours.iter().any(wanted);
        let many = has(|colour| matches!(colour, Color::Indexed(_)));
        let any = has(|colour| *colour != Color::Reset);
        assert_eq!((any, many), (depth != Depth::Plain, depth == Depth::Many), "{depth:?}");
        assert!(!has(|colour| matches!(colour, Color::Rgb(..))), "{depth:?}");
    }
}

#[test]
fn an_owner_has_the_colour_of_its_agent() {
    let (terminal, drawn) = frame(&scene(running(3)), (140, 40));
    let buffer = terminal.backend().buffer();
    let found = |pane: Rect| pane.positions().find(|at| buffer[*at].symbol() == "@").map(|at| buffer[at].fg);
    assert_eq!(found(drawn.areas.board), found(Rect { y: 3, height: 1, ..drawn.areas.agents }));
}
