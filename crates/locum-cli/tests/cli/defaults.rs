//! `_defaults.md` from files to receipts: what each field gives to agents that leave it out, whose counts more, and what
//! happens where an agent is not found.

use serde_json::{Value, json};

use crate::home::Home;

const USER: &str = "home/config/agents/_defaults.md";

/// A home whose user has agents, a script for everybody, and fallbacks of the user and of the project.
struct Stage {
    home: Home,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new();
        let script = home.script(&json!({"*": [{"text": "Done."}]}));
        let stage = Self { home: home.with("LOCUM_MODEL", &script) };
        stage.write("home/config/agents/plain.md", "---\ndescription: Plain\n---\nYou are plain.\n");
        stage
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn user(&self, fields: &str) {
        self.write(USER, &format!("---\n{fields}\n---\n"));
    }

    fn project(&self, fields: &str) {
        self.home.write(".locum/agents/_defaults.md", &format!("---\n{fields}\n---\n"));
    }

    fn trust(&self) {
        assert_eq!(self.home.locum(&["agents", "trust", "--yes"]).code, Some(0));
    }

    /// The answer to a task, or the refusal.
    fn run(&self, agent: &str) -> Value {
        let ran = self.home.locum(&["run", agent, "Go.", "--json"]);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    }

    /// What `agents show` says of a field: its value, and who says so without the paths of this run.
    fn shown(&self, agent: &str, field: &str) -> (Value, String) {
        let ran = self.home.locum(&["agents", "show", agent, "--json"]);
        let shown: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let values = shown["values"].as_array().unwrap();
        let value = values.iter().find(|value| value["field"] == field).unwrap_or_else(|| panic!("{field}: {shown}"));
        let line = value["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
        (value["effective"].clone(), self.steady(&format!("{}{line}", value["from"].as_str().unwrap())))
    }

    fn steady(&self, text: &str) -> String {
        text.replace(&self.home.root().display().to_string(), "ROOT")
    }
}

/// A field, and what the user's file, the project's and the agent's own say about it, each with how it is shown.
type Row = (&'static str, &'static str, Value, &'static str, Value, &'static str, Value);

/// Every field: what the user's file gives, what the project's gives in its place once it is trusted, and that what the
/// agent itself says stays.
#[test]
fn each_field_falls_back_to_the_project_then_to_the_user() {
    let fields: [Row; 13] = [
        ("model", "offline", json!("offline"), "offline", json!("offline"), "offline", json!("offline")),
        ("tools", "read", json!(["read"]), "[ls]", json!(["ls"]), "[]", json!([])),
        ("disallowedTools", "ls", json!(["ls"]), "read", json!(["read"]), "find", json!(["find"])),
        ("maxTurns", "3", json!(3), "4", json!(4), "5", json!(5)),
        ("timeout", "30", json!(30), "40", json!(40), "50", json!(50)),
        ("isolation", "none", json!("none"), "none", json!("none"), "none", json!("none")),
        ("readonly", "true", json!(true), "false", json!(false), "true", json!(true)),
        ("background", "false", json!(false), "false", json!(false), "false", json!(false)),
        ("effort", "low", json!("low"), "high", json!("high"), "none", json!("none")),
        ("temperature", "0.1", json!(0.1), "0.2", json!(0.2), "0.3", json!(0.3)),
        ("max_tokens", "100", json!(100), "200", json!(200), "300", json!(300)),
        ("mcpServers", "[]", json!([]), "[]", json!([]), "[]", json!([])),
        ("locum.max_depth", "1", json!(1), "2", json!(2), "0", json!(0)),
    ];
    let stage = Stage::new();
    let written = |pick: fn(&Row) -> &'static str| {
        let line = |row: &Row| {
            row.0
                .strip_prefix("locum.")
                .map_or_else(|| format!("{}: {}", row.0, pick(row)), |key| format!("locum: {{{key}: {}}}", pick(row)))
        };
        fields.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    stage.user(&written(|row| row.1));
    stage.write(
        "home/config/agents/own.md",
        &format!("---\ndescription: Own\n{}\n---\nYou are own.\n", written(|row| row.5)),
    );
    stage.project(&written(|row| row.3));
    let check = |agent: &str, file: &str, first_line: usize, expected: fn(&Row) -> Value| {
        for (place, row) in fields.iter().enumerate() {
            let (value, from) = stage.shown(agent, row.0);
            assert_eq!(value, expected(row), "{agent} {}", row.0);
            assert_eq!(from, format!("{file}:{}", first_line + place), "{agent} {}", row.0);
        }
    };
    // A project that is not trusted says nothing.
    check("plain", "user ROOT/home/config/agents/_defaults.md", 2, |row| row.2.clone());
    stage.trust();
    check("plain", "project ROOT/project/.locum/agents/_defaults.md", 2, |row| row.4.clone());
    check("own", "agent ROOT/home/config/agents/own.md", 3, |row| row.6.clone());
}

#[test]
fn the_receipt_of_a_task_says_where_each_value_is_from() {
    let stage = Stage::new();
    let origins = |answer: &Value| stage.steady(&answer["receipt"]["origins"].to_string());
    stage.user("maxTurns: 3\ntimeout: 30");
    stage.project("maxTurns: 4\ntools: ls");
    insta::assert_snapshot!(origins(&stage.run("plain")), @r#"{"isolation":{"effective":"none","from":"built-in"},"max_turns":{"effective":3,"from":"user ROOT/home/config/agents/_defaults.md","requested":3},"mcp_servers":{"effective":[],"from":"built-in"},"model":{"from":"session"},"timeout":{"effective":30,"from":"user ROOT/home/config/agents/_defaults.md","requested":30},"tools":{"from":"built-in"}}"#);
    stage.trust();
    let answer = stage.run("plain");
    insta::assert_snapshot!(origins(&answer), @r#"{"isolation":{"effective":"none","from":"built-in"},"max_turns":{"effective":4,"from":"project ROOT/project/.locum/agents/_defaults.md","requested":4},"mcp_servers":{"effective":[],"from":"built-in"},"model":{"from":"session"},"timeout":{"effective":30,"from":"user ROOT/home/config/agents/_defaults.md","requested":30},"tools":{"from":"project ROOT/project/.locum/agents/_defaults.md"}}"#);
    assert_eq!(
        (&answer["receipt"]["max_turns"], &answer["receipt"]["tools"]["effective"]),
        (&json!(4), &json!(["ls"]))
    );
    // The call comes before everybody.
    let ran = stage.home.locum(&["run", "plain", "Go.", "--timeout", "7", "--model", "offline", "--json"]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let from = |name: &str| answer["receipt"]["origins"][name]["from"].clone();
    assert_eq!((from("timeout"), from("model")), (json!("call"), json!("call")));
    assert_eq!(answer["receipt"]["origins"]["timeout"]["effective"], 7);
    // What a task was given is in its log for good.
    assert_eq!(stage.home.locum(&["logs", "t_01", "--json"]).stdout.matches("user ").count(), 2);
}

#[test]
fn who_is_not_found_is_found_as_the_fallbacks_say_and_never_silently() {
    let stage = Stage::new();
    let found = |asked: &str| {
        let answer = stage.run(asked);
        let agent = &answer["receipt"]["agent"];
        if agent.is_null() {
            return answer["error"].as_str().unwrap().to_owned();
        }
        assert_eq!(agent["requested"], asked);
        assert!(answer["warnings"][0].as_str().unwrap().contains(asked), "{answer}");
        format!("{} by {}", agent["resolved"].as_str().unwrap(), agent["how"].as_str().unwrap())
    };
    assert_eq!(found("plian"), "AGENT_NOT_FOUND");
    stage.user("missingAgentBehavior: match");
    assert_eq!(found("plian"), "plain by match");
    assert_eq!(found("astronomer"), "AGENT_NOT_FOUND");
    stage.user("missingAgentBehavior: match-or-ephemeral");
    assert_eq!(found("plian"), "plain by match");
    assert_eq!(found("astronomer"), "astronomer by ephemeral");
    stage.user("missingAgentBehavior: match-or-ephemeral\nfallbackAgent: plain");
    assert_eq!(found("astronomer"), "plain by fallback");
    // The project counts more, once it is trusted.
    stage.project("missingAgentBehavior: error");
    assert_eq!(found("astronomer"), "plain by fallback");
    stage.trust();
    assert_eq!(found("plian"), "AGENT_NOT_FOUND");
    assert_eq!(found("astronomer"), "AGENT_NOT_FOUND");
}
