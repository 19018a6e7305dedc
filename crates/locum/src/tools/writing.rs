//! What all tools that change files share: the file must be known, nobody else may be writing it, and it is replaced
//! whole or not at all. A call says first what it will do; after a crash it is made again only if the file still is
//! what it was.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use locum_core::permission::Subject;
use locum_core::task::KnownFiles;
use locum_core::transcript::{FileMark, FileUse, Intent, Repeat, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::beneath::{Beneath, FileScope, quoted, stopped, unreadable};
use super::{Prepared, Tool, ToolFuture, ToolLayerError, ToolScope, content, input};

/// The input of a tool that changes one file, with what is done to it.
pub(crate) trait Writing: DeserializeOwned + JsonSchema + Clone + Send + 'static {
    /// The name that a model calls.
    const NAME: &'static str;
    /// When and how to use it.
    const DESCRIPTION: &'static str;

    /// The file, as the model named it.
    fn path(&self) -> &str;

    /// What becomes of the file. What went wrong is output as well; it is an `Err` for the sake of `?`.
    fn revise(&self, before: Option<&[u8]>) -> Result<Revision, ToolOutput>;
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision {
    /// Its new content.
    pub(crate) content: Vec<u8>,
    /// What was done, for the model.
    pub(crate) said: String,
}

/// The tool whose input is an `I`.
#[derive(Debug)]
pub(crate) struct WritingTool<I> {
    spec: ToolSpec,
    input: PhantomData<fn() -> I>,
}

impl<I: Writing> Default for WritingTool<I> {
    fn default() -> Self {
        Self { spec: input::spec::<I>(I::NAME, I::DESCRIPTION, Repeat::Guarded), input: PhantomData }
    }
}

impl<I: Writing> Tool for WritingTool<I> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn comes_with_locum(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, input: &'a Value, scope: &'a ToolScope) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        Box::pin(async move {
            let input: I = input::parse(input.clone())?;
            let (files, known) = (FileScope::from(scope), Arc::clone(&scope.files));
            let planned = scope.pool.run(move || plan(&input, files, &known)).await;
            let intent = planned.map_err(|error| failed::<I>(&error))??;
            Ok(Prepared { subject: Subject::Path(intent.path.clone()), intent: Some(intent) })
        })
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            let Some(intent) = scope.intent.clone() else {
                return Ok(ToolOutput::failed("the call did not say before what it would do"));
            };
            let input: I = match input::parse(input) {
                Ok(input) => input,
                Err(output) => return Ok(output),
            };
            let files = FileScope::from(scope);
            let pen = scope.writers.pen(&scope.task.uid, &scope.root.to_string_lossy());
            let work = async {
                // The claim is held until the task ends; what others want to write meanwhile is refused with this one's
                // name.
                if let Err(why) = pen.claim(&intent.path).await {
                    return Ok(Ok(ToolOutput::failed(format!("`{}` {why}", intent.path))));
                }
                scope.pool.run(move || carry_out(&input, &intent, files)).await
            };
            match scope.stop.run_until_cancelled(work).await {
                Some(Ok(result)) => result,
                // The task can go on without this one answer.
                Some(Err(error)) => Ok(failed::<I>(&error)),
                None => Ok(stopped()),
            }
        })
    }
}

fn failed<I: Writing>(error: &dyn std::error::Error) -> ToolOutput {
    ToolOutput::failed(format!("{} did not end well: {error}", I::NAME))
}

/// What a call is about to do. Nothing is changed here.
pub(crate) fn plan<I: Writing>(input: &I, scope: FileScope, known: &KnownFiles) -> Result<Intent, ToolOutput> {
    let files = Beneath::open(scope).map_err(|error| ToolOutput::failed(error.to_string()))?;
    let place = files.place(input.path())?;
    let path = place.to_str().ok_or_else(|| {
        ToolOutput::failed(format!("{} is not written in UTF-8 and cannot be written to", quoted(input.path())))
    })?;
    let before = read(&files, &place, input.path())?;
    let hash = before.as_deref().map(content::hash);
    match (&hash, known.hash_of(path)) {
        (None, _) => {}
        (Some(hash), Some(known)) if hash == known => {}
        (Some(_), Some(_)) => return Err(stale(input.path())),
        (Some(_), None) => {
            let said = quoted(input.path());
            return Err(ToolOutput::failed(format!("{said} exists and was not read in this task: read it first")));
        }
    }
    let revision = input.revise(before.as_deref())?;
    Ok(Intent { path: path.to_owned(), before: hash, after: content::hash(&revision.content) })
}

/// Does what was announced, if the file still is what it was then.
pub(crate) fn carry_out<I: Writing>(
    input: &I,
    intent: &Intent,
    scope: FileScope,
) -> Result<ToolOutput, ToolLayerError> {
    let files = Beneath::open(scope)?;
    Ok(match change(input, intent, &files) {
        Ok(said) => {
            let mark = FileMark { path: intent.path.clone(), hash: intent.after.clone(), by: FileUse::Written };
            ToolOutput { files: vec![mark], ..ToolOutput::ok(format!("`{}`: {said}", intent.path)) }
        }
        Err(output) => output,
    })
}

fn change<I: Writing>(input: &I, intent: &Intent, files: &Beneath) -> Result<String, ToolOutput> {
    // The path was judged when the intent was made; where it leads now must be the same place.
    if files.place(input.path())? != Path::new(&intent.path) {
        return Err(stale(input.path()));
    }
    let before = read(files, Path::new(&intent.path), input.path())?;
    let hash = before.as_deref().map(content::hash);
    if hash.as_ref() == Some(&intent.after) {
        return Ok("done".to_owned());
    }
    if hash != intent.before {
        return Err(stale(input.path()));
    }
    let revision = input.revise(before.as_deref())?;
    files.check_stop()?;
    let written = files.replace(Path::new(&intent.path), &revision.content);
    written.map_err(|error| ToolOutput::failed(format!("{} cannot be written: {error}", quoted(input.path()))))?;
    Ok(revision.said)
}

fn read(files: &Beneath, path: &Path, said: &str) -> Result<Option<Vec<u8>>, ToolOutput> {
    let content = files.content(path);
    files.check_stop()?;
    content.map_err(|error| unreadable(said, &error))
}

#[cfg(test)]
mod tests;

fn stale(said: &str) -> ToolOutput {
    let said = quoted(said);
    ToolOutput::failed(format!("{said} has changed since it was last read in this task: read it again, then decide"))
}
