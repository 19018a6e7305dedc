//! How a model that is no service speaks: it shows its text in pieces, as a stream would, and estimates its tokens.

use locum_core::transcript::{Message, Prompt, Reply, ToolCall};
use locum_core::usage::{TokenCount, tokens_of_chars};

use crate::model::{Delta, Deltas};

/// How many pieces a text is shown in: enough that whoever shows a stream is put to the test.
const PIECES: usize = 4;

/// Shows a text in a few pieces, and that the tool calls begin.
pub(crate) fn show(text: &str, calls: &[ToolCall], deltas: &mut Deltas<'_>) {
    for piece in pieces(text) {
        deltas(Delta::Text(piece));
    }
    for call in calls {
        deltas(Delta::ToolCall { name: &call.name });
    }
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let step = text.chars().count().div_ceil(PIECES).max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(chars_end(rest, step));
        rest = after;
        Some(piece)
    })
}

/// Where the first `chars` characters of a text end, in bytes.
pub(crate) fn chars_end(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(end, _)| end)
}

/// The tokens of everything that was sent and said, estimated from its characters.
pub(crate) fn estimate(prompt: &Prompt<'_>, reply: &Reply) -> TokenCount {
    let sent = chars(prompt.system)
        + prompt.notice.map_or(0, chars)
        + prompt.messages.iter().map(chars_of_message).sum::<usize>();
    TokenCount {
        input: tokens_of_chars(sent) as u64,
        output: tokens_of_chars(chars_of_reply(reply)) as u64,
        ..TokenCount::default()
    }
}

fn chars_of_message(message: &Message) -> usize {
    match message {
        Message::User(text) => chars(text),
        Message::Assistant(reply) => chars_of_reply(reply),
        Message::Tool { output, .. } => chars(&output.text),
    }
}

fn chars_of_reply(reply: &Reply) -> usize {
    let calls = reply.tool_calls.iter().map(|call| chars(&call.name) + chars(&call.input.to_string()));
    chars(&reply.text) + calls.sum::<usize>()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_whole_and_are_few() {
        for text in ["", "a", "ab", "abcde", "wörter über wörter", &"x".repeat(1001)] {
            let shown: Vec<&str> = pieces(text).collect();
            assert_eq!(shown.concat(), text);
            assert!(shown.len() <= PIECES, "{shown:?}");
        }
    }
}
