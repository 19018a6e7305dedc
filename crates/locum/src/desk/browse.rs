//! Looking at tasks from outside their sessions, page by page: for programs that show them.

use std::collections::BTreeMap;

use locum_core::ids::{Seq, SessionId, TaskId, Uid};
use locum_core::protocol::response::TaskStatus;
use locum_core::protocol::{Code, Refusal};
use locum_core::task::Record;
use serde::Serialize;

use super::Desk;
use crate::engine::store_refusal;
use crate::store::{TaskQuery, TaskRow};

/// A task as it is shown outside its session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownTask {
    /// Its id everywhere.
    pub uid: Uid,
    /// Its session.
    pub session: SessionId,
    /// Whether it was collected.
    pub collected: bool,
    /// The task that delegated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Uid>,
    /// How far its log goes.
    pub seq: Seq,
    /// How it stands.
    #[serde(flatten)]
    pub status: TaskStatus,
}

impl Desk {
    /// Tasks of the project, or of one session of it, collected or not, newest first: at most so many, and only those
    /// that were accepted before one that is named.
    ///
    /// # Errors
    ///
    /// There is no task that is called so, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn task_page(
        &self,
        session: Option<SessionId>,
        before: Option<Uid>,
        most: usize,
    ) -> Result<Vec<ShownTask>, Refusal> {
        if let Some(uid) = &before {
            self.row_anywhere(uid.as_str()).await?;
        }
        let project = self.session.project.clone();
        let rows = self.engine.rows(TaskQuery::Page { project: project.to_string(), session, before, most }).await?;
        self.show(rows).await
    }

    /// A task of the project by its uid, or one of this session by its id; collected or not.
    ///
    /// # Errors
    ///
    /// There is no such task, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn task(&self, name: &str) -> Result<ShownTask, Refusal> {
        let row = match TaskId::parse(name) {
            Ok(_) => self.row(name).await?,
            Err(_) => self.row_anywhere(name).await?,
        };
        self.show(vec![row]).await?.pop().ok_or_else(|| Refusal::internal("the task is missing"))
    }

    /// Part of a task's log: the records after a number, at most so many.
    ///
    /// # Errors
    ///
    /// There is no such task in the project, or the store failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn records_of(&self, uid: &Uid, after: Seq, most: usize) -> Result<Vec<Record>, Refusal> {
        let row = self.row_anywhere(uid.as_str()).await?;
        let records = self.engine.hands.store.records(&row.summary.uid, after, most).await;
        records.map_err(|error| store_refusal(&error))
    }

    /// A task of any session of this project.
    async fn row_anywhere(&self, uid: &str) -> Result<TaskRow, Refusal> {
        let row = match Uid::parse(uid) {
            Ok(uid) => self.engine.rows(TaskQuery::Uids(vec![uid])).await?.pop(),
            Err(_) => None,
        };
        row.filter(|row| row.session.project == self.session.project).ok_or_else(|| {
            let shown: String = uid.chars().take(80).collect();
            Refusal::new(Code::TaskNotFound, format!("this project has no task `{shown}`"))
                .hint("a uid names a task of any session, an id such as t_01 one of the session that is named")
        })
    }

    /// How rows of several sessions are shown, in the same order.
    pub(super) async fn show(&self, rows: Vec<TaskRow>) -> Result<Vec<ShownTask>, Refusal> {
        let mut sessions: BTreeMap<SessionId, Vec<TaskRow>> = BTreeMap::new();
        for row in &rows {
            sessions.entry(row.session.id.clone()).or_default().push(row.clone());
        }
        // What a task waits for is seen from its own session.
        let mut statuses: BTreeMap<Uid, TaskStatus> = BTreeMap::new();
        for (id, rows) in sessions {
            let presented = self.in_session(id).present_all(&rows).await?;
            statuses.extend(rows.into_iter().map(|row| row.summary.uid).zip(presented));
        }
        let shown = |row: TaskRow| {
            let status = statuses.remove(&row.summary.uid)?;
            let TaskRow { session, summary, collected, .. } = row;
            let (uid, parent, seq) = (summary.uid, summary.parent, summary.seq);
            Some(ShownTask { uid, session: session.id, collected, parent, seq, status })
        };
        Ok(rows.into_iter().filter_map(shown).collect())
    }
}
