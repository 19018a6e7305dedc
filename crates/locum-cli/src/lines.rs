//! Lines of input with a bound: one that is too long is read past and never kept. It knows nothing of what they mean.

use std::io;

use locum::limits;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// It was longer than a request may be.
    TooLong,
}

/// The lines of an input, each at most as long as a request may be.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), is_too_long: false }
    }

    /// The next line; none at the end of the input. What comes last needs no line end. Dropping the future loses
    /// nothing: what was read is kept for the next call.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                let is_something = self.is_too_long || !self.line.is_empty();
                return Ok(is_something.then(|| self.take()));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(available.len());
            if self.line.len() + taken > limits::REQUEST_BYTES_MAX {
                self.is_too_long = true;
                self.line = Vec::new();
            } else if !self.is_too_long {
                self.line.extend_from_slice(&available[..taken]);
            }
            self.input.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) { Line::TooLong } else { Line::Whole(line) }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    async fn all(input: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(input);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.expect("bytes in memory can be read") {
            all.push(line);
        }
        all
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_last_needs_no_end() {
        assert_eq!(all(b"").await, []);
        assert_eq!(all(b"\n").await, [whole("")]);
        assert_eq!(all(b"a\n\nb\n").await, [whole("a"), whole(""), whole("b")]);
        assert_eq!(all(b"a\nb").await, [whole("a"), whole("b")]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
        let most = "m".repeat(limits::REQUEST_BYTES_MAX);
        assert_eq!(all(format!("{most}\nb\n").as_bytes()).await, [whole(&most), whole("b")]);
        assert_eq!(all(format!("{most}m\nb\n").as_bytes()).await, [Line::TooLong, whole("b")]);
        assert_eq!(all(format!("a\n{most}{most}m").as_bytes()).await, [whole("a"), Line::TooLong]);
    }

    #[tokio::test]
    async fn what_is_too_long_is_not_kept() {
        let long = vec![b'm'; 3 * limits::REQUEST_BYTES_MAX];
        let mut lines = Lines::new(long.as_slice());
        assert_eq!(lines.next().await.expect("bytes in memory can be read"), Some(Line::TooLong));
        assert_eq!(lines.line.capacity(), 0);
    }

    #[tokio::test]
    async fn a_reader_that_gives_up_half_way_loses_nothing() {
        let (mut client, server) = tokio::io::duplex(64);
        let mut lines = Lines::new(server);
        client.write_all(b"first ").await.expect("there is room");
        {
            let mut next = pin!(lines.next());
            let polled = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
        }
        client.write_all(b"half\n").await.expect("there is room");
        assert_eq!(lines.next().await.expect("the pipe is open"), Some(whole("first half")));
    }
}
