//! The list of what can be read now, by pages: agents by name, tasks newest first, keys by name.

use locum::protocol::request::{ContextAction, ListAgents, ListKeys};
use locum::protocol::{Refusal, Response, SubagentAction};
use locum::{Desk, Uid};
use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, Resource};

use super::address::Address;

/// Bytes of the resources of a page, as JSON writes them.
const BYTES_MAX: usize = 7_000;

/// Tasks that are read at once.
const TASKS: usize = 64;

/// Characters of a description: the resource itself has the whole.
const DESCRIPTION_CHARS: usize = 200;

/// The kinds in their order, as cursors name them: `tasks:UID` means after that task.
const KINDS: [&str; 3] = ["agents", "tasks", "context"];

/// A page that is filled.
#[derive(Default)]
struct Filling {
    resources: Vec<Resource>,
    bytes: usize,
    cursor: Option<String>,
}

impl Filling {
    /// Adds a resource, unless the page is full. `cursor` is where the next page begins after it.
    fn add(&mut self, resource: Resource, cursor: String) -> bool {
        let bytes = serde_json::to_string(&resource).map_or(0, |json| json.len() + 1);
        if self.bytes + bytes > BYTES_MAX {
            return false;
        }
        self.bytes += bytes;
        self.resources.push(resource);
        self.cursor = Some(cursor);
        true
    }
}

/// A page of everything.
pub(in crate::mcp) async fn list(desk: &Desk, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let cursor = cursor.unwrap_or_else(|| format!("{}:", KINDS[0]));
    let unknown = || ErrorData::invalid_params("there is no such cursor", None);
    let (kind, mut after) = cursor.split_once(':').ok_or_else(unknown)?;
    let first = KINDS.iter().position(|known| *known == kind).ok_or_else(unknown)?;
    let mut filling = Filling { cursor: Some(cursor.clone()), ..Filling::default() };
    for kind in &KINDS[first..] {
        let is_whole = match *kind {
            "agents" => agents(desk, after, &mut filling).await,
            "tasks" => tasks(desk, after, &mut filling).await,
            _ => keys(desk, after, &mut filling).await,
        };
        let is_whole = is_whole.map_err(|refusal| ErrorData::invalid_params(refusal.message, None))?;
        if !is_whole {
            let mut result = ListResourcesResult::with_all_items(filling.resources);
            result.next_cursor = filling.cursor;
            return Ok(result);
        }
        after = "";
        filling.cursor = KINDS.iter().skip_while(|known| *known != kind).nth(1).map(|next| format!("{next}:"));
    }
    Ok(ListResourcesResult::with_all_items(filling.resources))
}

fn shortened(text: &str) -> String {
    text.chars().take(DESCRIPTION_CHARS).collect()
}

async fn agents(desk: &Desk, after: &str, filling: &mut Filling) -> Result<bool, Refusal> {
    let Response::Agents(agents) = desk.handle(SubagentAction::ListAgents(ListAgents {})).await? else {
        return Err(Refusal::internal("an unexpected list of agents"));
    };
    let mut agents: Vec<_> = agents.agents.into_iter().filter(|agent| agent.name.as_str() > after).collect();
    agents.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
    Ok(agents.into_iter().all(|agent| {
        let name = agent.name.to_string();
        let resource = Resource::new(Address::Agent(name.clone()).to_string(), &name);
        let resource = resource.with_description(shortened(&agent.description)).with_mime_type("text/plain");
        filling.add(resource, format!("agents:{name}"))
    }))
}

async fn tasks(desk: &Desk, after: &str, filling: &mut Filling) -> Result<bool, Refusal> {
    let mut before = match after {
        "" => None,
        uid => Some(Uid::parse(uid).map_err(|_| Refusal::invalid("there is no such cursor"))?),
    };
    loop {
        let page = desk.task_page(Some(desk.session().id.clone()), before, TASKS).await?;
        let is_last = page.len() < TASKS;
        for task in &page {
            let id = task.status.task_id.to_string();
            let about = format!("@{} {}", task.status.agent, task.status.status.as_str());
            let label = task.status.label.as_ref().map(|label| format!(": {label}")).unwrap_or_default();
            let resource = Resource::new(Address::Task(id.clone()).to_string(), id);
            let resource = resource.with_description(shortened(&format!("{about}{label}")));
            if !filling.add(resource.with_mime_type("application/json"), format!("tasks:{}", task.uid)) {
                return Ok(false);
            }
        }
        match page.into_iter().next_back() {
            Some(last) if !is_last => before = Some(last.uid),
            _ => return Ok(true),
        }
    }
}

async fn keys(desk: &Desk, after: &str, filling: &mut Filling) -> Result<bool, Refusal> {
    let Response::Keys(keys) = desk.handle(ContextAction::ListKeys(ListKeys {})).await? else {
        return Err(Refusal::internal("an unexpected list of keys"));
    };
    let mut keys: Vec<_> = keys.keys.into_iter().filter(|line| line.key.as_str() > after).collect();
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(keys.into_iter().all(|line| {
        let resource = Resource::new(Address::Value(line.key.clone()).to_string(), &line.key);
        let about = format!("version {} by {}", line.version, line.written_by);
        filling.add(resource.with_description(about).with_mime_type("text/plain"), format!("context:{}", line.key))
    }))
}
