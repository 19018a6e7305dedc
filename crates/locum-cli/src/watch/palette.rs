//! The colours of the screen: as many as the terminal has, or none.

use locum::protocol::response::BoardStatus;
use locum::settings::environment::Environment;
use locum::task::Status;
use ratatui::style::{Color, Modifier, Style};

/// How many colours there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// None: weight and reversal alone tell things apart.
    Plain,
    /// The sixteen that every terminal has.
    Sixteen,
    /// The 256 of most.
    Many,
}

impl Depth {
    /// What the terminal says that it has, unless the user wants none.
    pub(crate) fn of(environment: &Environment) -> Self {
        let says = |name: &str, word: &str| environment.get(name).is_some_and(|value| value.contains(word));
        if environment.get("NO_COLOR").is_some() {
            return Self::Plain;
        }
        let many = says("TERM", "256color") || says("COLORTERM", "truecolor") || says("COLORTERM", "24bit");
        if many { Self::Many } else { Self::Sixteen }
    }
}

/// Colours of names, told apart on dark and on light ground.
const SIXTEEN: [Color; 6] = [Color::Cyan, Color::Magenta, Color::Green, Color::Yellow, Color::Blue, Color::Red];
const MANY: [u8; 12] = [38, 170, 71, 178, 69, 203, 44, 135, 107, 208, 105, 168];

/// How things are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    depth: Depth,
}

impl Palette {
    pub(crate) fn new(depth: Depth) -> Self {
        Self { depth }
    }

    /// An agent's name: names in a row have different colours.
    pub(super) fn name(self, place: usize) -> Style {
        let color = match self.depth {
            Depth::Plain => return Style::new().add_modifier(Modifier::BOLD),
            Depth::Sixteen => SIXTEEN[place % SIXTEEN.len()],
            Depth::Many => Color::Indexed(MANY[place % MANY.len()]),
        };
        Style::new().fg(color).add_modifier(Modifier::BOLD)
    }

    /// How a task stands.
    pub(super) fn status(self, status: Status) -> Style {
        match status {
            Status::Running => self.colored(Color::Green),
            Status::Queued | Status::Waiting => self.colored(Color::Yellow),
            Status::Completed | Status::Cancelled => self.faint(),
            Status::Failed => self.colored(Color::Red),
        }
    }

    /// How far a task of the board is.
    pub(super) fn board(self, status: BoardStatus) -> Style {
        match status {
            BoardStatus::Pending => Style::new(),
            BoardStatus::InProgress => self.colored(Color::Green),
            BoardStatus::Completed => self.faint(),
        }
    }

    /// What is only there to be found when it is looked for.
    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What matters.
    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What somebody should know.
    pub(super) fn alarm(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// The line that keys act on.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn colored(self, color: Color) -> Style {
        match self.depth {
            Depth::Plain => Style::new(),
            Depth::Sixteen | Depth::Many => Style::new().fg(color),
        }
    }
}
