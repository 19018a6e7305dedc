//! What a command said, cut to what a model can read: its beginning and its end. The whole of it goes to a file as soon
//! as it is too long to be shown.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use locum_core::limits::{COMMAND_HEAD_BYTES, COMMAND_OUTPUT_BYTES_MAX, COMMAND_TAIL_BYTES};

use super::bounded;

/// Makes a file for the whole: the file, its path, and its name as commands know it.
type MakeFile<'a> = Box<dyn Fn() -> Result<(File, PathBuf, String), String> + Send + Sync + 'a>;

/// The output of one command, as it arrives.
pub(crate) struct CommandOutput<'a> {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    make_file: MakeFile<'a>,
    whole: Option<Result<(File, String), String>>,
}

impl<'a> CommandOutput<'a> {
    /// Nothing yet.
    pub(crate) fn new(make_file: impl Fn() -> Result<(File, PathBuf, String), String> + Send + Sync + 'a) -> Self {
        let make_file = Box::new(make_file);
        Self { head: Vec::new(), tail: VecDeque::new(), bytes: 0, make_file, whole: None }
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let was_long = self.is_long();
        let before = self.bytes;
        self.bytes += piece.len() as u64;
        if self.is_long() {
            if !was_long {
                self.begin_file();
            }
            self.write_through(piece, before);
        }
        let room = COMMAND_HEAD_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..room]);
        self.tail.extend(&piece[room..]);
        let surplus = self.tail.len().saturating_sub(COMMAND_TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    fn is_long(&self) -> bool {
        self.bytes > (COMMAND_HEAD_BYTES + COMMAND_TAIL_BYTES) as u64
    }

    /// Everything so far is still here when the output becomes too long.
    fn begin_file(&mut self) {
        let begun = (self.make_file)().and_then(|(mut file, _, shown)| {
            let (front, back) = self.tail.as_slices();
            let written =
                file.write_all(&self.head).and_then(|()| file.write_all(front)).and_then(|()| file.write_all(back));
            written.map(|()| (file, shown)).map_err(|error| error.to_string())
        });
        self.whole = Some(begun);
    }

    fn write_through(&mut self, piece: &[u8], before: u64) {
        let room = usize::try_from(COMMAND_OUTPUT_BYTES_MAX.saturating_sub(before)).unwrap_or(usize::MAX);
        if let Some(Ok((file, _))) = &mut self.whole
            && let Err(error) = file.write_all(&piece[..piece.len().min(room)])
        {
            self.whole = Some(Err(error.to_string()));
        }
    }

    /// What a model reads, with a notice in brackets at the end.
    pub(crate) fn finish(mut self, notice: &str) -> String {
        let mut text = String::new();
        if self.is_long() {
            let left = self.bytes - (self.head.len() + self.tail.len()) as u64;
            text.push_str(&String::from_utf8_lossy(bounded::head(&self.head, COMMAND_HEAD_BYTES)));
            text.push_str(&format!("\n[… {} left out; {} …]\n", bounded::size(left), self.place()));
            text.push_str(&String::from_utf8_lossy(self.tail.make_contiguous()));
        } else {
            self.head.extend(&self.tail);
            text.push_str(&String::from_utf8_lossy(&self.head));
        }
        let text = text.trim_end_matches('\n');
        match (text.is_empty(), notice.is_empty()) {
            (true, true) => "[no output]".to_owned(),
            (true, false) => format!("[{notice}]"),
            (false, true) => text.to_owned(),
            (false, false) => format!("{text}\n[{notice}]"),
        }
    }

    fn place(&self) -> String {
        match &self.whole {
            Some(Ok((_, shown))) if self.bytes > COMMAND_OUTPUT_BYTES_MAX => {
                format!("the first {} are in {shown}", bounded::size(COMMAND_OUTPUT_BYTES_MAX))
            }
            Some(Ok((_, shown))) => format!("the whole is in {shown}"),
            Some(Err(why)) => format!("the whole was not kept: {why}"),
            None => "the whole was not kept".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pieces: &[&[u8]], notice: &str) -> (String, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("whole.txt");
        let mut output = CommandOutput::new(|| {
            let file = File::create_new(&path).map_err(|error| error.to_string())?;
            Ok((file, path.clone(), "/run/whole.txt".to_owned()))
        });
        pieces.iter().for_each(|piece| output.push(piece));
        (output.finish(notice), std::fs::read(&path).unwrap_or_default())
    }

    #[test]
    fn short_outputs_are_shown_whole() {
        for (pieces, notice, expected) in [
            (&[][..], "", "[no output]"),
            (&[], "exit code 1", "[exit code 1]"),
            (&[&b"a\n"[..], b"b\n\n"], "", "a\nb"),
            (&[&b"a\n"[..]], "exit code 2", "a\n[exit code 2]"),
            (&[&b"\xff\xc3"[..], b"\xa4"], "", "\u{fffd}ä"),
        ] {
            assert_eq!(said(pieces, notice), (expected.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn of_a_long_output_both_ends_are_shown_and_the_whole_is_kept() {
        for size in [1, 7, 1000, 4096, 100_000] {
            let whole: Vec<u8> = (0..20_000).flat_map(|number| format!("line {number}\n").into_bytes()).collect();
            let pieces: Vec<&[u8]> = whole.chunks(size).collect();
            let (text, kept) = said(&pieces, "exit code 0");
            assert!(kept == whole, "{size}");
            assert!(text.starts_with("line 0\n") && text.ends_with("line 19999\n[exit code 0]"), "{size}");
            assert!(text.contains("left out; the whole is in /run/whole.txt …]"), "{size}");
            assert!(text.len() < COMMAND_HEAD_BYTES + COMMAND_TAIL_BYTES + 200, "{size}");
        }
    }
}
