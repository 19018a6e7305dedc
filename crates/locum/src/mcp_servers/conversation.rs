//! What a server says, as a stream of bounded lines, and what it complains about beside it.
//!
//! Both are read together, by whoever reads the conversation: a server that nobody hears complain would wait for ever.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use locum_core::limits;
use locum_core::neutral::neutralise;
use tokio::io::{AsyncRead, ReadBuf};

/// How much of a complaint is repeated in an error.
const QUOTED_CHARS_MAX: usize = 300;

/// How often complaints are read before the conversation is looked at again.
const COMPLAINTS_AT_ONCE: usize = 16;

/// What went wrong with a conversation, as far as it is known from the stream itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The end of what was complained about.
    complaints: Vec<u8>,
    is_too_long: bool,
}

impl Trouble {
    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        // Nothing panics or awaits under this lock.
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A message was longer than one may be.
    pub(super) fn note_too_long(&self) {
        self.with(|state| state.is_too_long = true);
    }

    fn complain(&self, bytes: &[u8]) {
        self.with(|state| {
            state.complaints.extend_from_slice(bytes);
            let excess = state.complaints.len().saturating_sub(limits::MCP_COMPLAINT_BYTES_MAX);
            state.complaints.drain(..excess);
        });
    }

    /// An error with what explains it.
    pub(super) fn explain(&self, error: &str) -> String {
        let (complaints, is_too_long) =
            self.with(|state| (String::from_utf8_lossy(&state.complaints).into_owned(), state.is_too_long));
        let mut text: String = error.chars().take(QUOTED_CHARS_MAX).collect();
        if is_too_long {
            text = format!("it sent a message of more than {} bytes", limits::MCP_MESSAGE_BYTES_MAX);
        }
        let last: Vec<&str> = complaints.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last: String = last.iter().rev().take(3).rev().copied().collect::<Vec<_>>().join(" | ");
        if last.is_empty() {
            return text;
        }
        let kept = last.chars().count().saturating_sub(QUOTED_CHARS_MAX);
        let last: String = last.chars().skip(kept).collect();
        format!("{text}; it complained: {}", neutralise(&last))
    }
}

/// Reads a conversation.
pub(super) struct Hearing<R, C> {
    stream: R,
    complaints: Option<C>,
    trouble: Trouble,
    /// Bytes of the line that has not ended.
    line_bytes: usize,
}

impl<R, C> Hearing<R, C> {
    pub(super) fn new(stream: R, complaints: Option<C>, trouble: Trouble) -> Self {
        Self { stream, complaints, trouble, line_bytes: 0 }
    }
}

impl<R, C: AsyncRead + Unpin> Hearing<R, C> {
    fn hear_complaints(&mut self, context: &mut Context<'_>) {
        let Some(complaints) = &mut self.complaints else { return };
        for _ in 0..COMPLAINTS_AT_ONCE {
            let mut bytes = [0; 1024];
            let mut piece = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *complaints).poll_read(context, &mut piece) {
                Poll::Ready(Ok(())) if !piece.filled().is_empty() => self.trouble.complain(piece.filled()),
                Poll::Ready(_) => {
                    self.complaints = None;
                    return;
                }
                Poll::Pending => return,
            }
        }
        context.waker().wake_by_ref();
    }

    /// Whether no line is longer than one may be.
    fn is_bounded(&mut self, piece: &[u8]) -> bool {
        let mut pieces = piece.split(|byte| *byte == b'\n');
        let first = pieces.next().map_or(0, <[u8]>::len);
        let longest = self.line_bytes + first;
        self.line_bytes = pieces.next_back().map_or(longest, <[u8]>::len);
        // A whole line inside one piece is as long as the piece at most, which is far below the limit.
        longest.max(self.line_bytes) <= limits::MCP_MESSAGE_BYTES_MAX
    }
}

impl<R: AsyncRead + Unpin, C: AsyncRead + Unpin> AsyncRead for Hearing<R, C> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.hear_complaints(context);
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        if this.is_bounded(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        this.trouble.note_too_long();
        // Whoever reads an error has read nothing.
        buffer.set_filled(before);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long")))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_without_end_ends_the_conversation() {
        let long = limits::MCP_MESSAGE_BYTES_MAX;
        for (head, tail, expected) in
            [(0, 0, true), (long, 10, true), (long + 1, 0, false), (long - 1, long + 1, false)]
        {
            let text = format!("{}\n{}", "x".repeat(head), "y".repeat(tail));
            let trouble = Trouble::default();
            let mut hearing = Hearing::new(text.as_bytes(), None::<&[u8]>, trouble.clone());
            let read = hearing.read_to_end(&mut Vec::new()).await;
            assert_eq!(read.is_ok(), expected, "{head} {tail}");
            assert_eq!(trouble.explain("it ended").contains("more than"), !expected);
        }
    }

    #[tokio::test]
    async fn the_end_of_what_was_complained_about_explains_an_error() {
        let trouble = Trouble::default();
        let complaints = format!("{}\nnode: not found\n", "noise\n".repeat(2_000));
        let mut hearing = Hearing::new(&b"hello"[..], Some(complaints.as_bytes()), trouble.clone());
        assert_eq!(hearing.read_to_end(&mut Vec::new()).await.unwrap(), 5);
        assert_eq!(trouble.explain("it ended"), "it ended; it complained: noise | noise | node: not found");
    }
}
