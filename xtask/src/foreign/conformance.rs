//! The official conformance suite of the protocol, in both of its eras, against MCP over HTTP as the built binary serves
//! it. Checks that do not apply to a server without the suite's fixtures are listed with their reasons; what is not
//! listed must not fail, and what is listed must exist and fail.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Built, NODE_VERSION, Stage, install_npm, node_package, wait};

/// The suite for each era, and what it is asked to run.
const SUITES: &[Suite] = &[
    Suite { version: "0.1.16", revisions: &["2025-06-18", "2025-11-25"], scenarios: &[] },
    Suite { version: "0.2.0-alpha.12", revisions: &["2025-11-25", "2026-07-28"], scenarios: EXTENSIONS },
];

/// Scenarios about extensions that locum has: no revision of the protocol includes them.
const EXTENSIONS: &[&str] = &[
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-status-notifications",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

const PACKAGE: &str = "@modelcontextprotocol/conformance";

struct Suite {
    version: &'static str,
    revisions: &'static [&'static str],
    scenarios: &'static [&'static str],
}

/// Checks by `SCENARIO CHECK`: how often each passed, and why it did not where it did not.
#[derive(Default)]
struct Seen {
    passed: BTreeMap<String, usize>,
    failed: BTreeMap<String, String>,
}

/// Runs the suites and holds what they say against the list.
pub(crate) fn suite(root: &Path) -> Result<()> {
    let built = Built::of(root)?;
    let sources = root.join("tests/foreign");
    let listed = read_list(&fs::read_to_string(sources.join("conformance.txt"))?)?;
    let stage = Stage::new(&built.folder)?;
    let node_package = node_package()?;
    let mut seen = Seen::default();
    for Suite { version, revisions, scenarios } in SUITES {
        let folder = built.folder.join(format!("conformance-{version}"));
        install_npm(&folder, &[&format!("{PACKAGE}@{version}"), &format!("{node_package}@{NODE_VERSION}")])?;
        let modules = folder.join("node_modules");
        let node = modules.join(node_package).join("bin/node");
        let server = Server::start(&stage, &built.locum)?;
        let bearer = Bearer::start(&node, &sources.join("bearer.mjs"), &server)?;
        let all = revisions.iter().map(|revision| ["--suite", "all", "--spec-version", revision].to_vec());
        let single = scenarios.iter().map(|scenario| ["--scenario", scenario].to_vec());
        for (number, arguments) in all.chain(single).enumerate() {
            let results = stage.folder.join(format!("results-{version}-{number}"));
            let mut command = Command::new(&node);
            command
                .arg(modules.join(PACKAGE).join("dist/index.js"))
                .args(["server", "--url", &format!("http://127.0.0.1:{}/mcp", bearer.port), "--output-dir"])
                .arg(&results)
                .args(&arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            // It fails when a check does; which ones may is decided here.
            wait(&mut command)?;
            let count = seen.read(&results).with_context(|| format!("{PACKAGE} {version} {}", arguments.join(" ")))?;
            println!("{version} {}: {count} checks", arguments.join(" "));
        }
    }
    let problems = seen.judge(&listed);
    ensure!(problems.is_empty(), "not as tests/foreign/conformance.txt says:\n{}", problems.join("\n"));
    println!("{} checks passed, {} do not apply", seen.passed.len(), seen.failed.len());
    Ok(())
}

/// Checks by scenario and name, each with why it does not apply.
fn read_list(text: &str) -> Result<BTreeMap<String, String>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) = line.split_once(": ").with_context(|| format!("`{line}` gives no reason"))?;
            Ok((name.to_owned(), reason.to_owned()))
        })
        .collect()
}

impl Seen {
    /// Reads what a run wrote down, and says how many checks that were.
    fn read(&mut self, folder: &Path) -> Result<usize> {
        let mut count = 0;
        for entry in fs::read_dir(folder).context("the suite wrote nothing")?.flatten() {
            let Ok(text) = fs::read_to_string(entry.path().join("checks.json")) else { continue };
            let checks: Value = serde_json::from_str(&text)?;
            let name = scenario(&entry.file_name().to_string_lossy());
            for check in checks.as_array().into_iter().flatten() {
                count += 1;
                self.note(&name, check);
            }
        }
        ensure!(count > 0, "the suite checked nothing");
        Ok(count)
    }

    fn note(&mut self, scenario: &str, check: &Value) {
        let name = format!("{scenario} {}", check["id"].as_str().unwrap_or_default());
        match check["status"].as_str() {
            Some("SUCCESS") => *self.passed.entry(name).or_default() += 1,
            Some("FAILURE") => drop(self.failed.insert(name, check["errorMessage"].to_string())),
            // Remarks, and what the suite itself leaves out.
            _ => {}
        }
    }

    /// Where what was seen differs from what is listed.
    fn judge(&self, listed: &BTreeMap<String, String>) -> Vec<String> {
        let unlisted = self.failed.iter().filter(|(name, _)| !listed.contains_key(*name));
        let mut problems: Vec<String> = unlisted.map(|(name, why)| format!("{name} fails: {why}")).collect();
        for name in listed.keys() {
            if self.passed.contains_key(name) {
                problems.push(format!("{name} passes: it must not be listed"));
            } else if !self.failed.contains_key(name) {
                problems.push(format!("{name} is listed and does not exist"));
            }
        }
        problems
    }
}

/// The name of a scenario from that of its folder: `server-NAME-TIME`.
fn scenario(folder: &str) -> String {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let is_time =
        |at: &usize| name[*at..].starts_with("-20") && name.as_bytes().get(at + "-2026-11-16".len()) == Some(&b'T');
    let end = name.match_indices('-').map(|(at, _)| at).find(is_time);
    end.map_or(name, |at| &name[..at]).to_owned()
}

/// A running `locum serve`; ended when it is dropped.
pub(super) struct Server {
    child: Child,
    pub(super) port: String,
    pub(super) token: String,
}

impl Server {
    pub(super) fn start(stage: &Stage, locum: &Path) -> Result<Self> {
        let model = format!("scripted:{}", stage.folder.join("script.json").display());
        let mut command = Command::new(locum);
        command
            .args(["serve", "--listen", "0", "--json", "--model", &model])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &stage.folder)
            .env("LOCUM_HOME", stage.folder.join("home"))
            .current_dir(stage.folder.join("project"));
        let (child, said) = started(&mut command)?;
        let said: Value = serde_json::from_str(&said).context("the server did not say where it is")?;
        let port = said["url"].as_str().and_then(|url| url.rsplit(':').next()).context("it has no port")?.to_owned();
        let token_file = PathBuf::from(said["token_file"].as_str().context("it has no token")?);
        let token = fs::read_to_string(token_file)?.trim().to_owned();
        Ok(Self { child, port, token })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What shows the token for the suite, which cannot; ended when it is dropped.
struct Bearer {
    child: Child,
    port: String,
}

impl Bearer {
    fn start(node: &Path, script: &Path, server: &Server) -> Result<Self> {
        let (child, port) = started(Command::new(node).arg(script).args([&server.port, &server.token]))?;
        Ok(Self { child, port: port.trim().to_owned() })
    }
}

impl Drop for Bearer {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A program and the first line that it says.
fn started(command: &mut Command) -> Result<(Child, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let mut output: BufReader<ChildStdout> = BufReader::new(child.stdout.take().context("nobody hears it")?);
    output.read_line(&mut line)?;
    Ok((child, line))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_says_exactly_what_fails() {
        let judged = |checks: &[(&str, &str)]| {
            let mut seen = Seen::default();
            for (id, status) in checks {
                seen.note("s", &json!({"id": id, "status": status, "errorMessage": "why"}));
            }
            seen.judge(&read_list("# about\n\ns a: wants a fixture\n").unwrap())
        };
        assert_eq!(judged(&[("a", "FAILURE"), ("b", "SUCCESS"), ("c", "WARNING")]), Vec::<String>::new());
        assert_eq!(judged(&[("a", "FAILURE"), ("a", "SUCCESS")]), ["s a passes: it must not be listed"]);
        assert_eq!(judged(&[("a", "FAILURE"), ("b", "FAILURE")]), ["s b fails: \"why\""]);
        assert_eq!(judged(&[("b", "SUCCESS")]), ["s a is listed and does not exist"]);
        assert!(read_list("a\n").is_err());
    }

    #[test]
    fn folders_are_named_after_scenarios() {
        assert_eq!(scenario("server-ping-2026-11-16T06-20-00-000Z"), "ping");
        assert_eq!(scenario("server-json-schema-2020-12-2026-11-16T06-20-00-000Z"), "json-schema-2020-12");
    }
}
