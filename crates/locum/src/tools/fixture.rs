//! A directory for tests, with a secret beside it that no tool may show.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use locum_core::ids::Identity;
use locum_core::permission::Permissions;
use locum_core::task::KnownFiles;
use locum_core::transcript::{ToolEnd, ToolOutput};
use nix::sys::stat::Mode;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::beneath::FileScope;
use super::reading::{self, Reading};
use super::writing::{self, Writing};
use super::{ToolScope, input};

/// What is written in the file outside.
pub(crate) const CANARY: &str = "canary-7f3a91";

/// What seals texts from outside.
pub(crate) const SEAL: &str = "0123456789abcdef";

/// A temporary directory with `root/`, where tools work, and `outside/canary.txt`.
pub(crate) struct Fixture {
    directory: TempDir,
    pub(crate) scope: FileScope,
}

impl Fixture {
    /// A root with these files. A name that ends with `/` is a directory.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/canary.txt"), format!("{CANARY}\n")).unwrap();
        let scope = FileScope { root, cwd: PathBuf::new(), stop: CancellationToken::new() };
        let fixture = Self { directory, scope };
        for (name, text) in files {
            fixture.write(name, text);
        }
        fixture
    }

    pub(crate) fn root(&self) -> &Path {
        &self.scope.root
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.directory.path().join("outside")
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.root().join(name.as_ref());
        if name.as_ref().as_os_str().as_bytes().ends_with(b"/") {
            return fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.root().join(name)).unwrap();
    }

    pub(crate) fn fifo(&self, name: &str) {
        let path = CString::new(self.root().join(name).as_os_str().as_bytes()).unwrap();
        nix::unistd::mkfifo(path.as_c_str(), Mode::S_IRWXU).unwrap();
    }

    /// One call of the tool whose input is an `I`.
    pub(crate) fn call<I: Reading>(&self, input: Value) -> ToolOutput {
        match input::parse::<I>(input) {
            Ok(input) => reading::run(input, self.scope.clone()).unwrap(),
            Err(output) => output,
        }
    }

    /// One call of the tool that changes a file and whose input is an `I`, as a task that knows these files makes it.
    pub(crate) fn change<I: Writing>(&self, known: &mut KnownFiles, input: Value) -> ToolOutput {
        let changed = input::parse::<I>(input).and_then(|input| {
            let intent = writing::plan(&input, self.scope.clone(), known)?;
            Ok(writing::carry_out(&input, &intent, self.scope.clone()).unwrap())
        });
        let output = changed.unwrap_or_else(|output| output);
        output.files.iter().for_each(|mark| known.note(mark.clone()));
        output
    }

    /// Reads a file, so that a task knows it.
    pub(crate) fn know(&self, known: &mut KnownFiles, path: &str) {
        let output = self.call::<super::read::Read>(serde_json::json!({ "path": path }));
        output.files.iter().for_each(|mark| known.note(mark.clone()));
    }

    /// The same as text: how it went, unless well, and the output.
    pub(crate) fn ask<I: Reading>(&self, input: Value) -> String {
        Self::told(self.call::<I>(input))
    }

    /// An output as text.
    pub(crate) fn told(output: ToolOutput) -> String {
        match output.end {
            ToolEnd::Ok => output.text,
            ToolEnd::Failed => format!("failed: {}", output.text),
            ToolEnd::Denied => format!("denied: {}", output.text),
            ToolEnd::Unknown => panic!("{}", output.text),
        }
    }

    /// What a worker hands to a tool.
    pub(crate) fn tool_scope(&self) -> ToolScope {
        ToolScope {
            root: self.scope.root.clone(),
            cwd: self.scope.cwd.clone(),
            identity: Identity::Orchestrator,
            stop: self.scope.stop.clone(),
            intent: None,
            files: Arc::default(),
            permissions: Permissions::default(),
            writers: Arc::default(),
            seals: Arc::new(super::Seals::Fixed(SEAL)),
            pool: Arc::default(),
            task: crate::jobs::TaskBadge::for_tests(),
            jobs: Arc::default(),
            desk: crate::desk::Desk::builder().build().expect("a desk in memory"),
        }
    }
}
