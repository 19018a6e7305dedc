//! Server-sent events, parsed from bytes as they arrive, however they are split. It knows nothing of what an event
//! means, and hands out slices of its own buffers: after the first few events nothing is allocated.

use locum_core::limits;
use locum_core::task::event::FailureKind;

use crate::model::ModelError;

/// Bytes of one event. A server may send a whole reply as one event, in which JSON escapes make the text longer.
pub(crate) const EVENT_BYTES_MAX: usize = 2 * limits::REPLY_BYTES_MAX;

/// Some servers begin their answer with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One thing that a server said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// An event's data; its lines are joined by line feeds.
    Data(&'a [u8]),
    /// A comment: servers send them to keep a connection open.
    Comment,
}

/// An event stream under way.
#[derive(Debug)]
pub(crate) struct Parser {
    /// The beginning of a line whose end has not arrived.
    line: Vec<u8>,
    /// The data of the event whose end has not arrived.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed right after it belongs to the same line end.
    after_return: bool,
    is_first_line: bool,
    bytes_max: usize,
}

impl Parser {
    /// A stream of which nothing has arrived.
    pub(crate) fn new() -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            is_first_line: true,
            bytes_max: EVENT_BYTES_MAX,
        }
    }

    /// Takes the next bytes and hands on every event that they complete.
    pub(crate) fn feed<F>(&mut self, mut chunk: &[u8], on_event: &mut F) -> Result<(), ModelError>
    where
        F: FnMut(Event<'_>) -> Result<(), ModelError>,
    {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                return self.keep(chunk);
            };
            self.after_return = chunk[end] == b'\r';
            self.end_line(&chunk[..end], on_event)?;
            chunk = &chunk[end + 1..];
        }
        Ok(())
    }

    /// Hands on what a stream leaves unfinished when it ends: many servers forget the last empty line. Whether such
    /// an event is whole, only its reader can tell.
    pub(crate) fn finish<F>(mut self, on_event: &mut F) -> Result<(), ModelError>
    where
        F: FnMut(Event<'_>) -> Result<(), ModelError>,
    {
        if !self.line.is_empty() {
            self.end_line(&[], on_event)?;
        }
        self.take_line(&[], on_event)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.check_room(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check_room(&self, bytes: usize) -> Result<(), ModelError> {
        if bytes <= self.bytes_max {
            return Ok(());
        }
        let message = format!("one event of the answer is longer than {} bytes", self.bytes_max);
        Err(ModelError::new(FailureKind::TooLarge, message))
    }

    /// A line ends with `rest`; its beginning may have been kept.
    fn end_line<F>(&mut self, rest: &[u8], on_event: &mut F) -> Result<(), ModelError>
    where
        F: FnMut(Event<'_>) -> Result<(), ModelError>,
    {
        if self.line.is_empty() {
            return self.take_line(rest, on_event);
        }
        self.keep(rest)?;
        let mut line = std::mem::take(&mut self.line);
        let taken = self.take_line(&line, on_event);
        // The buffer goes back, so that the next split line needs no new one.
        line.clear();
        self.line = line;
        taken
    }

    fn take_line<F>(&mut self, mut line: &[u8], on_event: &mut F) -> Result<(), ModelError>
    where
        F: FnMut(Event<'_>) -> Result<(), ModelError>,
    {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            if !std::mem::take(&mut self.has_data) {
                return Ok(());
            }
            let handled = on_event(Event::Data(&self.data));
            self.data.clear();
            return handled;
        }
        if line[0] == b':' {
            return on_event(Event::Comment);
        }
        let Some(value) = data_of(line) else { return Ok(()) };
        self.check_room(self.data.len() + value.len() + 1)?;
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }
}

/// The value of a `data` line; none for every other field, which no model API needs.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest {
        [] => Some(rest),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMENT: &str = "<comment>";

    /// The events of a stream that arrives in these pieces.
    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut on_event = |event: Event<'_>| {
            seen.push(match event {
                Event::Data(data) => String::from_utf8(data.to_vec()).unwrap(),
                Event::Comment => COMMENT.to_owned(),
            });
            Ok(())
        };
        let mut parser = Parser::new();
        for piece in pieces {
            parser.feed(piece, &mut on_event).unwrap();
        }
        parser.finish(&mut on_event).unwrap();
        seen
    }

    #[test]
    fn streams_are_parsed_whatever_their_line_ends_and_however_they_are_split() {
        let cases: [(&str, &[&str]); 9] = [
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("\u{feff}data: ä→🦀\n\n", &["ä→🦀"]),
            (": ping\n\n:\n\ndata:x\n\n", &[COMMENT, COMMENT, "x"]),
            ("data: one\ndata:  two\ndata\ndata:\n\n", &["one\n two\n\n"]),
            ("event: x\nid: 7\nretry: 1\ndatabase: no\n\ndata: yes\n\n", &["yes"]),
            ("data: no empty line\n", &["no empty line"]),
            ("data: not even a line end", &["not even a line end"]),
        ];
        for (stream, expected) in cases {
            let bytes = stream.as_bytes();
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(events(&[head, tail]), expected, "{stream:?} split at {at}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(events(&single), expected, "{stream:?} byte by byte");
        }
    }

    #[test]
    fn an_event_without_end_is_refused_whether_it_is_one_line_or_many() {
        let endless: [&[u8]; 2] = [b"data: aaaaaaaaaaaa", b"data: aaaa\n"];
        for piece in endless {
            let mut parser = Parser { bytes_max: 100, ..Parser::new() };
            let outcome = (0..100).try_for_each(|_| parser.feed(piece, &mut |_| Ok(())));
            assert_eq!(outcome.unwrap_err().kind, FailureKind::TooLarge);
        }
    }

    #[test]
    fn buffers_are_kept_from_event_to_event() {
        let mut parser = Parser::new();
        parser.feed(b"data: 0123456789012345678901234567890123456789", &mut |_| Ok(())).unwrap();
        parser.feed(b"\n\n", &mut |_| Ok(())).unwrap();
        let capacities = (parser.line.capacity(), parser.data.capacity());
        for _ in 0..10 {
            parser.feed(b"data: 01234567890123", &mut |_| Ok(())).unwrap();
            parser.feed(b"45678901234567890123\n\n", &mut |_| Ok(())).unwrap();
        }
        assert_eq!((parser.line.capacity(), parser.data.capacity()), capacities);
    }
}
