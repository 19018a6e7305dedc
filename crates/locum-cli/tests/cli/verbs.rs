//! The verbs that a person types: what they print, where, and how they exit.

use serde_json::{Value, json};

use crate::home::Home;
use crate::shell::Shell;

const HELPER: &str = "---\nname: helper\ndescription: Helps with anything\ntools: []\n---\nYou help.\n";
const LOOKER: &str = "---\nname: looker\ndescription: Looks first\ntools: ls, read\nmax_turns: 4\n---\nYou look.\n";

/// Runs commands in a project with the agents `helper`, `looker`, `silent` and `broken`, and compares what they print.
fn check(name: &str, commands: impl FnOnce(&mut Shell<'_>)) {
    let home = Home::new();
    home.write("agents/helper.md", HELPER);
    home.write("agents/looker.md", LOOKER);
    for name in ["silent", "broken"] {
        home.write(&format!("agents/{name}.md"), &HELPER.replace("helper", name));
    }
    let usage = json!({"input_tokens": 10, "output_tokens": 5});
    let model = home.script(&json!({
        "helper": [{"text": "Done: {{task}}", "usage": usage}],
        "looker": [
            {"text": "I look.", "tool_calls": [{"name": "ls"}], "usage": usage},
            {"text": "Two files.\nNo more.", "usage": usage},
        ],
        "silent": [{"error": {"kind": "hang"}}],
        "broken": [{"error": {"kind": "auth"}}],
    }));
    std::fs::create_dir_all(home.project().join("src")).unwrap();
    let mut shell = Shell::new(&home, &model);
    commands(&mut shell);
    insta::assert_snapshot!(format!("verbs_{name}"), shell.transcript());
}

#[test]
fn run_prints_the_answer_and_nothing_else() {
    check("run", |shell| {
        shell.run("run helper 'say it'");
        shell.run("run helper say it in words");
        shell.run("run looker t");
        shell.run("run -q helper t");
        shell.run("run --json helper t");
        shell.run_reading("run helper -", "from\nstandard input\n");
        shell.run("run broken t");
        shell.run("run --json broken t");
        shell.run("run helpr t");
        shell.run("run --json helpr t");
        shell.run_reading("run helper -", "");
        shell.run("run helper t --label L --cwd src --max-output-tokens 100");
        shell.run("run helper t --cwd ../elsewhere");
        // What ran in the foreground was collected.
        shell.run("status");
        shell.run("result t_01");
    });
}

#[test]
fn a_person_may_give_a_long_task() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"text": "{{task}}", "usage": {}}]}));
    for (characters, code) in [(100_000, 0), (100_001, 1)] {
        let task = "é".repeat(characters);
        let ran = home.locum_reading(&["run", "-q", "writer", "-", "--model", &model], task.as_bytes());
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        // A person gets the whole answer, not its first 4000 characters.
        assert_eq!(ran.stdout.trim_end() == task, code == 0);
    }
}

#[test]
fn a_timeout_exits_with_124() {
    let home = Home::new();
    let model = home.script(&json!({"*": [{"error": {"kind": "hang"}}]}));
    let ran = home.locum(&["run", "writer", "t", "--timeout", "1", "--json", "--model", &model]);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &answer["error"]), (Some(124), &json!("Timed out after 1 s")));
    let ran = home.locum(&["chain", "writer=t", "writer=u", "--model", &model, "--tasks", "x"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn parallel_prints_every_answer_in_order() {
    check("parallel", |shell| {
        shell.run("parallel 'helper=first task' looker=second");
        shell.run("parallel helper=a broken=b helpr=c");
        shell.run("parallel --json helper=a helpr=c");
        let tasks =
            "{\"agent\": \"helper\", \"task\": \"a\", \"label\": \"A\"}\n\n{\"agent\": \"looker\", \"task\": \"b\"}\n";
        shell.run_reading("parallel --tasks -", tasks);
        shell.run_reading("parallel --tasks -", "{\"agent\": \"helper\", \"task\": \"a\"}\n{\"agent\": \"helper\"}\n");
        shell.run_reading("parallel --tasks -", "{\"agent\": \"helper\", \"task\": \"a\", \"colour\": 1}\n");
        shell.run_reading("parallel --tasks -", "[\"helper\", \"a\"]\n");
        shell.run_reading("parallel --tasks -", "");
        shell.run("parallel --tasks nowhere.jsonl");
        shell.run("parallel --concurrency 7 helper=1 helper=2 helper=3 helper=4 helper=5 helper=6 helper=7 --json -q");
        shell.run("parallel helper");
        shell.run("parallel --concurrency 0 helper=a");
    });
}

#[test]
fn race_prints_the_first_answer_and_map_prints_all() {
    check("race_and_map", |shell| {
        shell.run("race silent=a helper=b silent=c");
        shell.run("race --json silent=a helper=b");
        shell.run("race broken=a broken=b");
        shell.run("race helper=a helpr=b");
        shell.run("race");
        shell.run("map helper 'about {input}' x 'y z'");
        shell.run_reading("map helper 'about {input}' --inputs - --json", "x\n\ny z\n");
        shell.run("map broken '{input}' x");
        shell.run("map helper 'no place' x");
        shell.run("map helper '{input}'");
        shell.run("map helper '{input}' x --inputs -");
    });
}

#[test]
fn the_board_is_a_table_for_people_and_json_for_machines() {
    check("board", |shell| {
        shell.run("board list");
        shell.run("board add Write the tests --active-form 'Writing the tests' --metadata '{\"area\": \"core\"}'");
        shell.run_reading("board add 'Run them' --blocked-by b_01 --description -", "All of them.\n");
        shell.run("board claim b_02");
        shell.run("board claim b_01");
        shell.run("board list");
        shell.run("board list --json");
        shell.run("board update b_01 --comment 'Half of it.'");
        shell.run("board update b_01 --blocked-by b_02");
        shell.run("board update b_02 --unblock --subject 'Run all'");
        shell.run("board update b_02");
        shell.run("board update b_02 --status done");
        shell.run("board update b_02 --metadata []");
        shell.run("board show b_01");
        shell.run("board get b_02");
        shell.run("board show b_02 --json");
        shell.run("board complete b_01");
        shell.run("board complete-all");
        shell.run("board clear");
        shell.run("board list");
        shell.run("board list --archived");
        shell.run("board claim b_09 --json");
    });
}

#[test]
fn chain_prints_the_last_answer_or_the_step_that_failed() {
    check("chain", |shell| {
        shell.run("chain helper=a 'helper={previous} and b'");
        shell.run("chain helper=a broken=b helper=c");
        shell.run("chain --json helper=a broken=b helper=c");
        shell.run("chain helper=a helpr=b");
        let steps =
            "{\"agent\": \"looker\", \"task\": \"a\"}\n{\"agent\": \"helper\", \"task\": \"about {previous}\"}\n";
        shell.run_reading("chain --tasks -", steps);
    });
}

#[test]
fn the_shared_context_at_the_shell() {
    check("context", |shell| {
        shell.run("context list");
        shell.run("context write goal 'Ship part A'");
        shell.run_reading("context write plan -", "one\ntwo\n");
        shell.run("context list");
        shell.run("context list --json");
        shell.run("context read goal");
        shell.run("context read plan");
        shell.run("context read --json goal");
        shell.run("context write goal B --expected-version 7");
        shell.run("context write goal B --expected-version 7 --json");
        shell.run("context read nothing");
        shell.run("context delete goal");
        shell.run("context delete goal");
        // Another session has another context.
        shell.run("context list --session other");
        shell.run("context list --session 'Not an id'");
    });
}

#[test]
fn history_snapshots_and_rights_at_the_shell() {
    check("context_extensions", |shell| {
        shell.run("context write goal A");
        shell.run("context write goal B");
        shell.run("context snapshots");
        shell.run("context snapshot before-fix");
        shell.run("context snapshot 'Not a label'");
        shell.run("context write goal C --writable-by orchestrator --writable-by 'subagent:helper:*' --readable-by 'subagent:*'");
        shell.run("context write goal D --readable-by 'No pattern'");
        shell.run("context write extra more");
        shell.run("context write extra more --ttl 0");
        shell.run("context list");
        shell.run("context read-batch goal nothing extra");
        shell.run("context read-batch goal nothing --json");
        shell.run("context history goal");
        shell.run("context history goal --versions 1 --json");
        shell.run("context history nothing");
        shell.run("context snapshots");
        shell.run("context snapshots --json");
        shell.run("context restore after-fix");
        shell.run("context restore before-fix");
        shell.run("context read goal");
        shell.run("context history extra");
        shell.run("context restore before-fix --json");
        shell.run("context write team:goal A");
    });
}

#[test]
fn sessions_at_the_shell() {
    check("sessions", |shell| {
        shell.run("context session list");
        shell.run("context session create team");
        shell.run("context session create team");
        shell.run("context session create 'Not an id'");
        shell.run("context write goal A --session team");
        shell.run("context session list");
        shell.run("context session archive team");
        shell.run("context session archive tame");
        shell.run("context write goal B --session team");
        shell.run("run helper t --session team");
        shell.run("context read goal --session team");
        shell.run("context session list --json");
        // Nobody is there to ask.
        shell.run("context session delete team");
        shell.run("context session delete team --yes");
        shell.run("context session delete team --yes --json");
        shell.run("context session create again --json");
        shell.run("context session list");
    });
}

#[test]
fn namespaces_and_expiry_from_the_surroundings() {
    let home = Home::new().with("LOCUM_SHARED_CONTEXT_NAMESPACES", "true");
    assert_eq!(home.locum(&["context", "write", "team:goal", "A"]).stdout, "team:goal version 1\n");
    let written = home.locum(&["context", "write", "lock", "mine", "--ttl", "3600", "--json"]);
    let answer: Value = serde_json::from_str(&written.stdout).unwrap();
    assert!(answer["expires_at"].is_string(), "{answer}");
    let listed = home.locum(&["context", "list"]).stdout;
    assert!(listed.contains("LIMITS") && listed.contains("until 20"), "{listed}");
}

#[test]
fn agents_from_a_directory_and_files_that_are_broken() {
    let home = Home::new();
    home.write("agents/helper.md", HELPER);
    home.write("agents/broken.md", "---\nname: broken\ndescription: d\nmax_turns: many\n---\nBody.\n");
    home.write("agents/empty.md", "");
    let mut shell = Shell::new(&home, "offline");
    let listed = shell.quiet("agents list --json", "");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let agents = listed["agents"].as_array().unwrap();
    let helper = agents.iter().find(|agent| agent["name"] == "helper").unwrap();
    let expected = json!({"name": "helper", "description": "Helps with anything", "model": "offline", "max_turns": 10, "tools": [], "source": "directory", "path": home.project().join("agents/helper.md")});
    assert_eq!(helper, &expected);
    assert!(!agents.iter().any(|agent| agent["name"] == "broken"));
    let problems = listed["problems"].as_array().unwrap();
    let places: Vec<(&Value, u64)> =
        problems.iter().map(|problem| (&problem["file"], problem["line"].as_u64().unwrap())).collect();
    let file = |name: &str| json!(home.project().join("agents").join(name));
    assert_eq!(places, [(&file("broken.md"), 4), (&file("empty.md"), 1)], "{problems:?}");
    let table = shell.quiet("agents list", "");
    assert_eq!(table.code, Some(0));
    assert!(table.stdout.lines().any(|line| line.starts_with("helper ")), "{}", table.stdout);
    assert!(table.stderr.contains("agents/broken.md:4:"), "{}", table.stderr);
    // The others go on.
    shell.run("agents show helper");
    shell.run("agents show helper --json");
    for command in ["agents show explor", "agents show broken", "run broken t"] {
        let refused = shell.quiet(&format!("{command} --json -q"), "");
        let answer: Value = serde_json::from_str(&refused.stdout).unwrap();
        assert_eq!((refused.code, &answer["error"]), (Some(1), &json!("AGENT_NOT_FOUND")), "{command}");
    }
    insta::assert_snapshot!("verbs_agents", shell.transcript());
    let missing = home.locum(&["agents", "list", "--agents", "nowhere"]);
    assert!(missing.stderr.contains("nowhere"), "{missing:?}");
}
