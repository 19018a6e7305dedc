//! Every way in which a model call goes wrong, and what must come of it.

use locum_core::task::event::FailureKind;
use locum_core::task::outcome::Reason;

use super::server::Act;
use super::shape::{Call, Shape, Stop, StreamError, TURNS, stream};

/// What must come of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The call is made again, five times at most.
    Passes(FailureKind),
    /// The call is not made again.
    Lasts(FailureKind),
    /// The model answered, and what it said ends the task.
    Ends(Reason),
    /// The turn's own call is not run, the model is told, and the conversation goes on.
    AnsweredToTheModel,
    /// There is nothing wrong with it; the tool runs so often in this turn.
    Fine { notes: usize },
}

/// One way to fail.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) acts: Vec<Act>,
    pub(crate) expected: Expected,
}

/// Every way to fail in a turn.
pub(crate) fn cases(shape: Shape, turn: usize) -> Vec<Case> {
    [statuses(shape), bodies(shape, turn), streams(shape, turn), replies(shape)].into_iter().flatten().collect()
}

fn case(name: &'static str, acts: Vec<Act>, expected: Expected) -> Case {
    Case { name, acts, expected }
}

fn statuses(shape: Shape) -> Vec<Case> {
    use Expected::{Lasts, Passes};
    use FailureKind::{Auth, BadRequest, ContextOverflow, NotFound, Overloaded, RateLimit, Server, Timeout};
    let status = |name, status, headers, message: &str, expected| {
        case(name, vec![Act::Answer { status, headers, body: shape.explanation(message) }], expected)
    };
    let past = "Retry-After: Fri, 15 May 2015 15:34:21 GMT\r\n";
    let future = "Retry-After: Fri, 15 May 2615 15:34:21 GMT\r\n";
    vec![
        status("400", 400, "", "It is wrong.", Lasts(BadRequest)),
        status("401", 401, "", "Who?", Lasts(Auth)),
        status("403", 403, "", "Not you.", Lasts(Auth)),
        status("404", 404, "", "No such model.", Lasts(NotFound)),
        status("408", 408, "", "Too slow.", Passes(Timeout)),
        status("413", 413, "", "Too large.", Lasts(ContextOverflow)),
        status("400 for a long conversation", 400, "", "prompt is too long: 9 tokens > 8", Lasts(ContextOverflow)),
        status("429", 429, "", "Slow down.", Passes(RateLimit)),
        status("429 with seconds", 429, "Retry-After: 3\r\n", "Slow down.", Passes(RateLimit)),
        status("429 with a date", 429, past, "Slow down.", Passes(RateLimit)),
        status("429 until long after", 429, future, "Slow down.", Lasts(RateLimit)),
        status("429 for an hour", 429, "Retry-After: 3600\r\n", "Slow down.", Lasts(RateLimit)),
        status("500", 500, "", "Oh.", Passes(Server)),
        status("502", 502, "", "Oh.", Passes(Server)),
        status("503", 503, "", "Oh.", Passes(Overloaded)),
        status("503 with seconds", 503, "Retry-After: 3\r\n", "Oh.", Passes(Overloaded)),
        status("504", 504, "", "Oh.", Passes(Server)),
        status("529", 529, "", "Oh.", Passes(Overloaded)),
    ]
}

fn bodies(shape: Shape, turn: usize) -> Vec<Case> {
    use Expected::Passes;
    let answer = |body: &str| vec![Act::Answer { status: 200, headers: "", body: body.to_owned() }];
    let speech = shape.speech(turn);
    vec![
        case("HTML instead of JSON", answer("<!doctype html><p>Log in!</p>"), Passes(FailureKind::Malformed)),
        case("no body", answer(""), Passes(FailureKind::Malformed)),
        case("nonsense", answer("data: 7 of 9\n\n"), Passes(FailureKind::Malformed)),
        case("closed before the head", vec![Act::Close], Passes(FailureKind::Network)),
        case("nothing before the head", vec![Act::Hang], Passes(FailureKind::Timeout)),
        case("no first token", vec![Act::Head, Act::Hang], Passes(FailureKind::Timeout)),
        case("pings only", vec![Act::Head, Act::PingForEver], Passes(FailureKind::Timeout)),
        case(
            "pings only, after the beginning",
            vec![Act::Head, Act::Piece(shape.begin().into_bytes()), Act::PingForEver],
            Passes(FailureKind::Timeout),
        ),
        case(
            "silence in the middle",
            vec![Act::Head, Act::Piece(speech.into_bytes()), Act::Hang],
            Passes(FailureKind::Timeout),
        ),
    ]
}

fn streams(shape: Shape, turn: usize) -> Vec<Case> {
    use Expected::{Fine, Lasts, Passes};
    let speech = shape.speech(turn);
    let cut = |bytes: &[u8]| vec![Act::Head, Act::Piece(bytes.to_vec()), Act::Close];
    let ended = |events: &str| stream(events);
    let crab = [shape.begin(), shape.text(&["Half a 🦀"])].concat();
    let in_crab = crab.find('🦀').unwrap_or_default() + 2;
    let half_call = Call { index: 0, id: "call_h", name: "note", arguments: &["{\"n\": 9"] };
    let half_call = [shape.begin(), shape.calls(&[half_call])].concat();
    let broken = |error| ended(&[speech.clone(), shape.error(error)].concat());
    let finish = shape.finish(shape.reason(turn));
    let notes = usize::from(turn < TURNS);
    vec![
        case("cut in an event", cut(&speech.as_bytes()[..speech.len() - 20]), Passes(FailureKind::CutStream)),
        case("cut in a character", cut(&crab.as_bytes()[..in_crab]), Passes(FailureKind::CutStream)),
        case("cut in a tool call", cut(half_call.as_bytes()), Passes(FailureKind::CutStream)),
        case("ended in a tool call", ended(&half_call), Passes(FailureKind::CutStream)),
        case("no stop event", ended(&speech), Passes(FailureKind::CutStream)),
        case("cut before the stop event", cut(speech.as_bytes()), Passes(FailureKind::CutStream)),
        case("overloaded in a stream", broken(StreamError::Overloaded), Passes(FailureKind::Overloaded)),
        case("rate limit in a stream", broken(StreamError::RateLimit), Passes(FailureKind::RateLimit)),
        case("server error in a stream", broken(StreamError::Server), Passes(FailureKind::Server)),
        case("bad request in a stream", broken(StreamError::Invalid), Lasts(FailureKind::BadRequest)),
        case(
            "unknown events",
            ended(&[shape.unknown(), speech.clone(), shape.unknown(), finish].concat()),
            Fine { notes },
        ),
        case(
            "no usage",
            ended(&[speech.clone(), shape.stop(shape.reason(turn)), shape.done()].concat()),
            Fine { notes },
        ),
    ]
}

fn call<'a>(index: usize, id: &'a str, name: &'a str, arguments: &'a [&'a str]) -> Call<'a> {
    Call { index, id, name, arguments }
}

fn replies(shape: Shape) -> Vec<Case> {
    use Expected::{AnsweredToTheModel, Ends, Fine};
    let says = |events: &str, stop| stream(&[shape.begin(), events.to_owned(), shape.finish(stop)].concat());
    let one = |name, arguments: &[&str]| shape.calls(&[call(0, "call_a", name, arguments)]);
    let two =
        shape.calls(&[call(0, "call_a", "note", &["{\"n\":", "10}"]), call(1, "call_b", "note", &["{\"n\":", "11}"])]);
    let disordered =
        shape.calls(&[call(1, "call_b", "note", &["{\"n\":", "11}"]), call(0, "call_a", "note", &["{\"n\":", "10}"])]);
    let duplicated = shape.calls(&[call(0, "call_a", "note", &["{\"n\":10}"])])
        + &shape.calls(&[call(0, "call_b", "note", &["{\"n\":11}"])]);
    let cut_call = [shape.text(&["So far"]), one("note", &["{\"n\": 1"])].concat();
    vec![
        case("malformed tool input", says(&one("note", &["{\"n\": ", "oops}"]), Stop::Tools), AnsweredToTheModel),
        case("tool input that is no object", says(&one("note", &["[1]"]), Stop::Tools), AnsweredToTheModel),
        case("an unknown tool", says(&one("launch", &["{}"]), Stop::Tools), AnsweredToTheModel),
        case("parallel calls", says(&two, Stop::Tools), Fine { notes: 2 }),
        case("calls out of order", says(&disordered, Stop::Tools), Fine { notes: 2 }),
        case("an index twice", says(&duplicated, Stop::Tools), Fine { notes: 2 }),
        case("an empty answer", says("", Stop::End), Ends(Reason::Empty)),
        case("a blank answer", says(&shape.text(&[" \n"]), Stop::End), Ends(Reason::Empty)),
        case("a refusal", stream(&[shape.begin(), shape.refusal()].concat()), Ends(Reason::Refused)),
        case("a content filter", says(&shape.text(&["I wo"]), Stop::Filter), Ends(Reason::Refused)),
        case("a filter in a tool call", says(&cut_call, Stop::Filter), Ends(Reason::Refused)),
        case("the output limit", says(&shape.text(&["So f"]), Stop::Length), Ends(Reason::Cut)),
        case("the output limit in a tool call", says(&cut_call, Stop::Length), Ends(Reason::Cut)),
    ]
}
