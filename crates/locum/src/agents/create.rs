//! Writing a new agent file. It never takes the place of another one.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use locum_core::agent::{AgentSpec, Source, template};
use locum_core::ids::AgentName;

use super::{BUNDLED, files};

/// Why there is no new file.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one.
    #[error("{} exists already and was not changed", .0.display())]
    Exists(PathBuf),
    /// It cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The agent to copy has no file.
    #[error("`{0}` cannot be copied: it has no file")]
    NoFile(AgentName),
    /// The agent to copy has a file that cannot be read.
    #[error("{} cannot be copied: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Writes the file of a new agent into a directory, as a copy of another agent or to be filled in, and answers where it
/// is.
///
/// # Errors
///
/// There is a file of that name, the directory cannot be written to, or the other agent has no file to copy.
pub fn create(directory: &Path, name: &AgentName, from: Option<&AgentSpec>) -> Result<PathBuf, CreateError> {
    let text = match from {
        None => template::blank(name),
        Some(from) => template::renamed(&text_of(from)?, name),
    };
    let failed = |path: &Path, source| CreateError::File { path: path.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let path = directory.join(format!("{name}.md"));
    let mut file = match std::fs::File::create_new(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(CreateError::Exists(path)),
        Err(error) => return Err(failed(&path, error)),
    };
    file.write_all(text.as_bytes()).map_err(|error| failed(&path, error))?;
    Ok(path)
}

fn text_of(agent: &AgentSpec) -> Result<String, CreateError> {
    if agent.source == Source::Bundled {
        let known = BUNDLED.iter().find(|(name, _)| *name == agent.name.as_str());
        return known.map(|(_, text)| (*text).to_owned()).ok_or_else(|| CreateError::NoFile(agent.name.clone()));
    }
    let path = agent.source.path().ok_or_else(|| CreateError::NoFile(agent.name.clone()))?;
    let path = PathBuf::from(path);
    let unreadable = |why: String| CreateError::Unreadable { path: path.clone(), why };
    let bytes = files::read_file(&path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))
}
