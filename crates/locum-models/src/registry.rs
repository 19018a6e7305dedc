//! From a model's name to something that answers. The one place that knows which provider is which.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use locum_core::routing::{Catalogue, ModelEntry, SessionModel};
use locum_core::task::event::FailureKind;
use locum_core::task::plan::ModelName;
use secrecy::SecretString;

use crate::catalogue;
use crate::http::{Endpoint, HttpClient, Proxy, Timeouts};
use crate::model::{Model, ModelError};
use crate::offline::Offline;
use crate::openai_chat::OpenAiChat;
use crate::scripted::Scripted;

const OFFLINE: &str = "offline";
const SCRIPTED: &str = "scripted";
const OPENAI: &str = "openai";

/// Where OpenAI itself is.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// A script is a test's size; anything larger is a mistake.
const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The keys and addresses of providers.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The key for OpenAI, or for what speaks like it.
    pub openai_key: Option<SecretString>,
    /// Where it is; OpenAI itself if this is left out.
    pub openai_base_url: Option<String>,
    /// How https addresses are reached.
    pub proxy: Proxy,
}

impl Access {
    /// The model that a session has when nobody names one, and why: the first provider with a key, else a server that
    /// was named, else the built-in model.
    pub fn first_model(&self) -> (String, String) {
        let openai = catalogue::default_model(OPENAI).to_string();
        match (&self.openai_key, &self.openai_base_url) {
            (Some(_), _) => (openai, "OPENAI_API_KEY is set".to_owned()),
            (None, Some(_)) => (openai, "openai.base_url names a server".to_owned()),
            (None, None) => (OFFLINE.to_owned(), "no key and no server is set; not a language model".to_owned()),
        }
    }
}

/// The file in `scripted:FILE`, and what stands before it.
pub fn script_path(name: &str) -> Option<(&str, &str)> {
    let path = name.strip_prefix(SCRIPTED)?.strip_prefix([':', '/'])?;
    Some((&name[..name.len() - path.len()], path))
}

/// Every model that can be used.
pub struct Registry {
    access: Access,
    own: BTreeMap<String, Arc<dyn Model>>,
    openai: OnceLock<Result<Arc<dyn Model>, ModelError>>,
    // Nothing awaits under this lock.
    scripts: Mutex<HashMap<String, Arc<dyn Model>>>,
    offline: Arc<dyn Model>,
}

impl Registry {
    /// The built-in models and the providers that `access` reaches. Nothing is dialled before it is asked.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            own: BTreeMap::new(),
            openai: OnceLock::new(),
            scripts: Mutex::default(),
            offline: Arc::new(Offline),
        }
    }

    /// Adds a model of the application's own.
    pub fn register(&mut self, name: &str, model: Arc<dyn Model>) {
        self.own.insert(name.to_owned(), model);
    }

    /// The models that are known by name; the session's is the first that can be reached.
    pub fn catalogue(&self) -> Catalogue {
        let own = self.own.keys().map(|name| ModelEntry::named(name_of(name, "")));
        let offline = ModelEntry::named(name_of(OFFLINE, ""));
        let mut catalogue = Catalogue {
            session: SessionModel { name: name_of(OFFLINE, ""), why: String::new() },
            providers: catalogue::providers(),
            models: own.chain(catalogue::models()).chain([offline]).collect(),
        };
        let (name, why) = self.access.first_model();
        if let Some(name) = catalogue.resolve(&name) {
            catalogue.session = SessionModel { name, why };
        }
        catalogue
    }

    /// The model of this name, ready to be asked.
    pub fn open(&self, name: &ModelName) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(own) = self.own.get(&name.provider).filter(|_| name.id.is_empty()) {
            return Ok(Arc::clone(own));
        }
        match name.provider.as_str() {
            OFFLINE => Ok(Arc::clone(&self.offline)),
            SCRIPTED => self.script(&name.id),
            OPENAI => self.openai.get_or_init(|| self.dial_openai()).clone(),
            provider => {
                let message = format!("no provider is called `{provider}` here");
                Err(ModelError::new(FailureKind::NotFound, message))
            }
        }
    }

    /// The variable that must be set before this model can answer, if it is missing.
    pub fn missing_key(&self, name: &ModelName) -> Option<&'static str> {
        let keyless = self.access.openai_key.is_none() && self.access.openai_base_url.is_none();
        (name.provider == OPENAI && keyless).then_some("OPENAI_API_KEY")
    }

    fn dial_openai(&self) -> Result<Arc<dyn Model>, ModelError> {
        let endpoint = Endpoint {
            base_url: self.access.openai_base_url.clone().unwrap_or_else(|| OPENAI_URL.to_owned()),
            key: self.access.openai_key.clone(),
            key_name: "OPENAI_API_KEY".to_owned(),
            headers: Vec::new(),
        };
        let client = Arc::new(HttpClient::new(Timeouts::default(), &self.access.proxy));
        Ok(Arc::new(OpenAiChat::new(client, endpoint)?))
    }

    fn script(&self, path: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(script) = scripts.get(path) {
            return Ok(Arc::clone(script));
        }
        let script: Arc<dyn Model> = Arc::new(read_script(path)?);
        scripts.insert(path.to_owned(), Arc::clone(&script));
        Ok(script)
    }
}

fn name_of(provider: &str, id: &str) -> ModelName {
    ModelName { provider: provider.to_owned(), id: id.to_owned() }
}

fn read_script(path: &str) -> Result<Scripted, ModelError> {
    let told = |why: String| ModelError::new(FailureKind::BadRequest, format!("the script {path}: {why}"));
    let size = std::fs::metadata(path).map_err(|error| told(error.to_string()))?;
    if !size.is_file() || size.len() > SCRIPT_BYTES_MAX {
        return Err(told("not a file of at most 16 MiB".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
    Scripted::parse(&text).map_err(|problem| told(problem.to_string()))
}
