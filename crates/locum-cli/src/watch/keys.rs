//! What keys and the mouse mean, and what they change in the scene.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use locum::TaskId;
use ratatui::layout::Position;

use super::layout::Areas;
use super::scene::{Focus, Mode, Scene};
use crate::output::counted;

/// How far a page moves.
const PAGE: isize = 10;

/// How far a turn of the wheel moves.
const WHEEL: isize = 3;

/// What a key or the mouse wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    /// Up or down where the focus is.
    Move(isize),
    /// Up or down in what was said.
    Scroll(isize),
    /// Up or down in what the mouse is over.
    Wheel(Position, isize),
    Click(Position),
    NextPane,
    Filter,
    Type(char),
    Erase,
    /// What was typed stays.
    Keep,
    /// Back to looking, without a filter.
    Leave,
    Help,
    Cancel,
    Collect,
    StopAll,
    Session(isize),
    Quit,
}

/// What is left to be done for an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    Ask(Errand),
    Quit,
}

/// What the desk has to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Errand {
    Cancel(Vec<TaskId>),
    Collect(TaskId),
    Session(isize),
}

/// What an event means, if anything.
pub(super) fn intent(event: &Event, mode: Mode) -> Option<Intent> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => of_key(*key, mode),
        Event::Mouse(mouse) => of_mouse(*mouse),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Paste(_) | Event::Resize(..) => None,
    }
}

fn of_key(key: KeyEvent, mode: Mode) -> Option<Intent> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Intent::Quit);
    }
    match mode {
        Mode::Looking => looking(key.code),
        Mode::Filtering => match key.code {
            KeyCode::Esc => Some(Intent::Leave),
            KeyCode::Enter => Some(Intent::Keep),
            KeyCode::Backspace => Some(Intent::Erase),
            KeyCode::Up => Some(Intent::Move(-1)),
            KeyCode::Down => Some(Intent::Move(1)),
            KeyCode::Char(c) => Some(Intent::Type(c)),
            _ => None,
        },
        Mode::Help => Some(Intent::Leave),
    }
}

fn looking(code: KeyCode) -> Option<Intent> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => Intent::Move(-1),
        KeyCode::Down | KeyCode::Char('j') => Intent::Move(1),
        KeyCode::Home | KeyCode::Char('g') => Intent::Move(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => Intent::Move(isize::MAX),
        KeyCode::PageUp => Intent::Scroll(-PAGE),
        KeyCode::PageDown => Intent::Scroll(PAGE),
        KeyCode::Tab | KeyCode::BackTab => Intent::NextPane,
        KeyCode::Char('/') => Intent::Filter,
        KeyCode::Char('?' | 'h') => Intent::Help,
        KeyCode::Char('x') => Intent::Cancel,
        KeyCode::Char('c') | KeyCode::Enter => Intent::Collect,
        KeyCode::Char('[') | KeyCode::Left => Intent::Session(-1),
        KeyCode::Char(']') | KeyCode::Right => Intent::Session(1),
        KeyCode::Char('q') => Intent::Quit,
        KeyCode::Esc => Intent::StopAll,
        _ => return None,
    })
}

fn of_mouse(mouse: MouseEvent) -> Option<Intent> {
    let position = Position::new(mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => Some(Intent::Click(position)),
        MouseEventKind::ScrollUp => Some(Intent::Wheel(position, -WHEEL)),
        MouseEventKind::ScrollDown => Some(Intent::Wheel(position, WHEEL)),
        _ => None,
    }
}

impl Scene {
    /// Does what concerns the screen alone, and says what is left to be done.
    pub(super) fn take(&mut self, intent: Intent, areas: &Areas) -> Option<Wish> {
        self.view.notice = None;
        match intent {
            Intent::Move(by) => self.step(self.view.focus, by),
            Intent::Scroll(by) => self.step(Focus::Details, by),
            Intent::Wheel(position, by) => self.wheel(position, by, areas),
            Intent::Click(position) => self.click(position, areas),
            Intent::NextPane => {
                self.view.focus = match self.view.focus {
                    Focus::Agents if !self.board_rows.is_empty() => Focus::Board,
                    Focus::Agents | Focus::Board => Focus::Details,
                    Focus::Details => Focus::Agents,
                }
            }
            Intent::Filter => self.view.mode = Mode::Filtering,
            Intent::Type(c) => self.type_filter(Some(c)),
            Intent::Erase => self.type_filter(None),
            Intent::Keep => self.view.mode = Mode::Looking,
            Intent::Leave => {
                if self.view.mode == Mode::Filtering {
                    self.clear_filter();
                }
                self.view.mode = Mode::Looking;
            }
            Intent::Help => self.view.mode = Mode::Help,
            Intent::Cancel | Intent::Collect => return self.end_selected(intent),
            // Who sees some of the tasks would stop others as well: the first press shows them.
            Intent::StopAll if !self.view.filter.is_empty() => self.clear_filter(),
            Intent::StopAll => return self.stop_all(),
            Intent::Session(by) => return Some(Wish::Ask(Errand::Session(by))),
            Intent::Quit => return Some(Wish::Quit),
        }
        None
    }

    /// Escape: agents stop. Commands that run in the background of others are left alone.
    fn stop_all(&mut self) -> Option<Wish> {
        let ids = self.unfinished();
        if ids.is_empty() {
            self.view.notice = Some("nothing runs here; q leaves".to_owned());
            return None;
        }
        self.view.notice = Some(format!("stopping {} …", counted(ids.len() as u64, "agent")));
        Some(Wish::Ask(Errand::Cancel(ids)))
    }

    fn end_selected(&mut self, intent: Intent) -> Option<Wish> {
        let (id, is_final) = self.selected().map(|task| (task.task_id, task.status.is_final()))?;
        let (notice, errand) = match (intent, is_final) {
            (Intent::Cancel, false) => (format!("stopping {id} …"), Some(Errand::Cancel(vec![id]))),
            (Intent::Cancel, true) => (format!("{id} has ended; c collects it"), None),
            (_, true) => (format!("collecting {id} …"), Some(Errand::Collect(id))),
            (_, false) => (format!("{id} has not ended; x stops it"), None),
        };
        self.view.notice = Some(notice);
        errand.map(Wish::Ask)
    }

    fn step(&mut self, focus: Focus, by: isize) {
        match focus {
            Focus::Agents => self.select(self.view.at.saturating_add_signed(by)),
            Focus::Board => {
                let last = self.board_rows.len().saturating_sub(1);
                self.view.board_at = self.view.board_at.saturating_add_signed(by).min(last);
            }
            // Down is towards the end, which is where nothing is left out.
            Focus::Details => {
                let most = self.facts.transcript.as_ref().map_or(0, |said| said.lines_max());
                self.view.back = self.view.back.saturating_add_signed(by.saturating_neg()).min(most);
            }
        }
    }

    fn wheel(&mut self, position: Position, by: isize, areas: &Areas) {
        if areas.board.contains(position) {
            self.step(Focus::Board, by);
        } else if areas.agents.contains(position) {
            self.step(Focus::Agents, by);
        } else {
            self.step(Focus::Details, by);
        }
    }

    fn click(&mut self, position: Position, areas: &Areas) {
        if let Some(row) = areas.agent_row(self.view.at, self.rows.len(), position) {
            self.view.focus = Focus::Agents;
            self.select(row);
        } else if let Some(row) = areas.board_row(self.view.board_at, self.board_rows.len(), position) {
            self.view.focus = Focus::Board;
            self.view.board_at = row;
        } else if areas.details.contains(position) {
            self.view.focus = Focus::Details;
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::super::frame;
    use super::super::frame::tests::{running, scene};
    use super::*;

    fn press(scene: &mut Scene, codes: &[KeyCode]) -> Option<Wish> {
        let mut wish = None;
        for code in codes {
            let areas = Areas::of(Rect::new(0, 0, 80, 24), scene.wants());
            let event = Event::Key(KeyEvent::new(*code, KeyModifiers::NONE));
            wish = intent(&event, scene.view.mode).and_then(|intent| scene.take(intent, &areas));
        }
        wish
    }

    #[test]
    fn keys_ask_for_what_the_help_says() {
        let cancel = |ids: &[u32]| Some(Wish::Ask(Errand::Cancel(ids.iter().map(|id| TaskId::new(*id)).collect())));
        let (down, char) = (KeyCode::Down, KeyCode::Char);
        // Three run (t_01 to t_03), t_04 is queued and t_05 has ended.
        let cases: [(&[KeyCode], Option<Wish>); 11] = [
            (&[char('x')], cancel(&[1])),
            (&[down, char('x')], cancel(&[2])),
            (&[KeyCode::End, char('x')], None),
            (&[KeyCode::End, char('c')], Some(Wish::Ask(Errand::Collect(TaskId::new(5))))),
            (&[char('c')], None),
            (&[KeyCode::Esc], cancel(&[4, 3, 2, 1])),
            (&[char('?'), KeyCode::Esc], None),
            (&[char('/'), char('q'), KeyCode::Esc], None),
            (&[char('/'), char('t'), KeyCode::Enter, KeyCode::Esc], None),
            (&[char('/'), char('t'), KeyCode::Enter, KeyCode::Esc, KeyCode::Esc], cancel(&[4, 3, 2, 1])),
            (&[char('q')], Some(Wish::Quit)),
        ];
        for (keys, wish) in cases {
            assert_eq!(press(&mut scene(running(3)), keys), wish, "{keys:?}");
        }
    }

    #[test]
    fn a_filter_narrows_what_is_shown_and_what_keys_reach() {
        let mut filtered = scene(running(3));
        press(
            &mut filtered,
            &[KeyCode::Char('/'), KeyCode::Char('t'), KeyCode::Char('_'), KeyCode::Char('0'), KeyCode::Char('3')],
        );
        assert_eq!((filtered.rows.len(), filtered.selected().map(|task| task.task_id)), (1, Some(TaskId::new(3))));
        press(&mut filtered, &[KeyCode::Esc]);
        assert_eq!((filtered.rows.len(), filtered.selected().map(|task| task.task_id)), (5, Some(TaskId::new(3))));
    }

    #[test]
    fn a_click_selects_the_task_that_is_drawn_there() {
        let mut scene = scene(running(30));
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        let areas = frame::draw(&scene, &mut buffer).areas;
        let line = |y: u16| -> String { (0..80).map(|x| buffer[(x, y)].symbol().to_owned()).collect() };
        let y = (0..24).find(|y| line(*y).contains("t_04")).expect("it is shown");
        let click = MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column: 3,
            row: y,
            modifiers: KeyModifiers::NONE,
        };
        let wanted = intent(&Event::Mouse(click), Mode::Looking).expect("a click means something");
        scene.take(wanted, &areas);
        assert_eq!(scene.view.selected, Some(TaskId::new(4)));
    }
}
