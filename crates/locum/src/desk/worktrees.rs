//! What a person asks about the worktrees of the project, and what is done with them.

use std::path::PathBuf;

use locum_core::ids::{TaskId, Uid};
use locum_core::protocol::{Code, Refusal};
use tokio_util::sync::CancellationToken;

use super::Desk;
use super::spawn::is_open;
use crate::store::{TaskQuery, TaskRow};
use crate::worktrees::shelf::Shelf;
use crate::worktrees::{
    Applied, Comparison, Consent, Dropped, Finding, WorktreeLine, WorktreeTask, applying, checking, comparing,
    dropping, listing,
};

impl Desk {
    /// The worktrees of the project and the branches that are left of others, oldest first, with what would conflict.
    ///
    /// # Errors
    ///
    /// The project is no git repository, git failed, or the store did.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn worktrees(&self) -> Result<Vec<WorktreeLine>, Refusal> {
        let mut lines = self.on_shelf(listing::list).await?;
        let uids: Vec<Uid> = lines.iter().filter_map(|line| Uid::parse(&line.uid).ok()).collect();
        let rows = self.engine.rows(TaskQuery::Uids(uids)).await?;
        for line in &mut lines {
            line.task = rows.iter().find(|row| row.summary.uid.as_str() == line.uid).map(worktree_task);
        }
        Ok(lines)
    }

    /// What a worktree changes: a task's id, a branch, or the beginning of a uid names it. With `against`, how it
    /// differs from another one and what would conflict.
    ///
    /// # Errors
    ///
    /// There is no such worktree, or git failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn worktree_diff(&self, name: &str, against: Option<&str>) -> Result<Comparison, Refusal> {
        let name = self.worktree_name(name).await?;
        let against = match against {
            Some(other) => Some(self.worktree_name(other).await?),
            None => None,
        };
        self.on_shelf(move |shelf| comparing::compare(shelf, &name, against.as_deref())).await
    }

    /// Takes what a worktree's branch changes into the project's checkout and index, merged with what is checked out.
    /// Nothing is committed.
    ///
    /// # Errors
    ///
    /// There is no such worktree, its task still works in it, it conflicts, or files that are not committed are in the
    /// way; nothing was changed then.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it may be done or not; git itself is asked to end.
    pub async fn apply_worktree(&self, name: &str) -> Result<Applied, Refusal> {
        let name = self.idle_worktree(name).await?;
        self.on_shelf(move |shelf| applying::apply(shelf, &name)).await
    }

    /// Removes a worktree's directory once everything in it is on its branch, and the branch once another one has its
    /// work.
    ///
    /// # Errors
    ///
    /// There is no such worktree, its task still works in it, something in it cannot be committed, or no other branch
    /// has its work and nobody agreed; nothing was removed then.
    ///
    /// # Cancel safety
    ///
    /// Dropped early it may be done or not; it can be asked for again.
    pub async fn drop_worktree(&self, name: &str, consent: Consent) -> Result<Dropped, Refusal> {
        let name = self.idle_worktree(name).await?;
        self.on_shelf(move |shelf| dropping::drop_worktree(shelf, &name, consent)).await
    }

    /// What lost processes left behind, and what to do about it.
    ///
    /// # Errors
    ///
    /// The project is no git repository, or git failed.
    ///
    /// # Cancel safety
    ///
    /// It only reads: it may be dropped at any time.
    pub async fn check_worktrees(&self) -> Result<Vec<Finding>, Refusal> {
        self.on_shelf(checking::check).await
    }

    /// Does something with the project's worktrees where blocking is allowed.
    async fn on_shelf<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shelf) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let hands = &self.engine.hands;
        let Some(directory) = hands.worktrees.clone() else {
            let refusal = Refusal::new(Code::IsolationFailed, "nobody said where worktrees are kept");
            return Err(refusal.hint("name a directory with DeskBuilder::worktrees"));
        };
        let project = PathBuf::from(&self.engine.rules.root);
        let stop = CancellationToken::new();
        let _ended = stop.clone().drop_guard();
        let done = hands.pool.run(move || work(&Shelf::open(&directory, &project, &stop)?)).await;
        done.map_err(Refusal::internal)?
    }

    /// What a worktree is called in git: a task's id stands for its own.
    async fn worktree_name(&self, name: &str) -> Result<String, Refusal> {
        match TaskId::parse(name) {
            Ok(_) => Ok(self.row(name).await?.summary.uid.to_string()),
            Err(_) => Ok(name.to_owned()),
        }
    }

    /// The same, if no task works in it.
    async fn idle_worktree(&self, name: &str) -> Result<String, Refusal> {
        let name = self.worktree_name(name).await?;
        let found = self.on_shelf(move |shelf| shelf.find(&name)).await?;
        let uids = Uid::parse(&found.uid).into_iter().collect();
        let rows = self.engine.rows(TaskQuery::Uids(uids)).await?;
        match rows.iter().find(|row| is_open(row)) {
            None => Ok(found.uid),
            Some(row) => {
                let (task, session) = (row.summary.task_id, &row.session.id);
                let message = format!("task {task} of session {session} still works in it");
                Err(Refusal::new(Code::TaskNotReady, message).hint("wait for it, or cancel it"))
            }
        }
    }
}

fn worktree_task(row: &TaskRow) -> WorktreeTask {
    WorktreeTask {
        session: row.session.id.to_string(),
        task_id: row.summary.task_id,
        agent: row.summary.agent.to_string(),
        status: row.summary.standing.status,
    }
}
