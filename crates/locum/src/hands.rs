//! What a driver works with: the models, the tools, the store and the clocks of one engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use locum_core::liveness::Patience;
use locum_core::task::plan::GrantedTool;
use locum_core::transcript::ToolSpec;
use locum_models::Registry;

use crate::asking::Asker;
use crate::clock::Clock;
use crate::jobs::Jobs;
use crate::lookout::Lookout;
use crate::mcp_servers::McpServers;
use crate::operation_log::OperationLog;
use crate::pool::Pool;
use crate::progress::Hub;
use crate::recorder::Recorder;
use crate::redact::Redactor;
use crate::store::Store;
use crate::tools::{Seals, Tool};
use crate::traces::Traces;
use crate::waits::Waits;
use crate::writers::Writers;

/// Everything that driving a task needs and that all tasks share.
pub(crate) struct Hands {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) models: Registry,
    pub(crate) tools: Toolbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) servers: Arc<McpServers>,
    /// Where worktrees of tasks are kept, if anywhere.
    pub(crate) worktrees: Option<PathBuf>,
    pub(crate) writers: Arc<Writers>,
    /// Where the seals of texts from outside come from.
    pub(crate) seals: Arc<Seals>,
    pub(crate) hub: Hub,
    /// What sessions wrote lately, for those who follow them.
    pub(crate) lookout: Lookout,
    pub(crate) redactor: Redactor,
    pub(crate) log: OperationLog,
    pub(crate) patience: Patience,
    pub(crate) waits: Waits,
    pub(crate) recorder: Option<Recorder>,
    /// Who tells a collector what tasks did.
    pub(crate) traces: Option<Arc<Traces>>,
    /// Who can be asked where a rule wants a person to agree.
    pub(crate) asker: Option<Arc<dyn Asker>>,
}

/// The tools that exist here, by name.
#[derive(Default)]
pub(crate) struct Toolbox {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    granted: Vec<GrantedTool>,
    running_commands: Vec<String>,
    /// Where further ones are borrowed from.
    servers: Arc<McpServers>,
    /// What the last task's model was told: a crowd of tasks of one agent shares it. Nothing awaits under this lock.
    told: Mutex<Option<Told>>,
}

/// What a model was told about the tools of a task.
struct Told {
    granted: Vec<GrantedTool>,
    specs: Arc<[ToolSpec]>,
}

impl Toolbox {
    /// Tools in the order in which models see them; a later one replaces an earlier one of the same name.
    pub(crate) fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>, servers: Arc<McpServers>) -> Self {
        let mut toolbox = Self { servers, ..Self::default() };
        for tool in tools {
            let granted = granted(tool.spec());
            match toolbox.granted.iter_mut().find(|known| known.name == granted.name) {
                Some(known) => *known = granted,
                None => toolbox.granted.push(granted),
            }
            toolbox.tools.insert(tool.spec().name.clone(), tool);
        }
        let running = toolbox.tools.iter().filter(|(_, tool)| tool.runs_commands());
        toolbox.running_commands = running.map(|(name, _)| name.clone()).collect();
        toolbox
    }

    /// Every tool, as admission grants it.
    pub(crate) fn granted(&self) -> &[GrantedTool] {
        &self.granted
    }

    /// The names of those that run commands.
    pub(crate) fn running_commands(&self) -> &[String] {
        &self.running_commands
    }

    /// The tool of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        match self.tools.get(name) {
            Some(tool) => Some(Arc::clone(tool)),
            None => self.servers.tool(name).map(|tool| Arc::new(tool) as Arc<dyn Tool>),
        }
    }

    /// What a model is told about the tools of a task. A tool that no longer exists is left out.
    pub(crate) fn specs(&self, granted: &[GrantedTool]) -> Arc<[ToolSpec]> {
        let known = |told: &Option<Told>| {
            told.as_ref().filter(|told| told.granted == granted).map(|told| Arc::clone(&told.specs))
        };
        let told = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(specs) = known(&told()) {
            return specs;
        }
        let specs: Arc<[ToolSpec]> =
            granted.iter().filter_map(|tool| self.get(&tool.name)).map(|tool| tool.spec().clone()).collect();
        if granted.iter().any(|tool| !self.tools.contains_key(&tool.name)) {
            // What a server offers may be something else tomorrow.
            return specs;
        }
        *told() = Some(Told { granted: granted.to_vec(), specs: Arc::clone(&specs) });
        specs
    }
}

/// A tool as admission grants it, with the size of what every request says about it.
pub(crate) fn granted(spec: &ToolSpec) -> GrantedTool {
    let schema = spec.input_schema.to_string();
    let chars = [&spec.name, &spec.description, &schema].into_iter().map(|text| text.chars().count()).sum();
    GrantedTool { name: spec.name.clone(), repeat: spec.repeat, chars }
}
