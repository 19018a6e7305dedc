//! What the screen shows, as plain data: what is known of a session, and where the person looks. Nothing here asks
//! anybody or draws anything.

use std::collections::BTreeMap;

use locum::ids::Identity;
use locum::protocol::response::{BoardStatus, BoardTask, TaskStatus};
use locum::task::Status;
use locum::{TaskId, Timestamp};

use super::layout::Wants;
use super::palette::Palette;
use super::transcript::{Job, Transcript};

/// How many characters a filter may have.
const FILTER_CHARS_MAX: usize = 60;

/// What is known of a session at one moment.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The session, and which of how many it is.
    pub(super) session: String,
    pub(super) place: (usize, usize),
    pub(super) now: Timestamp,
    /// Those that were not collected, oldest first.
    pub(super) tasks: Vec<TaskStatus>,
    pub(super) board: Vec<BoardTask>,
    /// Commands in the background of tasks that run.
    pub(super) jobs: Vec<Job>,
    /// What tasks were asked, as far as it was read.
    pub(super) about: BTreeMap<TaskId, String>,
    /// The log of the task that was selected, as a conversation.
    pub(super) transcript: Option<Transcript>,
    /// What could not be found out, and why.
    pub(super) trouble: Option<String>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            session: String::new(),
            place: (1, 1),
            now: Timestamp::from_millis(0),
            tasks: Vec::new(),
            board: Vec::new(),
            jobs: Vec::new(),
            about: BTreeMap::new(),
            transcript: None,
            trouble: None,
        }
    }
}

/// What keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Agents,
    Board,
    Details,
}

/// What keys mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Looking,
    /// A filter is being typed.
    Filtering,
    /// The keys are explained.
    Help,
}

/// Where the person looks.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) mode: Mode,
    pub(super) focus: Focus,
    pub(super) selected: Option<TaskId>,
    /// Where the selected task is among the rows.
    pub(super) at: usize,
    pub(super) board_at: usize,
    /// Lines between the end of the transcript and what is shown of it.
    pub(super) back: usize,
    pub(super) filter: String,
    /// What a person asked for last, and how it went.
    pub(super) notice: Option<String>,
}

/// Everything that a frame is made of.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) facts: Facts,
    pub(super) view: View,
    /// Tasks that the filter lets through, in the order in which they are shown; places in `facts.tasks`.
    pub(super) rows: Vec<usize>,
    /// Tasks of the board in the order in which they are shown.
    pub(super) board_rows: Vec<usize>,
    /// The colour of every name that was seen, by its place.
    pub(super) names: BTreeMap<String, usize>,
    pub(super) palette: Palette,
    /// How often a spinner has turned.
    pub(super) beat: usize,
}

impl Scene {
    pub(super) fn new(palette: Palette) -> Self {
        let view = View {
            mode: Mode::Looking,
            focus: Focus::Agents,
            selected: None,
            at: 0,
            board_at: 0,
            back: 0,
            filter: String::new(),
            notice: None,
        };
        let (facts, names) = (Facts::default(), BTreeMap::new());
        Self { facts, view, rows: Vec::new(), board_rows: Vec::new(), names, palette, beat: 0 }
    }

    /// Takes up what is known now. A selected task stays selected, wherever it has moved.
    pub(super) fn learn(&mut self, facts: Facts) {
        self.facts = facts;
        let owners = self.facts.board.iter().filter_map(|task| Identity::parse(task.owner.as_deref()?));
        let owners = owners.filter_map(|owner| match owner {
            Identity::Subagent { agent, .. } => Some(agent),
            Identity::Orchestrator => None,
        });
        // An owner whose task was collected has a colour of its own all the same.
        for name in self.facts.tasks.iter().map(|task| task.agent.clone()).chain(owners) {
            let next = self.names.len();
            self.names.entry(name.to_string()).or_insert(next);
        }
        self.arrange();
    }

    /// Finds out what is shown, in which order: what runs, what waits, what has ended with the newest first.
    pub(super) fn arrange(&mut self) {
        let (tasks, filter) = (&self.facts.tasks, self.view.filter.to_lowercase());
        let about = |task: &TaskStatus| self.facts.about.get(&task.task_id).map(String::as_str);
        self.rows = (0..tasks.len()).filter(|row| passes(&tasks[*row], about(&tasks[*row]), &filter)).collect();
        self.rows.sort_by_key(|row| order(&tasks[*row]));
        let found = |selected: TaskId| self.rows.iter().position(|row| tasks[*row].task_id == selected);
        self.view.at = self.view.selected.and_then(found).unwrap_or(self.view.at);
        self.view.at = self.view.at.min(self.rows.len().saturating_sub(1));
        self.view.selected = self.rows.get(self.view.at).map(|row| tasks[*row].task_id);
        let board = &self.facts.board;
        self.board_rows = (0..board.len()).collect();
        self.board_rows.sort_by_key(|row| match board[*row].status {
            BoardStatus::InProgress => 0,
            BoardStatus::Pending => 1,
            BoardStatus::Completed => 2,
        });
        self.view.board_at = self.view.board_at.min(board.len().saturating_sub(1));
    }

    /// The task that keys act on.
    pub(super) fn selected(&self) -> Option<&TaskStatus> {
        self.rows.get(self.view.at).and_then(|row| self.facts.tasks.get(*row))
    }

    /// Selects the row at this place.
    pub(super) fn select(&mut self, at: usize) {
        let at = at.min(self.rows.len().saturating_sub(1));
        if let Some(row) = self.rows.get(at) {
            let id = self.facts.tasks[*row].task_id;
            if self.view.selected != Some(id) {
                self.view.back = 0;
            }
            (self.view.at, self.view.selected) = (at, Some(id));
        }
    }

    /// Types a character of the filter, or takes the last one back.
    pub(super) fn type_filter(&mut self, typed: Option<char>) {
        match typed {
            Some(c) if self.view.filter.chars().count() < FILTER_CHARS_MAX => self.view.filter.push(c),
            Some(_) => {}
            None => {
                self.view.filter.pop();
            }
        }
        self.arrange();
    }

    /// The tasks that have not ended, those that wait first: stopped after the others, they would take their places.
    pub(super) fn unfinished(&self) -> Vec<TaskId> {
        let mut open: Vec<&TaskStatus> = self.facts.tasks.iter().filter(|task| !task.status.is_final()).collect();
        open.sort_by_key(|task| (task.status == Status::Running, std::cmp::Reverse(task.task_id)));
        open.into_iter().map(|task| task.task_id).collect()
    }

    /// Takes the filter away.
    pub(super) fn clear_filter(&mut self) {
        self.view.filter.clear();
        self.arrange();
    }

    /// The tasks that run.
    pub(super) fn running(&self) -> impl Iterator<Item = &TaskStatus> {
        self.facts.tasks.iter().filter(|task| task.status == Status::Running)
    }

    /// Whether something turns on the screen.
    pub(super) fn is_lively(&self) -> bool {
        self.running().next().is_some()
    }

    /// How much there is to show.
    pub(super) fn wants(&self) -> Wants {
        Wants { tasks: self.rows.len(), board: self.board_rows.len(), jobs: self.facts.jobs.len() }
    }

    /// The place of a name's colour. One that no task has is drawn as the first.
    pub(super) fn place_of(&self, name: &str) -> usize {
        self.names.get(name).copied().unwrap_or(0)
    }
}

fn passes(task: &TaskStatus, about: Option<&str>, filter: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(filter);
    filter.is_empty()
        || has(&task.task_id.to_string())
        || has(task.agent.as_str())
        || has(task.status.as_str())
        || task.label.as_deref().is_some_and(has)
        || task.activity.as_deref().is_some_and(has)
        || about.is_some_and(has)
}

/// What runs is first; of what has ended, the newest.
fn order(task: &TaskStatus) -> (u8, std::cmp::Reverse<Option<Timestamp>>, TaskId) {
    let group = match task.status {
        Status::Running => 0,
        Status::Queued | Status::Waiting => 1,
        Status::Completed | Status::Failed | Status::Cancelled => 2,
    };
    (group, std::cmp::Reverse(task.completed_at), task.task_id)
}
