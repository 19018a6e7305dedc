//! The picture of the screen in the README: a frame, drawn as it is on a terminal, as SVG. A test compares it with the
//! one in `docs/pictures`, so that it cannot show what is no longer so.

use std::fmt::Write as _;

use locum::task::Status;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr as _;

use super::super::scene::Facts;
use super::super::transcript::Speaker;
use super::draw;
use super::tests::{on_board, running, scene, task, transcript};

const SIZE: (u16, u16) = (112, 26);
/// A place of the screen, in units of the picture.
const PLACE: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;
const PAPER: &str = "#16181d";
const INK: &str = "#d7dae0";
/// The first sixteen colours, which every terminal chooses itself.
const SIXTEEN: [&str; 16] = [
    "#16181d", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0", "#5c6370", "#e06c75",
    "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff",
];

/// How a run of places looks.
#[derive(PartialEq, Clone, Copy)]
struct Look {
    ink: Color,
    weight: Modifier,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        Self { ink: cell.fg, weight: cell.modifier }
    }
}

fn color(color: Color) -> String {
    let named = |place: usize| SIXTEEN[place].to_owned();
    match color {
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Indexed(place) if place < 16 => named(usize::from(place)),
        Color::Indexed(place) if place < 232 => {
            let part = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
            let place = place - 16;
            format!("#{:02x}{:02x}{:02x}", part(place / 36), part(place / 6 % 6), part(place % 6))
        }
        Color::Indexed(place) => {
            let grey = 8 + 10 * (place - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
        _ => INK.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    // Pictures are shown by programs that leave out spaces where they can.
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "&#160;")
}

/// A frame as a picture.
fn picture(buffer: &Buffer, title: &str) -> String {
    let (columns, rows) = (f64::from(buffer.area.width), f64::from(buffer.area.height));
    let (width, height) = (columns * PLACE.0 + 2.0 * MARGIN, rows * PLACE.1 + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for line in buffer.area.rows() {
        let mut column = line.x;
        while column < line.right() {
            let begin = column;
            let look = Look::of(&buffer[(column, line.y)]);
            let mut text = String::new();
            while column < line.right() && Look::of(&buffer[(column, line.y)]) == look {
                let symbol = buffer[(column, line.y)].symbol();
                text.push_str(symbol);
                column += u16::try_from(symbol.width().max(1)).unwrap_or(1);
            }
            piece(&mut svg, look, (begin, line.y), &text, column - begin);
        }
    }
    svg + "</svg>\n"
}

/// Writes a run of places, as wide as they are whatever font it is shown in.
fn piece(svg: &mut String, look: Look, (column, row): (u16, u16), text: &str, columns: u16) {
    let (x, y) = (MARGIN + f64::from(column) * PLACE.0, MARGIN + f64::from(row) * PLACE.1);
    let is_reversed = look.weight.contains(Modifier::REVERSED);
    if is_reversed {
        // A little more, so that no seam is seen between two of them.
        let width = f64::from(columns) * PLACE.0 + 0.4;
        writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{INK}\"/>", PLACE.1)
            .expect("a string takes everything");
    }
    let shown = text.trim_end();
    if shown.is_empty() {
        return;
    }
    let ink = if is_reversed { PAPER.to_owned() } else { color(look.ink) };
    let bold = if look.weight.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let dim = if look.weight.contains(Modifier::DIM) { " opacity=\"0.6\"" } else { "" };
    let (base, length) = (y + 13.5, f64::from(u16::try_from(shown.width()).unwrap_or(u16::MAX)) * PLACE.0);
    let text = escaped(shown);
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{base:.1}\" textLength=\"{length:.1}\" fill=\"{ink}\"{bold}{dim}>{text}</text>"
    )
    .expect("a string takes everything");
}

/// A session in the middle of some work.
fn facts() -> Facts {
    let mut facts = running(3);
    let doing = [
        ("scout", "turn 4: grep", 4, Some("where limits are declared")),
        ("test-writer", "turn 9: bash", 9, Some("tests for the tide tables")),
        ("reviewer", "turn 3: asking the model", 3, None),
    ];
    for (task, (agent, activity, turns, label)) in facts.tasks.iter_mut().zip(doing) {
        task.agent = locum::AgentName::parse(agent).expect("a name");
        (task.activity, task.turns_used) = (Some(activity.to_owned()), turns);
        task.label = label.map(str::to_owned);
    }
    facts.tasks.push(task(6, "explore", Status::Completed));
    facts.tasks[4].error = Some("the budget is used up".to_owned());
    use locum::protocol::response::BoardStatus::{Completed, InProgress, Pending};
    facts.board = vec![
        on_board(1, "tests for the tables", InProgress, Some(("test-writer", Status::Running))),
        on_board(2, "the review", InProgress, Some(("reviewer", Status::Running))),
        on_board(3, "the map of the harbour", Completed, Some(("explore", Status::Completed))),
        on_board(4, "the release", Pending, None),
    ];
    facts.board[0].active_form = Some("Writing tests for the tables".to_owned());
    facts.board[1].active_form = Some("Reviewing the changes".to_owned());
    facts.tasks[0].usage.tool_calls = 3;
    let question = "Where are limits declared, and which of them can be raised?";
    facts.about.insert(facts.tasks[0].task_id, question.to_owned());
    facts.jobs[0].task = locum::TaskId::new(2);
    facts.jobs[0].agent = "test-writer".to_owned();
    facts.jobs[0].command = "cargo watch -x test".to_owned();
    let mut said = transcript(&[
        (Speaker::Caller, question),
        (Speaker::Agent, "I look for constants first."),
        (Speaker::Event, "grep {\"pattern\":\"_MAX\"}"),
        (Speaker::Tool, "grep: src/limits.rs:12: pub const DEPTH_MAX: u32 = 4;"),
    ]);
    said.overhear(0, "Limits are constants of src/limits.rs. Four of them can be raised by settings:");
    facts.transcript = Some(said);
    facts
}

#[test]
fn the_picture_of_the_screen_is_what_the_screen_shows() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
    draw(&scene(facts()), &mut buffer);
    let picture = picture(&buffer, "locum watch: agents at work, the board, and what one of them says");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/watch.svg");
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if kept != picture {
        let new = path.with_extension("svg.new");
        std::fs::write(&new, &picture).expect("the new picture is written");
        panic!("the screen looks different now: look at {0}.new and move it to {0}", path.display());
    }
}
