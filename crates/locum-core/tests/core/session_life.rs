//! The life of a session, step by step.

use locum_core::ids::SessionId;
use locum_core::session::life::{Step, decide};
use locum_core::session::{SessionChange, SessionView};

#[test]
fn each_step_needs_its_state() {
    let view = |exists: bool, archived: bool, unfinished: u32| SessionView {
        exists,
        archived,
        unfinished,
        ..SessionView::default()
    };
    let none = "SESSION_NOT_FOUND: there is no session `s` in this project";
    let cases = [
        (Step::Create, view(false, false, 0), Ok(Some(SessionChange::Create))),
        (Step::Create, view(true, false, 0), Err("INVALID_REQUEST: there is a session `s` already")),
        (Step::Create, view(true, true, 0), Err("INVALID_REQUEST: there is a session `s` already")),
        (Step::Archive, view(false, false, 0), Err(none)),
        (Step::Archive, view(true, false, 0), Ok(Some(SessionChange::Archive))),
        (Step::Archive, view(true, false, 3), Ok(Some(SessionChange::Archive))),
        (Step::Archive, view(true, true, 0), Ok(None)),
        (Step::Delete, view(false, false, 0), Err(none)),
        (Step::Delete, view(true, false, 0), Ok(Some(SessionChange::Delete))),
        (Step::Delete, view(true, true, 0), Ok(Some(SessionChange::Delete))),
        (Step::Delete, view(true, false, 2), Err("INVALID_REQUEST: the session `s` has unfinished tasks: 2")),
    ];
    let id = SessionId::parse("s").unwrap();
    for (step, view, expected) in cases {
        let decided = decide(step, &id, &view).map_err(|refusal| refusal.to_string());
        assert_eq!(decided, expected.map_err(str::to_owned), "{step:?} {view:?}");
    }
}
