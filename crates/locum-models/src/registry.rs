//! From a model's name to something that answers. Providers are rows of a table; the built-in models are known here.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locum_core::routing::{Catalogue, ModelEntry, RoutingRules};
use locum_core::task::event::FailureKind;
use locum_core::task::plan::ModelName;
use secrecy::SecretString;

use crate::access::Access;
use crate::api::Api;
use crate::catalogue;
use crate::governor::Governed;
use crate::http::{Endpoint, HttpClient, Timeouts};
use crate::model::{Model, ModelError};
use crate::offline::Offline;
use crate::probe::{self, Probed, Server};
use crate::providers::{self, Dialect};
use crate::replay::Replay;
use crate::scripted::Scripted;

const OFFLINE: &str = "offline";
const SCRIPTED: &str = "scripted";
const REPLAY: &str = "replay";

/// A script is a test's size; anything larger is a mistake.
const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A recording holds whole conversations of many tasks; it is read into memory.
const RECORDING_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The file in `scripted:FILE` or `replay:FILE`, and what stands before it.
pub fn script_path(name: &str) -> Option<(&str, &str)> {
    let path = name.strip_prefix(SCRIPTED).or_else(|| name.strip_prefix(REPLAY))?.strip_prefix([':', '/'])?;
    Some((&name[..name.len() - path.len()], path))
}

/// Every model that can be used.
pub struct Registry {
    access: Access,
    own: BTreeMap<String, Arc<dyn Model>>,
    /// Answers in the place of all others.
    everyone: Option<Arc<dyn Model>>,
    known: Vec<ModelEntry>,
    // Nothing awaits under these locks.
    clients: Mutex<HashMap<Option<PathBuf>, Arc<HttpClient>>>,
    /// By provider, and by whether tools are asked for as a schema.
    apis: Mutex<HashMap<(String, bool), Arc<dyn Model>>>,
    scripts: Mutex<HashMap<ModelName, Arc<dyn Model>>>,
    /// Models behind their governors: one for each, whoever asks it.
    governed: Mutex<HashMap<ModelName, Arc<dyn Model>>>,
    offline: Arc<dyn Model>,
}

impl Registry {
    /// The built-in models and the providers that `access` reaches. Nothing is dialled before it is asked.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            own: BTreeMap::new(),
            everyone: None,
            known: catalogue::models(),
            clients: Mutex::default(),
            apis: Mutex::default(),
            scripts: Mutex::default(),
            governed: Mutex::default(),
            offline: Arc::new(Offline),
        }
    }

    /// Lets this one answer in the place of every model: a process that reaches no provider asks another one to.
    #[must_use]
    pub fn answered_by(mut self, model: Arc<dyn Model>) -> Self {
        self.everyone = Some(model);
        self
    }

    /// Adds a model of the application's own.
    pub fn register(&mut self, name: &str, model: Arc<dyn Model>) {
        self.own.insert(name.to_owned(), model);
    }

    /// Knows these models by name, in the place of those of the built-in catalogue.
    pub fn know(&mut self, models: Vec<ModelEntry>) {
        self.known = models;
    }

    /// Whether a session's model stands for every model that could be chosen: it is there so that no other is asked.
    pub fn stands_in(&self, name: &ModelName) -> bool {
        [OFFLINE, SCRIPTED, REPLAY].contains(&name.provider.as_str())
    }

    /// The models that are known by name; the session's is the first that can be reached.
    pub fn catalogue(&self) -> Catalogue {
        let own = self.own.keys().map(|name| name_of(name, ""));
        // Whoever serves models on the user's machine knows best which ones; its name alone means the first of them.
        let unnamed = |name: &&str| providers::find(name).is_none_or(|row| row.is_local);
        let servers = self.access.names().filter(unnamed).map(|name| name_of(name, ""));
        let nameless = servers.chain([name_of(OFFLINE, "")]);
        let session = self.access.first_model();
        let reachable = self.access.names().filter(|name| self.access.reaches(name)).map(str::to_owned);
        Catalogue {
            stands_in: self.stands_in(&session.name),
            session,
            providers: self.access.provider_names(),
            reachable: reachable.collect(),
            models: own
                .map(ModelEntry::named)
                .chain(self.known.iter().cloned())
                .chain(nameless.map(ModelEntry::named))
                .collect(),
            fallback: Vec::new(),
            rules: RoutingRules::default(),
        }
    }

    /// The model of this name, ready to be asked. Models that are reached over a network, and the application's own,
    /// share one governor for each name.
    pub fn open(&self, name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(everyone) = &self.everyone {
            return Ok(Arc::clone(everyone));
        }
        if matches!(name.provider.as_str(), OFFLINE | SCRIPTED | REPLAY) && !self.own.contains_key(&name.provider) {
            return self.open_ungoverned(name);
        }
        let mut governed = lock(&self.governed);
        if let Some(model) = governed.get(name) {
            return Ok(Arc::clone(model));
        }
        let model: Arc<dyn Model> = Arc::new(Governed::new(&name.provider, self.open_ungoverned(name)?));
        governed.insert(name.clone(), Arc::clone(&model));
        Ok(model)
    }

    fn open_ungoverned(&self, name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(own) = self.own.get(&name.provider).filter(|_| name.id.is_empty()) {
            return Ok(Arc::clone(own));
        }
        match name.provider.as_str() {
            OFFLINE => Ok(Arc::clone(&self.offline)),
            SCRIPTED | REPLAY => self.script(name),
            _ => self.api(name),
        }
    }

    /// Asks the servers that run on the user's machine or were named by the user which models they have.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the requests; nothing is kept.
    pub async fn probe(&self) -> Vec<Probed> {
        let servers = self.access.names().filter_map(|name| {
            let said = self.access.of(name);
            let local = providers::find(name).filter(|row| row.is_local).map(|row| row.base_url.clone());
            let url = said.base_url.clone().or(local)?;
            Some(Server { provider: name.to_owned(), url, key: said.key.clone() })
        });
        probe::probe(servers.collect(), &self.access.proxy).await
    }

    /// The variable that must be set before this model can answer, if it is missing.
    pub fn missing_key(&self, name: &ModelName) -> Option<String> {
        self.access.missing_key(name)
    }

    fn api(&self, name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
        let has_schema = self.known.iter().any(|entry| entry.name == *name && entry.supports.tools_as_schema);
        let key = (name.provider.clone(), has_schema);
        let mut apis = lock(&self.apis);
        if let Some(api) = apis.get(&key) {
            return Ok(Arc::clone(api));
        }
        let mut dialect = providers::find(&name.provider).map(|row| row.dialect.clone()).unwrap_or_default();
        dialect.tools_as_schema |= has_schema;
        let api: Arc<dyn Model> = Arc::new(self.dial(&name.provider, dialect)?);
        apis.insert(key, Arc::clone(&api));
        Ok(api)
    }

    fn dial(&self, provider: &str, dialect: Dialect) -> Result<Api, ModelError> {
        let said = self.access.of(provider);
        let row = providers::find(provider);
        let base_url = said.base_url.clone().or(row.map(|row| row.base_url.clone())).ok_or_else(|| {
            let message = format!(
                "no provider is called `{provider}` here; if it is one of yours, set providers.{provider}.base_url"
            );
            ModelError::new(FailureKind::NotFound, message)
        })?;
        let common = row.into_iter().flat_map(|row| &row.headers);
        let common = common.map(|(name, value)| (name.clone(), SecretString::from(value.as_str())));
        let endpoint = Endpoint {
            base_url,
            key: said.key.clone(),
            key_name: self.access.key_name(provider),
            headers: common.chain(said.headers.iter().cloned()).collect(),
        };
        let client = self.client(said.ca_file.as_deref().or(self.access.ca_file.as_deref()))?;
        Api::in_dialect(client, endpoint, self.access.protocol(provider), dialect)
    }

    /// The client that trusts what is in a file, beside the machine's own certificates. Providers share it.
    fn client(&self, ca_file: Option<&Path>) -> Result<Arc<HttpClient>, ModelError> {
        let ca_file = ca_file.map(Path::to_owned);
        let mut clients = lock(&self.clients);
        if let Some(client) = clients.get(&ca_file) {
            return Ok(Arc::clone(client));
        }
        let client = HttpClient::new(Timeouts::default(), &self.access.proxy);
        let client = Arc::new(match &ca_file {
            Some(ca_file) => client.trusting(ca_file)?,
            None => client,
        });
        clients.insert(ca_file, Arc::clone(&client));
        Ok(client)
    }

    /// A model that is a file. It is read once: whoever replays it goes on where it is.
    fn script(&self, name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
        let mut scripts = lock(&self.scripts);
        if let Some(script) = scripts.get(name) {
            return Ok(Arc::clone(script));
        }
        let script: Arc<dyn Model> = match name.provider.as_str() {
            REPLAY => Arc::new(read(&name.id, "recording", RECORDING_BYTES_MAX, Replay::parse)?),
            _ => Arc::new(read(&name.id, "script", SCRIPT_BYTES_MAX, Scripted::parse)?),
        };
        scripts.insert(name.clone(), Arc::clone(&script));
        Ok(script)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name_of(provider: &str, id: &str) -> ModelName {
    ModelName { provider: provider.to_owned(), id: id.to_owned() }
}

/// Reads a model from a file of at most so many bytes.
fn read<T, E: std::fmt::Display>(
    path: &str,
    what: &str,
    bytes_max: u64,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, ModelError> {
    let told = |why: String| ModelError::new(FailureKind::BadRequest, format!("the {what} {path}: {why}"));
    let size = std::fs::metadata(path).map_err(|error| told(error.to_string()))?;
    if !size.is_file() || size.len() > bytes_max {
        return Err(told(format!("not a file of at most {} MiB", bytes_max / 1024 / 1024)));
    }
    let text = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    parse(&text).map_err(|problem| told(problem.to_string()))
}
