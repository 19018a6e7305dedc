//! The rules of the task board, as conversations, and against random ones.

use locum_core::board::{Terms, decide, lookup, named_owner};
use locum_core::ids::{Identity, TaskId};
use locum_core::limits;
use locum_core::protocol::parse::tool_request;
use locum_core::protocol::response::{BoardStatus, BoardTask, Response};
use locum_core::protocol::{BoardAction, Refusal, ToolRequest};
use locum_core::session::{BoardLookup, KnownTask, SessionChange, SessionView};
use locum_core::task::Status;
use proptest::prelude::{Strategy, prop, prop_assert, prop_oneof, proptest};
use serde_json::{Value, json};

use crate::world::{NOW, agent_name, uid};

/// A session with a board that keeps what is decided.
#[derive(Default)]
struct Board {
    view: SessionView,
}

impl Board {
    /// A session in which the tasks t_01 and t_02 run.
    fn new() -> Self {
        let mut board = Self::default();
        for number in [1, 2] {
            let known =
                KnownTask { uid: uid(number), agent: agent_name("writer"), status: Status::Running, collected: false };
            board.view.tasks.insert(TaskId::new(number), known);
            board.view.board.owners.insert(TaskId::new(number), Status::Running);
        }
        board
    }

    fn act(&mut self, who: &Identity, input: Value) -> Result<Response, Refusal> {
        let action = action(input)?;
        let seen = match lookup(&action) {
            BoardLookup::None => Vec::new(),
            BoardLookup::Tasks => self.live().cloned().collect(),
            BoardLookup::Everything => self.view.board.tasks.clone(),
        };
        let mut view = self.view.clone();
        view.board.tasks = seen;
        let (response, changes) = decide(&action, &Terms { participant: who, now: NOW }, &view)?;
        for change in changes {
            let SessionChange::PutBoardTask(task) = change else { panic!("{change:?}") };
            assert_eq!(task.owner_status, None, "it is looked up, never kept");
            self.view.board.last = self.view.board.last.max(task.id.number());
            self.view.board.tasks.retain(|other| other.id != task.id);
            self.view.board.tasks.push(*task);
            self.view.board.tasks.sort_by_key(|task| task.id);
        }
        Ok(response)
    }

    fn live(&self) -> impl Iterator<Item = &BoardTask> {
        self.view.board.tasks.iter().filter(|task| task.archived_at.is_none())
    }

    /// Says lines like `t_01 {"action": …}` (or `o` for the orchestrator) and writes down what is answered.
    fn say(&mut self, lines: &str) -> String {
        let mut said = String::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (who, input) = line.split_once(' ').unwrap();
            let answer = self.act(&identity(who), serde_json::from_str(input).unwrap());
            said.push_str(&format!("{}\n", shown(answer)));
        }
        said
    }
}

fn identity(who: &str) -> Identity {
    match who {
        "o" => Identity::Orchestrator,
        task => Identity::Subagent { agent: agent_name("writer"), task_id: TaskId::parse(task).unwrap() },
    }
}

fn action(input: Value) -> Result<BoardAction, Refusal> {
    match tool_request("manage_tasks", input)? {
        ToolRequest::ManageTasks(action) => Ok(action),
        other => panic!("{other:?}"),
    }
}

fn shown(answer: Result<Response, Refusal>) -> String {
    let line = |task: &BoardTask| {
        let owner = task.owner.as_deref().unwrap_or("-");
        let running = task.owner_status.map_or(String::new(), |status| format!(" {}", status.as_str()));
        format!("{} {} {owner}{running}", task.id, task.status.as_str())
    };
    match answer {
        Err(Refusal { code, message, hint }) => format!("{code}: {message} ({})", hint.unwrap_or_default()),
        Ok(Response::BoardTask(task)) => line(&task),
        Ok(Response::BoardAdded(added)) => added.added.iter().map(line).collect::<Vec<_>>().join(", "),
        Ok(Response::BoardTasks(tasks)) => tasks.tasks.iter().map(line).collect::<Vec<_>>().join(", "),
        Ok(other) => serde_json::to_string(&other).unwrap(),
    }
}

#[test]
fn a_task_has_its_shape() {
    let mut board = Board::new();
    let entry = json!({
        "action": "add", "subject": "Write tests", "description": "All of them.", "active_form": "Writing tests",
        "metadata": {"area": "core", "size": 3},
    });
    board.act(&Identity::Orchestrator, entry).unwrap();
    board.act(&identity("t_01"), json!({"action": "claim", "id": "b_01"})).unwrap();
    let update = json!({
        "action": "update", "id": "b_01", "comment": "Begun.", "metadata": {"size": null, "seen": true},
    });
    let answer = board.act(&identity("t_01"), update).unwrap();
    insta::assert_snapshot!(serde_json::to_string(&answer).unwrap(), @r#"{"id":"b_01","subject":"Write tests","description":"All of them.","active_form":"Writing tests","status":"in_progress","owner":"subagent:writer:t_01","owner_status":"running","blocked_by":[],"comments":[{"author":"subagent:writer:t_01","text":"Begun.","created_at":"2023-11-14T22:13:20.000Z"}],"metadata":{"area":"core","seen":true},"created_at":"2023-11-14T22:13:20.000Z"}"#);
    let plain = board.act(&Identity::Orchestrator, json!({"action": "add", "tasks": [{"subject": "s"}]})).unwrap();
    insta::assert_snapshot!(serde_json::to_string(&plain).unwrap(), @r#"{"added":[{"id":"b_02","subject":"s","status":"pending","blocked_by":[],"comments":[],"metadata":{},"created_at":"2023-11-14T22:13:20.000Z"}]}"#);
}

#[test]
fn a_claim_is_refused_where_the_task_is_owned_blocked_or_done() {
    insta::assert_snapshot!(Board::new().say(r#"
        o {"action": "add", "tasks": [{"subject": "one"}, {"subject": "two", "blocked_by": ["b_01"]}]}
        t_01 {"action": "claim", "id": "b_02"}
        t_01 {"action": "complete", "id": "b_02"}
        t_01 {"action": "claim", "id": "b_01"}
        t_01 {"action": "claim", "id": "b_01"}
        t_02 {"action": "claim", "id": "b_01"}
        o {"action": "claim", "id": "b_01"}
        t_02 {"action": "complete", "id": "b_01"}
        t_01 {"action": "complete", "id": "b_01"}
        t_01 {"action": "complete", "id": "b_01"}
        t_02 {"action": "claim", "id": "b_01"}
        t_02 {"action": "claim", "id": "b_02"}
        t_02 {"action": "claim", "id": "b_03"}
        o {"action": "list"}
    "#), @r"
    b_01 pending -, b_02 pending -
    BLOCKED: b_02 is blocked by b_01 (complete them first, or change blocked_by with update)
    BLOCKED: b_02 is blocked by b_01 (complete them first, or change blocked_by with update)
    b_01 in_progress subagent:writer:t_01 running
    b_01 in_progress subagent:writer:t_01 running
    OWNED: b_01 is owned by subagent:writer:t_01 (claim another one)
    OWNED: b_01 is owned by subagent:writer:t_01 (claim another one)
    OWNED: b_01 is owned by subagent:writer:t_01 (claim another one)
    b_01 completed subagent:writer:t_01 running
    b_01 completed subagent:writer:t_01 running
    INVALID_REQUEST: b_01 is completed (update it with status pending to have it done again)
    b_02 in_progress subagent:writer:t_02 running
    BOARD_TASK_NOT_FOUND: the board has no task `b_03` (list shows them; an id looks like b_01)
    b_01 completed subagent:writer:t_01 running, b_02 in_progress subagent:writer:t_02 running
    ");
}

#[test]
fn what_an_ended_task_owned_can_be_given_back_and_claimed_again() {
    let mut board = Board::new();
    board.say(
        r#"o {"action": "add", "subject": "one"}
        t_01 {"action": "claim", "id": "b_01"}"#,
    );
    let give_back = r#"t_02 {"action": "update", "id": "b_01", "status": "pending"}"#;
    assert!(board.say(give_back).starts_with("OWNED"), "its owner works on it");
    board.view.board.owners.insert(TaskId::new(1), Status::Failed);
    insta::assert_snapshot!(board.say(r#"
        o {"action": "get", "id": "b_01"}
        t_02 {"action": "claim", "id": "b_01"}
        t_02 {"action": "update", "id": "b_01", "status": "pending"}
        t_02 {"action": "update", "id": "b_01", "status": "in_progress"}
        o {"action": "update", "id": "b_01", "status": "completed"}
        o {"action": "update", "id": "b_01", "status": "pending"}
    "#), @r"
    b_01 in_progress subagent:writer:t_01 failed
    OWNED: b_01 is owned by subagent:writer:t_01, which has ended: failed (update it with status pending, then claim it)
    b_01 pending -
    b_01 in_progress subagent:writer:t_02 running
    b_01 completed subagent:writer:t_02 running
    b_01 pending -
    ");
    // A task that the store no longer knows ended long ago.
    board.say(r#"t_02 {"action": "claim", "id": "b_01"}"#);
    board.view.board.owners.remove(&TaskId::new(2));
    assert_eq!(board.say(r#"t_01 {"action": "complete", "id": "b_01"}"#), "b_01 completed subagent:writer:t_02\n");
}

#[test]
fn the_orchestrator_may_say_whose_a_task_is() {
    let mut board = Board::new();
    let looked = |input: Value| named_owner(&action(input).unwrap());
    assert_eq!(looked(json!({"action": "claim", "id": "b_01", "owner": "t_02"})), Some(TaskId::new(2)));
    insta::assert_snapshot!(board.say(r#"
        o {"action": "add", "subject": "one"}
        t_01 {"action": "claim", "id": "b_01", "owner": "t_02"}
        o {"action": "claim", "id": "b_01", "owner": "t_09"}
        o {"action": "claim", "id": "b_01", "owner": "somebody"}
        o {"action": "claim", "id": "b_01", "owner": "t_02"}
        o {"action": "add", "subject": "two"}
        o {"action": "claim", "id": "b_02"}
    "#), @r"
    b_01 pending -
    INVALID_REQUEST: `owner` is set by the orchestrator only (leave it out)
    TASK_NOT_FOUND: there is no task `t_09` to own it (`owner` is the id of a task of this session, for example t_01)
    TASK_NOT_FOUND: there is no task `somebody` to own it (`owner` is the id of a task of this session, for example t_01)
    b_01 in_progress subagent:writer:t_02 running
    b_02 pending -
    b_02 in_progress orchestrator
    ");
}

#[test]
fn a_cycle_of_blockers_is_refused() {
    insta::assert_snapshot!(Board::new().say(r#"
        o {"action": "add", "tasks": [{"subject": "a", "blocked_by": ["b_02"]}, {"subject": "b", "blocked_by": ["b_01"]}]}
        o {"action": "add", "subject": "a", "blocked_by": ["b_01"]}
        o {"action": "add", "tasks": [{"subject": "a", "blocked_by": ["b_02"]}, {"subject": "b"}, {"subject": "c"}]}
        o {"action": "update", "id": "b_02", "blocked_by": ["b_03"]}
        o {"action": "update", "id": "b_03", "blocked_by": ["b_01"]}
        o {"action": "update", "id": "b_03", "blocked_by": ["b_03"]}
        o {"action": "update", "id": "b_03", "blocked_by": ["b_09"]}
        o {"action": "claim", "id": "b_01"}
        o {"action": "update", "id": "b_01", "blocked_by": []}
        o {"action": "claim", "id": "b_01"}
    "#), @r"
    CYCLE: b_01 would be blocked by itself (leave out a blocker that waits for it)
    CYCLE: b_01 would be blocked by itself (leave out a blocker that waits for it)
    b_01 pending -, b_02 pending -, b_03 pending -
    b_02 pending -
    CYCLE: b_03 would be blocked by itself (leave out a blocker that waits for it)
    CYCLE: b_03 would be blocked by itself (leave out a blocker that waits for it)
    BOARD_TASK_NOT_FOUND: the board has no task `b_09` (list shows them; an id looks like b_01)
    BLOCKED: b_01 is blocked by b_02 (complete them first, or change blocked_by with update)
    b_01 pending -
    b_01 in_progress orchestrator
    ");
}

#[test]
fn all_are_completed_by_the_orchestrator_and_their_own_by_others() {
    insta::assert_snapshot!(Board::new().say(r#"
        o {"action": "add", "tasks": [{"subject": "a"}, {"subject": "b", "blocked_by": ["b_01"]}, {"subject": "c"}]}
        t_01 {"action": "complete_all"}
        t_01 {"action": "claim", "id": "b_03"}
        t_01 {"action": "complete_all"}
        t_01 {"action": "clear"}
        o {"action": "complete_all"}
        o {"action": "complete_all"}
        o {"action": "clear"}
        o {"action": "list"}
        o {"action": "list", "archived": true}
        o {"action": "get", "id": "b_01"}
        o {"action": "claim", "id": "b_01"}
        o {"action": "add", "subject": "d", "blocked_by": ["b_01"]}
        o {"action": "add", "subject": "d"}
    "#), @r#"
    b_01 pending -, b_02 pending -, b_03 pending -
    {"completed":0}
    b_03 in_progress subagent:writer:t_01 running
    {"completed":1}
    INVALID_REQUEST: the board is cleared by the orchestrator only (complete what is yours, or give it back with status pending)
    {"completed":2}
    {"completed":0}
    {"archived":3}

    b_01 completed -, b_02 completed -, b_03 completed subagent:writer:t_01 running
    b_01 completed -
    BOARD_TASK_NOT_FOUND: the board has no task `b_01` (list shows them; an id looks like b_01)
    BOARD_TASK_NOT_FOUND: the board has no task `b_01` (list shows them; an id looks like b_01)
    b_04 pending -
    "#);
}

#[test]
fn what_a_subagent_has_others_only_comment_on() {
    insta::assert_snapshot!(Board::new().say(r#"
        o {"action": "add", "subject": "one"}
        t_01 {"action": "claim", "id": "b_01"}
        t_02 {"action": "update", "id": "b_01", "comment": "Look here."}
        t_02 {"action": "update", "id": "b_01", "subject": "mine"}
        t_02 {"action": "update", "id": "b_01", "status": "completed"}
        o {"action": "update", "id": "b_01", "subject": "ours"}
        o {"action": "update", "id": "b_01"}
        o {"action": "update", "id": "b_01", "status": "done"}
        o {"action": "update", "id": "b_01", "owner": "me"}
    "#), @r"
    b_01 pending -
    b_01 in_progress subagent:writer:t_01 running
    b_01 in_progress subagent:writer:t_01 running
    OWNED: b_01 is owned by subagent:writer:t_01 (claim another one)
    OWNED: b_01 is owned by subagent:writer:t_01 (claim another one)
    b_01 in_progress subagent:writer:t_01 running
    INVALID_REQUEST: update: nothing to change (name subject, description, active_form, status, blocked_by, comment or metadata)
    INVALID_REQUEST: update: unknown variant `done`, expected one of `pending`, `in_progress`, `completed` at `status` ()
    INVALID_REQUEST: update: unknown field `owner`, expected one of `id`, `subject`, `description`, `active_form`, `status`, `blocked_by`, `comment`, `metadata` at `owner` ()
    ");
}

#[test]
fn every_text_and_list_has_its_limit() {
    let text = |characters: usize| "é".repeat(characters);
    let one = |field: &str, value: Value| {
        let mut input = json!({"action": "add", "subject": "s"});
        input[field] = value;
        input
    };
    let ids = |count: usize| (1..=count).map(|number| format!("b_{number:02}")).collect::<Vec<_>>();
    let cases: [(Value, Value); 5] = [
        (one("subject", json!(text(200))), one("subject", json!(text(201)))),
        (one("active_form", json!(text(200))), one("active_form", json!(text(201)))),
        (one("description", json!(text(4000))), one("description", json!(text(4001)))),
        (one("metadata", json!({"k": text(3992)})), one("metadata", json!({"k": text(3993)}))),
        (one("blocked_by", json!(ids(50))), one("blocked_by", json!(ids(51)))),
    ];
    for (fits, does_not) in cases {
        let mut board = Board::new();
        let many: Vec<Value> = (0..51).map(|_| json!({"subject": "s"})).collect();
        board.act(&Identity::Orchestrator, json!({"action": "add", "tasks": many})).unwrap();
        let refusal = board.act(&Identity::Orchestrator, does_not).unwrap_err();
        assert!(refusal.message.contains("at most"), "{refusal}");
        board.act(&Identity::Orchestrator, fits).unwrap();
    }
    for (input, message) in [
        (one("subject", json!("  ")), "`subject` is empty"),
        (json!({"action": "add", "tasks": []}), "`tasks` is empty"),
        (json!({"action": "add", "tasks": [["s"]]}), "add: a task must be an object with subject at `tasks[0]`"),
        (
            json!({"action": "add", "tasks": [{"subject": "s"}], "subject": "t"}),
            "add: unknown field `subject`, expected `tasks` at `subject`",
        ),
        (json!({"action": "add", "tasks": null}), "add: missing field `subject`"),
    ] {
        assert_eq!(Board::new().act(&Identity::Orchestrator, input).unwrap_err().message, message);
    }
}

#[test]
fn a_full_board_takes_no_more_until_it_is_cleared() {
    let mut board = Board::new();
    let add = |count: usize, subject: &str| json!({"action": "add", "tasks": vec![json!({"subject": subject}); count]});
    let me = Identity::Orchestrator;
    board.act(&me, add(limits::BOARD_TASKS_MAX, "s")).unwrap();
    assert!(board.act(&me, add(1, "s")).unwrap_err().message.contains("201 tasks"));
    board.act(&me, json!({"action": "clear"})).unwrap();
    // Ids are never given out twice.
    let Response::BoardAdded(added) = board.act(&me, add(1, "s")).unwrap() else { panic!() };
    assert_eq!(added.added[0].id.to_string(), "b_201");

    let long = json!({"action": "add", "subject": "s", "description": "x".repeat(4000)});
    let refusal = (0..30).find_map(|_| board.act(&me, long.clone()).err()).unwrap();
    assert!(refusal.message.contains("tokens; at most 20000"), "{refusal}");
    for _ in 0..limits::BOARD_COMMENTS_MAX {
        board.act(&me, json!({"action": "update", "id": "b_201", "comment": "c"})).unwrap();
    }
    let refusal = board.act(&me, json!({"action": "update", "id": "b_201", "comment": "c"})).unwrap_err();
    assert!(refusal.message.contains("at most 50"), "{refusal}");
}

#[test]
fn an_archived_session_can_only_be_read() {
    let mut board = Board::new();
    board.say(r#"o {"action": "add", "subject": "one"}"#);
    board.view.archived = true;
    for input in ["list", "get"] {
        let id = if input == "get" { json!("b_01") } else { Value::Null };
        let mut input = json!({"action": input});
        if !id.is_null() {
            input["id"] = id;
        }
        assert!(board.act(&Identity::Orchestrator, input).is_ok());
    }
    for input in [
        json!({"action": "add", "subject": "s"}),
        json!({"action": "update", "id": "b_01", "comment": "c"}),
        json!({"action": "claim", "id": "b_01"}),
        json!({"action": "complete", "id": "b_01"}),
        json!({"action": "complete_all"}),
        json!({"action": "clear"}),
    ] {
        let refusal = board.act(&Identity::Orchestrator, input).unwrap_err();
        assert_eq!(refusal.code.as_str(), "SESSION_ARCHIVED");
    }
}

/// Random actions on a handful of tasks, by the orchestrator and two subagents.
fn actions() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let who = prop::sample::select(vec!["o", "t_01", "t_02"]);
    let id = || (1u32..7).prop_map(|number| format!("b_{number:02}"));
    let blockers = || prop::collection::vec(id(), 0..3);
    let add = blockers().prop_map(|ids| json!({"action": "add", "subject": "s", "blocked_by": ids}));
    let block = (id(), blockers()).prop_map(|(id, ids)| json!({"action": "update", "id": id, "blocked_by": ids}));
    let status = prop::sample::select(vec!["pending", "in_progress", "completed"]);
    let set = (id(), status).prop_map(|(id, status)| json!({"action": "update", "id": id, "status": status}));
    let claim = id().prop_map(|id| json!({"action": "claim", "id": id}));
    let complete = id().prop_map(|id| json!({"action": "complete", "id": id}));
    let rare = prop::sample::select(vec![json!({"action": "complete_all"}), json!({"action": "clear"})]);
    let action = prop_oneof![6 => add, 3 => block, 3 => set, 4 => claim, 4 => complete, 1 => rare];
    prop::collection::vec((who, action), 1..60)
}

proptest! {
    #[test]
    fn whatever_is_done_the_board_makes_sense(actions in actions()) {
        let mut board = Board::new();
        for (who, input) in actions {
            let before: Vec<BoardTask> = board.live().cloned().collect();
            let is_claim = input["action"] == "claim";
            if board.act(&identity(who), input).is_err() {
                prop_assert!(before.iter().eq(board.live()), "a refusal changed something");
                continue;
            }
            let live: Vec<&BoardTask> = board.live().collect();
            for task in &live {
                prop_assert!((task.status == BoardStatus::InProgress) <= task.owner.is_some());
                check_completion(task);
                if is_claim && task.owner.as_deref() == Some(identity(who).to_string().as_str()) {
                    let was = before.iter().find(|other| other.id == task.id).unwrap();
                    prop_assert!(was.owner.is_none() || was.owner == task.owner, "a claim took what another had");
                }
            }
            // Without a cycle, taking away what waits for nothing empties the board.
            let mut left = live;
            while let Some(free) = left.iter().position(|task| {
                task.blocked_by.iter().all(|id| left.iter().all(|other| other.id != *id))
            }) {
                left.remove(free);
            }
            prop_assert!(left.is_empty(), "a cycle: {left:?}");
        }
    }
}

fn check_completion(task: &BoardTask) {
    assert_eq!(task.status == BoardStatus::Completed, task.completed_at.is_some(), "{task:?}");
}
