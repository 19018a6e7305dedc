//! Sessions in the database: what a decision sees, and how its changes are made.

use std::collections::HashSet;

use locum_core::agent::AgentSpec;
use locum_core::budget::{self, PurseKey};
use locum_core::ids::{SessionId, SessionKey, TaskId, Timestamp, Uid};
use locum_core::protocol::Refusal;
use locum_core::session::{Acceptance, IdempotentTask, KnownTask, Lookup, SessionChange, SessionView};
use rusqlite::Connection;

use super::accepting::AcceptedTask;
use super::rows::{
    abandon, all, count, decode, encode, execute, first, known_task, name, select_tasks, task_row, undone_on_failure,
};
use super::shelf::settle;
use super::spending;
use super::{board, context};
use crate::store::{Decided, Decision, Error, OwnerId, SessionRow, TaskQuery, TaskRow};

/// A session, as it is kept.
struct KeptSession {
    id: i64,
    archived: bool,
    next_task: u32,
    running: u32,
    unfinished: u32,
    /// Tasks that models started outside of a person's command.
    delegated: u32,
}

/// Lets a decision judge a session and writes what it changes.
pub(super) fn decide(
    connection: &Connection,
    key: &SessionKey,
    lookup: &Lookup,
    holder: Option<OwnerId>,
    decision: Decision,
) -> Result<Result<Decided, Refusal>, Error> {
    let session = find_session(connection, key)?;
    let view = view(connection, session.as_ref(), lookup)?;
    let changes = match decision(&view) {
        Ok(changes) if changes.is_empty() => return Ok(Ok(Decided::default())),
        Ok(changes) => changes,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if let Some(session) = &session
        && session.takes_whole(&changes)
    {
        return write(connection, key, Some(session), holder, changes).map(Ok);
    }
    undone_on_failure(connection, || write(connection, key, session.as_ref(), holder, changes)).map(Ok)
}

impl KeptSession {
    /// Whether changes leave nothing behind if they fail, without the price of a savepoint: one statement, or one task
    /// that starts at once and moves no other.
    fn takes_whole(&self, changes: &[SessionChange]) -> bool {
        match changes {
            [SessionChange::Collect { .. }] => true,
            [SessionChange::Accept(acceptance)] => {
                let Acceptance { plan, parked, idempotency, .. } = &**acceptance;
                let is_counted_here = matches!(budget::counted_in(plan), None | Some(PurseKey::Session));
                parked.is_none() && idempotency.is_none() && is_counted_here && self.unfinished == self.running
            }
            _ => false,
        }
    }
}

/// Writes what a decision changes.
fn write(
    connection: &Connection,
    key: &SessionKey,
    session: Option<&KeptSession>,
    holder: Option<OwnerId>,
    changes: Vec<SessionChange>,
) -> Result<Decided, Error> {
    let next_task = session.map_or(1, |session| session.next_task);
    let is_anything_parked = session.is_some_and(|session| session.unfinished > session.running);
    let session = session.map_or_else(|| insert_session(connection, key), |session| Ok(session.id))?;
    let accepted = Vec::new();
    let mut changing =
        Changing { connection, key, session, holder, next_task, delegated: 0, accepted, is_anything_parked };
    let mut at = None;
    for change in changes {
        if let SessionChange::Accept(acceptance) = &change {
            at = Some(acceptance.plan.created_at);
        }
        changing.change(change)?;
    }
    changing.finish(at)
}

fn find_session(connection: &Connection, key: &SessionKey) -> Result<Option<KeptSession>, Error> {
    let query = "SELECT id, archived, next_task, running, unfinished, delegated FROM sessions \
                 WHERE project = ?1 AND name = ?2";
    first(connection, query, (&key.project, key.id.as_str()), |row| {
        Ok(KeptSession {
            id: row.get(0)?,
            archived: row.get(1)?,
            next_task: row.get(2)?,
            running: row.get(3)?,
            unfinished: row.get(4)?,
            delegated: row.get(5)?,
        })
    })
}

fn insert_session(connection: &Connection, key: &SessionKey) -> Result<i64, Error> {
    let statement = "INSERT INTO sessions (project, name) VALUES (?1, ?2)";
    execute(connection, statement, (&key.project, key.id.as_str()))?;
    Ok(connection.last_insert_rowid())
}

fn view(connection: &Connection, session: Option<&KeptSession>, lookup: &Lookup) -> Result<SessionView, Error> {
    let Some(session) = session else { return Ok(SessionView { next_task: 1, ..SessionView::default() }) };
    let mut view = SessionView {
        exists: true,
        archived: session.archived,
        next_task: session.next_task,
        running: session.running,
        unfinished: session.unfinished,
        spawned: session.delegated,
        purses: spending::purses(connection, session.id, &lookup.purses)?,
        context: context::view(connection, session.id, &lookup.context)?,
        board: board::view(connection, session.id, lookup.board)?,
        ..SessionView::default()
    };
    if lookup.agents {
        let query = "SELECT spec FROM agents WHERE session = ?1 ORDER BY name";
        view.defined =
            all(connection, query, [session.id], |row| Ok(decode::<AgentSpec>(&row.get::<_, String>("spec")?)?))?;
    }
    for task_id in &lookup.tasks {
        view.tasks.extend(known(connection, session.id, *task_id)?.map(|known| (*task_id, known)));
    }
    for key in &lookup.idempotency_keys {
        view.idempotent.extend(idempotent(connection, session.id, key)?.map(|task| (key.clone(), task)));
    }
    Ok(view)
}

fn known(connection: &Connection, session: i64, task_id: TaskId) -> Result<Option<KnownTask>, Error> {
    let query = "SELECT uid, agent, status, collected_at FROM tasks WHERE session = ?1 AND number = ?2";
    first(connection, query, (session, task_id.number()), known_task)
}

fn idempotent(connection: &Connection, session: i64, key: &str) -> Result<Option<IdempotentTask>, Error> {
    let query = "SELECT fingerprint, number, uid, agent, status, collected_at \
                 FROM idempotency JOIN tasks ON tasks.key = idempotency.task \
                 WHERE idempotency.session = ?1 AND idempotency.key = ?2";
    first(connection, query, (session, key), |row| {
        Ok(IdempotentTask {
            fingerprint: row.get::<_, i64>("fingerprint")?.cast_unsigned(),
            task_id: TaskId::new(row.get("number")?),
            known: known_task(row)?,
        })
    })
}

/// The changes of one decision, while they are made.
struct Changing<'a> {
    connection: &'a Connection,
    key: &'a SessionKey,
    session: i64,
    holder: Option<OwnerId>,
    next_task: u32,
    delegated: u32,
    accepted: Vec<AcceptedTask>,
    is_anything_parked: bool,
}

impl Changing<'_> {
    fn change(&mut self, change: SessionChange) -> Result<(), Error> {
        let connection = self.connection;
        match change {
            SessionChange::Accept(acceptance) => self.accept(*acceptance)?,
            SessionChange::Define(agent) => {
                let statement = "INSERT INTO agents (session, name, spec) VALUES (?1, ?2, ?3) \
                                 ON CONFLICT DO UPDATE SET spec = excluded.spec";
                execute(connection, statement, (self.session, agent.name.as_str(), encode(&agent)?))?;
            }
            SessionChange::Collect { task_id, at } => {
                let statement = "UPDATE tasks SET collected_at = coalesce(collected_at, ?3) \
                                 WHERE session = ?1 AND number = ?2";
                if execute(connection, statement, (self.session, task_id.number(), at.millis()))? == 0 {
                    return Err(Error::NotFound);
                }
            }
            SessionChange::PutContext(entry) => context::put(connection, self.session, &entry)?,
            SessionChange::RemoveContext { key, .. } => context::remove(connection, self.session, &key)?,
            SessionChange::PutSnapshot(snapshot) => context::put_snapshot(connection, self.session, &snapshot)?,
            SessionChange::PutBoardTask(task) => board::put(connection, self.session, &task)?,
            // A session is made before its first change.
            SessionChange::Create => {}
            SessionChange::Archive => {
                execute(connection, "UPDATE sessions SET archived = 1 WHERE id = ?1", [self.session])?;
            }
            // Everything that belongs to a session refers to it, and goes with it.
            SessionChange::Delete => {
                execute(connection, "DELETE FROM sessions WHERE id = ?1", [self.session])?;
            }
        }
        Ok(())
    }

    fn accept(&mut self, acceptance: Acceptance) -> Result<(), Error> {
        let plan = &acceptance.plan;
        let task_id = plan.task_id;
        if task_id.number() < self.next_task || plan.session != *self.key {
            return Err(Error::Corrupt(format!("{task_id} was accepted under an id that is taken")));
        }
        self.next_task = task_id.number() + 1;
        match budget::counted_in(plan) {
            None => {}
            Some(PurseKey::Session) => self.delegated += 1,
            Some(key) => spending::count_spawn(self.connection, self.session, &key)?,
        }
        let accepted = AcceptedTask::encode(&acceptance, self.holder)?;
        let task = accepted.insert(self.connection, self.session)?;
        if let Some((key, fingerprint)) = acceptance.idempotency {
            // Two tasks of one request may name the same key; it stands for the first.
            let statement = "INSERT INTO idempotency (session, key, fingerprint, task) VALUES (?1, ?2, ?3, ?4) \
                             ON CONFLICT DO NOTHING";
            execute(self.connection, statement, (self.session, key, fingerprint.cast_signed(), task))?;
        }
        self.is_anything_parked |= !accepted.is_running();
        self.accepted.push(accepted);
        Ok(())
    }

    /// Counts what was accepted, settles it, and says how it stands then.
    fn finish(mut self, at: Option<Timestamp>) -> Result<Decided, Error> {
        let Some(at) = at else { return Ok(Decided::default()) };
        // Nothing about these tasks can make it fail: it is the database that does.
        self.count().inspect_err(|_| abandon(self.connection))?;
        let moved = if self.is_anything_parked { settle(self.connection, self.session, at)? } else { Vec::new() };
        let mut accepted: Vec<TaskRow> = self.accepted.drain(..).map(|accepted| accepted.row).collect();
        let changed: HashSet<&Uid> = moved.iter().collect();
        for row in accepted.iter_mut().filter(|row| changed.contains(&row.summary.uid)) {
            let query = select_tasks!("WHERE uid = ?1");
            *row = first(self.connection, query, [row.summary.uid.as_str()], task_row)?.ok_or(Error::NotFound)?;
        }
        Ok(Decided { accepted, moved })
    }

    fn count(&self) -> Result<(), Error> {
        let statement = "UPDATE sessions SET next_task = ?2, spawned = spawned + ?3, delegated = delegated + ?4, \
                         unfinished = unfinished + ?3, running = running + ?5 WHERE id = ?1";
        let number = |tasks: usize| i64::try_from(tasks).unwrap_or(i64::MAX);
        let spawned = number(self.accepted.len());
        let running = number(self.accepted.iter().filter(|accepted| accepted.is_running()).count());
        execute(self.connection, statement, (self.session, self.next_task, spawned, self.delegated, running)).map(drop)
    }
}

/// The sessions of a project, by id.
pub(super) fn sessions(connection: &Connection, project: &str) -> Result<Vec<SessionRow>, Error> {
    let query = "SELECT name, archived, spawned, \
                 (SELECT count(*) FROM tasks WHERE session = sessions.id AND completed_at IS NULL) AS unfinished, \
                 (SELECT count(*) FROM context WHERE session = sessions.id AND value IS NOT NULL) AS keys \
                 FROM sessions WHERE project = ?1 ORDER BY name";
    all(connection, query, [project], |row| {
        Ok(SessionRow {
            id: name::<SessionId>(row, "name")?,
            archived: row.get("archived")?,
            tasks: row.get("spawned")?,
            unfinished: row.get("unfinished")?,
            keys: row.get("keys")?,
        })
    })
}

/// How many tasks of a session are queued that are older than this one.
pub(super) fn queued_before(connection: &Connection, session: &SessionKey, task_id: TaskId) -> Result<usize, Error> {
    let query = "SELECT count(*) FROM tasks WHERE session = (SELECT id FROM sessions WHERE project = ?1 AND name = ?2) \
                 AND completed_at IS NULL AND status = 'queued' AND number < ?3";
    count(connection, query, (&session.project, session.id.as_str(), task_id.number()))
}

/// The tasks that a query asks for, oldest first. A plus keeps the planner from walking all tasks in the order that is
/// asked for, when it is a few of them that have not ended.
pub(super) fn tasks(connection: &Connection, query: &TaskQuery) -> Result<Vec<TaskRow>, Error> {
    let names = |session: &SessionKey| (session.project.clone(), session.id.to_string());
    match query {
        TaskQuery::Uncollected(session) => {
            let query = select_tasks!("WHERE project = ?1 AND name = ?2 AND collected_at IS NULL ORDER BY number");
            all(connection, query, names(session), task_row)
        }
        TaskQuery::Ids(session, ids) => {
            let query = select_tasks!(
                "WHERE project = ?1 AND name = ?2 AND number IN (SELECT value FROM json_each(?3)) ORDER BY number"
            );
            let (project, name) = names(session);
            let numbers: Vec<u32> = ids.iter().map(|id| id.number()).collect();
            all(connection, query, (project, name, encode(&numbers)?), task_row)
        }
        TaskQuery::Uids(uids) => {
            let query = select_tasks!("WHERE uid IN (SELECT value FROM json_each(?1)) ORDER BY tasks.key");
            all(connection, query, [encode(uids)?], task_row)
        }
        TaskQuery::Unparked(uids) => {
            let query = select_tasks!(
                "WHERE uid IN (SELECT value FROM json_each(?1)) AND +status NOT IN ('queued', 'waiting') \
                 ORDER BY tasks.key"
            );
            all(connection, query, [encode(uids)?], task_row)
        }
        TaskQuery::Children(parent) => {
            let query = select_tasks!("WHERE parent = ?1 ORDER BY tasks.key");
            all(connection, query, [parent.as_str()], task_row)
        }
        TaskQuery::Unfinished(None) => {
            let query = select_tasks!("WHERE completed_at IS NULL ORDER BY +tasks.key");
            all(connection, query, [], task_row)
        }
        TaskQuery::Unfinished(Some(session)) => {
            let query = select_tasks!("WHERE project = ?1 AND name = ?2 AND completed_at IS NULL ORDER BY +number");
            all(connection, query, names(session), task_row)
        }
        TaskQuery::Page { project, session, before, most } => {
            let (before, most) = (before.as_ref().map(Uid::as_str), i64::try_from(*most).unwrap_or(i64::MAX));
            match session {
                Some(session) => {
                    let query = select_tasks!(
                        "WHERE project = ?1 AND name = ?2 AND (?3 IS NULL OR tasks.key < \
                         (SELECT key FROM tasks WHERE uid = ?3)) ORDER BY number DESC LIMIT ?4"
                    );
                    all(connection, query, (project, session.as_str(), before, most), task_row)
                }
                None => {
                    let query = select_tasks!(
                        "WHERE project = ?1 AND (?2 IS NULL OR tasks.key < (SELECT key FROM tasks WHERE uid = ?2)) \
                         ORDER BY tasks.key DESC LIMIT ?3"
                    );
                    all(connection, query, (project, before, most), task_row)
                }
            }
        }
    }
}
