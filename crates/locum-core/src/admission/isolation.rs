//! How a task is set apart from the process and the files around it.

use super::{Premises, Processes, Worktrees};
use crate::agent::{AgentSpec, Isolation};
use crate::protocol::request::SpawnEntry;
use crate::protocol::{Code, Refusal};

/// How a task is set apart: as the call says, else the agent, else as is usual here.
pub(super) fn isolation(entry: &SpawnEntry, agent: &AgentSpec, premises: &Premises<'_>) -> Result<Isolation, Refusal> {
    let usual = match premises.processes {
        Processes::Usual => Isolation::Process,
        Processes::Possible | Processes::NoProgram => Isolation::None,
    };
    let isolation = entry.isolation.or(agent.isolation).unwrap_or(usual);
    let refusal = |why: &str, hint: &str| {
        let message = format!("isolation `{}` cannot be had here: {why}", isolation.as_str());
        Err(Refusal::new(Code::IsolationFailed, message).hint(hint))
    };
    match isolation {
        Isolation::None => Ok(isolation),
        Isolation::Worktree => match premises.worktrees {
            Worktrees::Possible => Ok(isolation),
            Worktrees::NoRepository => refusal(
                "the project is not a git repository",
                "run `git init` and commit in the project, or leave `isolation` out",
            ),
            Worktrees::NoPlace => refusal(
                "nobody said where worktrees are kept",
                "name a directory with DeskBuilder::worktrees, or leave `isolation` out",
            ),
        },
        Isolation::Process => match premises.processes {
            Processes::Possible | Processes::Usual => Ok(isolation),
            Processes::NoProgram => refusal(
                "this program cannot be started again as a worker",
                "call locum::launch::intercept() first in its main, or leave `isolation` out",
            ),
        },
    }
}
