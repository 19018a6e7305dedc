//! A whole terminal as a screen. However its owner ends, the terminal is as it was before.

use std::io::{IsTerminal, Stdout, Write as _};
use std::sync::Once;

use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;

/// The panic hook is put there once, whatever is opened.
static HOOK: Once = Once::new();

/// A terminal that is drawn on as a whole.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Whether there is a terminal that can be drawn on.
    pub(crate) fn is_there() -> bool {
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    /// Takes the terminal.
    pub(crate) fn open() -> std::io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            // What went wrong must be readable where the person is afterwards.
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        let opened = execute!(std::io::stdout(), EnterAlternateScreen, EnableMouseCapture, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(std::io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws one frame; only what differs from the last is sent.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> std::io::Result<()> {
        self.terminal.draw(|frame| draw(frame.buffer_mut())).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. What a terminal that went away refuses needs no undoing.
fn restore() {
    let mut stdout = std::io::stdout();
    execute!(stdout, DisableMouseCapture, LeaveAlternateScreen, cursor::Show).ok();
    disable_raw_mode().ok();
    stdout.flush().ok();
}
