//! Streams with something wrong in them, by the hundred: whatever a server or the way to it does to an answer, it is a
//! reply or a failure, never a panic and never a reply that the model had not ended.

use locum_models::providers::Protocol;

use super::speaker::{ALL, Ending, Speaker};
use super::{RICH, ask};
use crate::server::{Server, stream};

/// Damaged streams of each protocol.
const STREAMS: u64 = 600;

/// Characters of what is said about a failure: a server's bytes are quoted, not repeated.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// The same numbers in every run, so that what fails once fails again.
struct Dice(u64);

impl Dice {
    /// A number below `end`, which is above 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn span(&mut self, end: usize) -> std::ops::Range<usize> {
        let from = self.below(end);
        from..(from + 1 + self.below(40)).min(end)
    }
}

/// What numbers, names and texts are replaced by.
const STRANGE: [&str; 12] = [
    "null",
    "-1",
    "18446744073709551616",
    "1e999",
    "[]",
    "{}",
    "\"\\ud800\"",
    "\u{0}",
    "\"\u{feff}\"",
    "true",
    "\n\n",
    "[[[[[[[[[[[[[[[[",
];

/// One stream, damaged once or several times.
fn damaged(speaker: &Speaker, dice: &mut Dice) -> Vec<u8> {
    let endings = [Ending::Stop, Ending::Length, Ending::Filter];
    let mut events: Vec<Vec<u8>> =
        speaker.events(&RICH, endings[dice.below(3)], dice.below(2) == 0).into_iter().map(String::into_bytes).collect();
    for _ in 0..=dice.below(3) {
        let (one, other) = (dice.below(events.len()), dice.below(events.len()));
        match dice.below(6) {
            0 => events.swap(one, other),
            1 => events.insert(one, events[other].clone()),
            2 if events.len() > 1 => drop(events.remove(one)),
            3 => {
                let span = dice.span(events[one].len());
                events[one].drain(span);
            }
            4 => {
                let span = dice.span(events[one].len());
                let strange = STRANGE[dice.below(STRANGE.len())].as_bytes().to_vec();
                events[one].splice(span, strange);
            }
            _ => {
                let at = dice.below(events[one].len());
                events[one][at] = dice.below(256) as u8;
            }
        }
        events.retain(|event| !event.is_empty());
        if events.is_empty() {
            break;
        }
    }
    events.concat()
}

/// Whether anything in a stream says why the model stopped.
fn is_ended(speaker: &Speaker, stream: &str) -> bool {
    let words: &[&str] = match speaker.protocol {
        Protocol::OpenaiChat => &["finish_reason"],
        Protocol::OpenaiResponses => &["response.completed", "response.incomplete"],
        Protocol::AnthropicMessages => &["stop_reason"],
        Protocol::GoogleGemini => &["finishReason"],
    };
    words.iter().any(|word| stream.contains(word))
}

#[tokio::test]
async fn no_damage_makes_a_reply_that_the_model_had_not_ended() {
    for speaker in &ALL {
        let mut dice = Dice(0x10c0_0000_0000_0001);
        let bodies: Vec<Vec<u8>> = (0..STREAMS).map(|_| damaged(speaker, &mut dice)).collect();
        let cut = |body: &[u8]| stream(&body.chunks(7).collect::<Vec<_>>());
        let scripts = bodies.iter().map(|body| cut(body)).collect();
        let server = Server::start(scripts).await;
        let model = speaker.model(&server);
        let (mut replies, mut failures) = (0, 0);
        for body in &bodies {
            let shown = String::from_utf8_lossy(body);
            match ask(&model).await.0 {
                Ok(reply) => {
                    replies += 1;
                    assert!(is_ended(speaker, &shown), "{}: {reply:?} of\n{shown}", speaker.protocol);
                    let nameless = reply.tool_calls.iter().any(|call| call.name.is_empty());
                    assert!(!nameless, "{}: {reply:?} of\n{shown}", speaker.protocol);
                }
                Err(error) => {
                    failures += 1;
                    let chars = error.message.chars().count();
                    assert!((1..=MESSAGE_CHARS_MAX).contains(&chars), "{}: {error:?} of\n{shown}", speaker.protocol);
                }
            }
        }
        // Damage that always, or never, shows would test nothing.
        assert!(replies > 50 && failures > 50, "{}: {replies} replies, {failures} failures", speaker.protocol);
    }
}
