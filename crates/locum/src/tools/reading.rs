//! What all tools that read files share: a typed input, the task's root, the pool and the stop token.

use std::marker::PhantomData;

use futures_util::future::BoxFuture;
use locum_core::permission::Subject;
use locum_core::transcript::{Repeat, ToolOutput, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::beneath::{Beneath, FileScope, stopped};
use super::{Prepared, Tool, ToolFuture, ToolLayerError, ToolScope, input};

/// The input of a tool that reads files, with what is done about it.
pub(crate) trait Reading: DeserializeOwned + JsonSchema + Send + 'static {
    /// The name that a model calls.
    const NAME: &'static str;
    /// When and how to use it.
    const DESCRIPTION: &'static str;

    /// Does the work, where blocking is allowed. What went wrong is output as well; it is an `Err` for the sake of `?`.
    fn answer(self, files: &Beneath) -> Result<String, ToolOutput>;
}

/// The tool whose input is an `I`.
#[derive(Debug)]
pub(crate) struct ReadingTool<I> {
    spec: ToolSpec,
    input: PhantomData<fn() -> I>,
}

impl<I: Reading> Default for ReadingTool<I> {
    fn default() -> Self {
        Self { spec: input::spec::<I>(I::NAME, I::DESCRIPTION, Repeat::Safe), input: PhantomData }
    }
}

impl<I: Reading> Tool for ReadingTool<I> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn comes_with_locum(&self) -> bool {
        true
    }

    fn prepare<'a>(&'a self, input: &'a Value, scope: &'a ToolScope) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        Box::pin(async move {
            let Some(said) = input.get("path").and_then(Value::as_str).map(str::to_owned) else {
                return Ok(Prepared { subject: Subject::Path(".".to_owned()), intent: None });
            };
            let files = FileScope::from(scope);
            let subject = scope.pool.run(move || subject(&said, files)).await;
            let subject =
                subject.map_err(|error| ToolOutput::failed(format!("the path cannot be looked at: {error}")))?;
            Ok(Prepared { subject, intent: None })
        })
    }

    fn call<'a>(&'a self, input: Value, scope: &'a ToolScope) -> ToolFuture<'a> {
        Box::pin(async move {
            let input: I = match input::parse(input) {
                Ok(input) => input,
                Err(output) => return Ok(output),
            };
            let files = FileScope::from(scope);
            let work = scope.pool.run(move || run(input, files));
            match scope.stop.run_until_cancelled(work).await {
                Some(Ok(result)) => result,
                // The task can go on without this one answer.
                Some(Err(error)) => Ok(ToolOutput::failed(format!("{} did not end well: {error}", I::NAME))),
                None => Ok(stopped()),
            }
        })
    }
}

/// One call, on the thread that may block.
pub(crate) fn run<I: Reading>(input: I, scope: FileScope) -> Result<ToolOutput, ToolLayerError> {
    let files = Beneath::open(scope)?;
    Ok(match input.answer(&files) {
        Ok(text) => ToolOutput { files: files.take_marks(), ..ToolOutput::ok(text) },
        Err(output) => output,
    })
}

/// What a call is about: the path that it names, where it leads to. One that leads nowhere is judged as it is written.
fn subject(said: &str, scope: FileScope) -> Subject {
    let located = Beneath::open(scope).ok().and_then(|files| files.locate(said).ok());
    Subject::Path(located.map_or_else(|| said.to_owned(), |located| located.path.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::fixture::Fixture;
    use crate::tools::read::Read;
    use crate::tools::reading_tools;

    #[tokio::test]
    async fn a_call_runs_on_the_pool() {
        let fixture = Fixture::new(&[("a.txt", "text\n")]);
        let (tool, scope) = (ReadingTool::<Read>::default(), fixture.tool_scope());
        let ask = |input| tool.call(input, &scope);
        let read = ask(json!({"path": "a.txt"})).await.unwrap();
        assert_eq!((read.text.as_str(), read.files[0].path.as_str()), ("1\ttext", "a.txt"));
        let expected = ToolOutput::failed("invalid input: missing field `path`");
        assert_eq!(ask(json!({})).await.unwrap(), expected);
        scope.stop.cancel();
        assert_eq!(ask(json!({"path": "a.txt"})).await.unwrap(), stopped());
    }

    #[tokio::test]
    async fn without_a_root_the_tool_layer_fails() {
        let fixture = Fixture::new(&[]);
        let mut scope = fixture.tool_scope();
        scope.root.push("missing");
        let error = ReadingTool::<Read>::default().call(json!({"path": "a"}), &scope).await.unwrap_err();
        assert!(error.to_string().ends_with("cannot be opened: No such file or directory (os error 2)"), "{error}");
    }

    #[test]
    fn the_reading_tools_as_a_model_sees_them() {
        let tools = reading_tools();
        assert!(tools.iter().all(|tool| tool.spec().repeat == Repeat::Safe));
        let shown: Vec<String> = tools
            .iter()
            .map(|tool| tool.spec())
            .map(|spec| format!("{}: {}\n{}\n", spec.name, spec.description, spec.input_schema))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        read: Read a text file. Each line is shown as number, tab, text. Long files come in pages: continue with `offset`.
        Paths are relative to the working directory. Read several files in one turn with several calls.
        {"additionalProperties":false,"properties":{"limit":{"description":"Lines, default 2000","type":"integer"},"offset":{"description":"First line, from 1","type":"integer"},"path":{"type":"string"}},"required":["path"],"type":"object"}

        grep: Search file contents with a regular expression (Rust syntax: no look-around, no backreferences; escape `(`, `{`, `.`).
        Output: `path:line:text`, context as `path-line-text`. Skips ignored, hidden and binary files.
        {"additionalProperties":false,"properties":{"context":{"description":"Lines around each match","type":"integer"},"glob":{"description":"Only these files, e.g. `*.rs`","type":"string"},"ignore_case":{"type":"boolean"},"max_results":{"description":"Default 100, at most 1000","type":"integer"},"path":{"description":"File or directory","type":"string"},"pattern":{"type":"string"}},"required":["pattern"],"type":"object"}

        find: Find files and directories by name: a glob such as `**/*.rs` or `src/*.ts`, or a bare word that is part of the name.
        Skips ignored and hidden files. Directories end with `/`.
        {"additionalProperties":false,"properties":{"max_results":{"description":"Default 200","type":"integer"},"path":{"description":"Directory","type":"string"},"pattern":{"type":"string"}},"required":["pattern"],"type":"object"}

        ls: List one directory with file sizes, hidden and ignored names included. Directories end with `/`.
        {"additionalProperties":false,"properties":{"path":{"type":"string"}},"type":"object"}

        tree: Show the directory tree without ignored and hidden files: a first look at an unknown project.
        {"additionalProperties":false,"properties":{"depth":{"description":"Default 3, at most 10","type":"integer"},"path":{"type":"string"}},"type":"object"}

        think: Write down a thought before a difficult step: weigh findings, check a plan. It changes nothing and gets no answer.
        {"additionalProperties":false,"properties":{"thought":{"type":"string"}},"required":["thought"],"type":"object"}
        "#);
    }
}
