//! Sessions in the database: what a decision sees, and how its changes are made.

use locum_core::agent::AgentSpec;
use locum_core::ids::{SessionKey, TaskId, Timestamp, Uid};
use locum_core::protocol::Refusal;
use locum_core::protocol::response::{Entry, KeyLine};
use locum_core::session::{
    Acceptance, ContextLookup, ContextView, IdempotentTask, KnownTask, Lookup, SessionChange, SessionView,
};
use locum_core::task::{Record, Task, TaskEvent};
use locum_core::usage::estimate_tokens;
use rusqlite::{Connection, Row, named_params};

use super::failure::Unreadable;
use super::logs::{insert_event, settle};
use super::rows::{
    EventRow, StandingRow, all, decode, encode, execute, first, known_task, number, select_tasks, task_row,
};
use crate::store::{Decided, Decision, Error, OwnerId, TaskQuery, TaskRow};

/// A session's own row.
struct SessionRow {
    id: i64,
    archived: bool,
    next_task: u32,
    spawned: u32,
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
    let session = session.map_or_else(|| insert_session(connection, key), |session| Ok(session.id))?;
    let mut changing = Changing { connection, key, session, holder, next_task: view.next_task, accepted: Vec::new() };
    let mut at = None;
    for change in changes {
        if let SessionChange::Accept(acceptance) = &change {
            at = Some(acceptance.plan.created_at);
        }
        changing.change(change)?;
    }
    changing.finish(at).map(Ok)
}

fn find_session(connection: &Connection, key: &SessionKey) -> Result<Option<SessionRow>, Error> {
    let query = "SELECT id, archived, next_task, spawned FROM sessions WHERE project = ?1 AND name = ?2";
    first(connection, query, (&key.project, key.id.as_str()), |row| {
        Ok(SessionRow {
            id: row.get("id")?,
            archived: row.get("archived")?,
            next_task: row.get("next_task")?,
            spawned: row.get("spawned")?,
        })
    })
}

fn insert_session(connection: &Connection, key: &SessionKey) -> Result<i64, Error> {
    let statement = "INSERT INTO sessions (project, name) VALUES (?1, ?2)";
    execute(connection, statement, (&key.project, key.id.as_str()))?;
    Ok(connection.last_insert_rowid())
}

fn view(connection: &Connection, session: Option<&SessionRow>, lookup: &Lookup) -> Result<SessionView, Error> {
    let Some(session) = session else { return Ok(SessionView { next_task: 1, ..SessionView::default() }) };
    let running = "SELECT count(*) FROM tasks WHERE session = ?1 AND completed_at IS NULL AND status = 'running'";
    let mut view = SessionView {
        archived: session.archived,
        next_task: session.next_task,
        running: number(connection, running, [session.id])?,
        spawned: session.spawned,
        context: context_view(connection, session.id, &lookup.context)?,
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

fn context_view(connection: &Connection, session: i64, lookup: &ContextLookup) -> Result<ContextView, Error> {
    let mut view = ContextView::default();
    match lookup {
        ContextLookup::None => return Ok(view),
        ContextLookup::Key(key) => {
            let query =
                "SELECT key, value, written_by, written_at, version FROM context WHERE session = ?1 AND key = ?2";
            if let Some((version, entry)) = first(connection, query, (session, key), context_entry)? {
                view.last_version = version;
                view.entry = entry;
            }
        }
        ContextLookup::Keys => {
            let query = "SELECT key, tokens, written_by, written_at, version FROM context \
                         WHERE session = ?1 AND value IS NOT NULL ORDER BY key";
            view.keys = all(connection, query, [session], key_line)?;
        }
    }
    // A removed value has no tokens.
    let total = "SELECT coalesce(sum(tokens), 0) FROM context WHERE session = ?1";
    let total: i64 = number(connection, total, [session])?;
    view.total_tokens = usize::try_from(total).unwrap_or(usize::MAX);
    Ok(view)
}

fn context_entry(row: &Row<'_>) -> Result<(u64, Option<Entry>), Unreadable> {
    let version = row.get::<_, i64>("version")?.cast_unsigned();
    let Some(value) = row.get("value")? else { return Ok((version, None)) };
    let (key, written_by) = (row.get("key")?, row.get("written_by")?);
    let written_at = Timestamp::from_millis(row.get("written_at")?);
    Ok((version, Some(Entry { key, value, written_by, written_at, version })))
}

fn key_line(row: &Row<'_>) -> Result<KeyLine, Unreadable> {
    Ok(KeyLine {
        key: row.get("key")?,
        written_by: row.get("written_by")?,
        written_at: Timestamp::from_millis(row.get("written_at")?),
        version: row.get::<_, i64>("version")?.cast_unsigned(),
        value_size_tokens: usize::try_from(row.get::<_, i64>("tokens")?).unwrap_or(usize::MAX),
    })
}

/// The changes of one decision, while they are made.
struct Changing<'a> {
    connection: &'a Connection,
    key: &'a SessionKey,
    session: i64,
    holder: Option<OwnerId>,
    next_task: u32,
    accepted: Vec<TaskRow>,
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
            SessionChange::PutContext(entry) => self.put_context(&entry)?,
            SessionChange::RemoveContext { key } => {
                let statement = "UPDATE context SET value = NULL, tokens = 0 WHERE session = ?1 AND key = ?2";
                execute(connection, statement, (self.session, key))?;
            }
        }
        Ok(())
    }

    fn accept(&mut self, acceptance: Acceptance) -> Result<(), Error> {
        let Acceptance { plan, parked, idempotency } = acceptance;
        let task_id = plan.task_id;
        if task_id.number() < self.next_task || plan.session != *self.key {
            return Err(Error::Corrupt(format!("{task_id} was accepted under an id that is taken")));
        }
        self.next_task = task_id.number() + 1;
        let record =
            Record { seq: 1, at: plan.created_at, event: TaskEvent::Accepted { plan: Box::new(plan), parked } };
        let event = EventRow::encode(&record)?;
        let summary = Task::accepted(record)?.summary();
        let row = TaskRow { session: self.key.clone(), summary, collected: false, owner: self.holder };
        let task = self.insert_task(&row)?;
        insert_event(self.connection, task, &event)?;
        if let Some((key, fingerprint)) = idempotency {
            // Two tasks of one request may name the same key; it stands for the first.
            let statement = "INSERT INTO idempotency (session, key, fingerprint, task) VALUES (?1, ?2, ?3, ?4) \
                             ON CONFLICT DO NOTHING";
            execute(self.connection, statement, (self.session, key, fingerprint.cast_signed(), task))?;
        }
        self.accepted.push(row);
        Ok(())
    }

    fn insert_task(&self, row: &TaskRow) -> Result<i64, Error> {
        let summary = &row.summary;
        let standing = StandingRow::encode(summary.standing.clone())?;
        let statement = "INSERT INTO tasks (uid, session, number, agent, parent, label, start, created_at, seq, \
                         status, activity, usage, owner, epoch) \
                         VALUES (:uid, :session, :number, :agent, :parent, :label, :start, :created_at, :seq, \
                         :status, :activity, :usage, :owner, :epoch)";
        let parameters = named_params! {
            ":uid": summary.uid.as_str(),
            ":session": self.session,
            ":number": summary.task_id.number(),
            ":agent": summary.agent.as_str(),
            ":parent": summary.parent.as_ref().map(Uid::as_str),
            ":label": summary.label,
            ":start": encode(&summary.start)?,
            ":created_at": summary.created_at.millis(),
            ":seq": summary.seq.cast_signed(),
            ":status": standing.status.as_str(),
            ":activity": standing.activity,
            ":usage": standing.usage,
            ":owner": row.owner.map(|owner| owner.0.cast_signed()),
            ":epoch": i64::from(row.owner.is_some()),
        };
        execute(self.connection, statement, parameters)?;
        Ok(self.connection.last_insert_rowid())
    }

    fn put_context(&self, entry: &Entry) -> Result<(), Error> {
        let statement = "INSERT INTO context (session, key, value, tokens, written_by, written_at, version) \
                         VALUES (:session, :key, :value, :tokens, :written_by, :written_at, :version) \
                         ON CONFLICT DO UPDATE SET value = excluded.value, tokens = excluded.tokens, \
                         written_by = excluded.written_by, written_at = excluded.written_at, \
                         version = excluded.version";
        let parameters = named_params! {
            ":session": self.session,
            ":key": entry.key,
            ":value": entry.value,
            ":tokens": i64::try_from(estimate_tokens(&entry.value)).unwrap_or(i64::MAX),
            ":written_by": entry.written_by,
            ":written_at": entry.written_at.millis(),
            ":version": entry.version.cast_signed(),
        };
        execute(self.connection, statement, parameters)?;
        Ok(())
    }

    /// Counts what was accepted, settles it, and says how it stands then.
    fn finish(mut self, at: Option<Timestamp>) -> Result<Decided, Error> {
        let Some(at) = at else { return Ok(Decided::default()) };
        let statement = "UPDATE sessions SET next_task = ?2, spawned = spawned + ?3 WHERE id = ?1";
        let spawned = i64::try_from(self.accepted.len()).unwrap_or(i64::MAX);
        execute(self.connection, statement, (self.session, self.next_task, spawned))?;
        let moved = settle(self.connection, self.session, at)?;
        for row in self.accepted.iter_mut().filter(|row| moved.contains(&row.summary.uid)) {
            let query = select_tasks!("WHERE uid = ?1");
            *row = first(self.connection, query, [row.summary.uid.as_str()], task_row)?.ok_or(Error::NotFound)?;
        }
        Ok(Decided { accepted: self.accepted, moved })
    }
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
    }
}
