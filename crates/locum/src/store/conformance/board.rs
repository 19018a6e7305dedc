//! The board: tasks are kept whole, in order, with how their owners stand.

use locum_core::ids::{BoardTaskId, Identity};
use locum_core::limits::BOARD_ARCHIVED_MAX;
use locum_core::protocol::response::{BoardComment, BoardStatus, BoardTask};
use locum_core::session::{BoardLookup, BoardView, Lookup, SessionChange};
use locum_core::task::outcome::Status;

use super::fixture::*;
use crate::store::Store;

fn board_task(number: u32) -> BoardTask {
    BoardTask {
        id: BoardTaskId::new(number),
        subject: "Grüße \u{0} 🦀".to_owned(),
        description: None,
        active_form: None,
        status: BoardStatus::Pending,
        owner: None,
        owner_status: None,
        blocked_by: Vec::new(),
        comments: Vec::new(),
        metadata: serde_json::Map::new(),
        created_at: at(1),
        completed_at: None,
        archived_at: None,
    }
}

fn put_task(task: &BoardTask) -> SessionChange {
    SessionChange::PutBoardTask(Box::new(task.clone()))
}

async fn look(store: &dyn Store, name: &str, board: BoardLookup) -> BoardView {
    view(store, name, Lookup { board, ..Lookup::default() }).await.board
}

pub(super) async fn board_tasks_are_kept_whole_and_in_order(store: &dyn Store) {
    assert_eq!(look(store, "main", BoardLookup::Tasks).await.last, 0);
    let mut full = board_task(10);
    full.description = Some("d".to_owned());
    full.active_form = Some("a".to_owned());
    full.status = BoardStatus::Completed;
    full.owner = Some(Identity::Orchestrator.to_string());
    full.blocked_by = vec![BoardTaskId::new(2), BoardTaskId::new(9)];
    full.comments = vec![BoardComment { author: "orchestrator".to_owned(), text: "c".to_owned(), created_at: at(2) }];
    full.metadata.insert("k".to_owned(), serde_json::json!({"deep": [1, null, "é"]}));
    full.completed_at = Some(at(3));
    let changes = vec![put_task(&full), put_task(&board_task(2)), put_task(&board_task(9))];
    change(store, "main", changes).await.unwrap();
    let seen = look(store, "main", BoardLookup::Tasks).await;
    assert_eq!((seen.tasks, seen.last), (vec![board_task(2), board_task(9), full], 10));
    // One takes the place of what it was; other sessions, and who did not ask, see nothing.
    let changed = BoardTask { subject: "other".to_owned(), ..board_task(9) };
    change(store, "main", vec![put_task(&changed)]).await.unwrap();
    assert_eq!(look(store, "main", BoardLookup::Tasks).await.tasks[1], changed);
    assert_eq!(look(store, "main", BoardLookup::None).await.tasks, []);
    assert_eq!(look(store, "other", BoardLookup::Everything).await.tasks, []);
}

pub(super) async fn owners_of_board_tasks_are_looked_up(store: &dyn Store) {
    spawn(store, "main", vec![order("a"), order("b"), order("c")]).await;
    let owned = |number: u32, owner: &str| BoardTask { owner: Some(owner.to_owned()), ..board_task(number) };
    let tasks = [
        owned(1, "subagent:worker:t_01"),
        owned(2, "subagent:worker:t_02"),
        owned(3, "subagent:worker:t_77"),
        owned(4, "orchestrator"),
        board_task(5),
    ];
    change(store, "main", tasks.iter().map(put_task).collect()).await.unwrap();
    let owners = async || look(store, "main", BoardLookup::Tasks).await.owners.into_iter().collect::<Vec<_>>();
    assert_eq!(owners().await, [(id(1), Status::Running), (id(2), Status::Running)]);
    complete(store, "b", "done").await;
    assert_eq!(owners().await, [(id(1), Status::Running), (id(2), Status::Completed)]);
}

pub(super) async fn archived_board_tasks_are_kept_for_a_while(store: &dyn Store) {
    let archived = |number: u32| BoardTask { archived_at: Some(at(9)), ..board_task(number) };
    let count = u32::try_from(BOARD_ARCHIVED_MAX).unwrap();
    let numbers = async |lookup: BoardLookup| {
        let tasks = look(store, "main", lookup).await.tasks;
        tasks.iter().map(|task| task.id.number()).collect::<Vec<u32>>()
    };
    change(store, "main", vec![put_task(&board_task(1)), put_task(&board_task(2))]).await.unwrap();
    change(store, "main", vec![put_task(&archived(2))]).await.unwrap();
    assert_eq!(numbers(BoardLookup::Tasks).await, [1]);
    assert_eq!(numbers(BoardLookup::Everything).await, [1, 2]);
    assert_eq!(look(store, "main", BoardLookup::Tasks).await.last, 2);
    // The oldest archived one makes room, and what is on the board stays.
    change(store, "main", (3..=count + 2).map(|number| put_task(&archived(number))).collect()).await.unwrap();
    let kept: Vec<u32> = std::iter::once(1).chain(3..=count + 2).collect();
    assert_eq!(numbers(BoardLookup::Everything).await, kept);
}
