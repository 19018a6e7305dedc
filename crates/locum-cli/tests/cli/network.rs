//! Commands of an agent with a `network` list: they reach the hosts that it names, through the gate, and nothing else.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::borrowed_tools::{FIXTURE, run, settings};
use crate::commands::{bash, is_possible};
use crate::home::Home;

/// A server on this machine that counts who comes, and answers each with a word.
fn server_at_work() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let visits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&visits);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            let mut byte = [0; 1];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
                head.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello").ok();
        }
    });
    (port, visits)
}

/// Asks through the proxy that the variables name, with nothing but bash: the whole answer.
fn through_proxy(line: &str) -> String {
    format!(
        "p=${{http_proxy#http://}}; exec 3<>/dev/tcp/${{p%:*}}/${{p#*:}} && printf '{line}\\r\\nHost: x\\r\\n\\r\\n' >&3 && \
         cat <&3"
    )
}

/// What commands of an agent with this list are answered at a level, and the warnings of its result.
fn answers(home: &Home, level: &str, network: &str, commands: &[String]) -> (Vec<String>, Vec<Value>) {
    let file =
        format!("---\nname: net\ndescription: Runs.\ntools: bash, job\nlocum: {{network: {network}}}\n---\nRun.\n");
    home.write("agents/net.md", &file);
    let calls = commands.iter().map(|command| json!({"tool_calls": [bash(command)]}));
    let replies: Vec<Value> = calls.chain([json!({"text": "done"})]).collect();
    let model = home.script(&json!({ "net": replies }));
    let said = ["run", "net", "go", "--json", "--sandbox", level, "--agents", "agents", "--model", &model];
    let ran = home.locum(&said);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let logs = home.locum(&["logs", answer["task_id"].as_str().unwrap(), "--json"]);
    let records = logs.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let texts = records.filter_map(|record| Some(record["event"]["output"]["text"].as_str()?.replace('\r', "")));
    (texts.collect(), answer["warnings"].as_array().cloned().unwrap_or_default())
}

#[test]
fn a_command_reaches_the_hosts_that_are_named_and_no_others() {
    let home = Home::new();
    if !is_possible(&home, "full") {
        return;
    }
    let (port, visits) = server_at_work();
    let commands = [
        through_proxy(&format!("GET http://127.0.0.1:{port}/ HTTP/1.1")),
        through_proxy(&format!("GET http://127.0.0.2:{port}/ HTTP/1.1")),
        through_proxy(&format!("CONNECT localhost:{port} HTTP/1.1")),
        through_proxy(&format!("CONNECT 0x7f000001:{port} HTTP/1.1")),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
    ];
    let (answers, warnings) = answers(&home, "full", "[127.0.0.1]", &commands);
    assert!(answers[0].starts_with("HTTP/1.1 200 OK") && answers[0].ends_with("hello"), "{answers:?}");
    for (answer, host) in answers[1..].iter().zip(["127.0.0.2", "localhost"]) {
        let why = format!("{host}:{port} is not in the `network` list (127.0.0.1)");
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden") && answer.contains(&format!("locum: {why}")), "{answer}");
        assert!(answer.ends_with(&format!("[network: {why}]")), "{answer}");
    }
    assert!(answers[3].contains("is a number in a form"), "{answers:?}");
    assert!(answers[4].contains("Connection refused"), "{answers:?}");
    assert_eq!((visits.load(Ordering::SeqCst), warnings), (1, Vec::new()));
}

#[test]
fn a_job_reaches_them_for_as_long_as_it_runs() {
    let home = Home::new();
    if !is_possible(&home, "full") {
        return;
    }
    let (port, visits) = server_at_work();
    let ask = through_proxy(&format!("GET http://127.0.0.1:{port}/ HTTP/1.1"));
    home.write(
        "agents/net.md",
        "---\nname: net\ndescription: Runs.\ntools: bash, job\nlocum: {network: [127.0.0.1]}\n---\nRun.\n",
    );
    let job = json!({"name": "bash", "input": {"command": format!("{ask} > answer.txt; mv answer.txt there.txt"), "background": true}});
    let wait = bash("until [ -e there.txt ]; do read -t 0.05 <> <(:); done; tail -c 5 there.txt");
    let model = home.script(&json!({"net": [{"tool_calls": [job]}, {"tool_calls": [wait]}, {"text": "done"}]}));
    let ran = home.locum(&["run", "net", "go", "--agents", "agents", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(std::fs::read_to_string(home.project().join("there.txt")).unwrap().ends_with("hello"));
    assert_eq!(visits.load(Ordering::SeqCst), 1);
}

#[test]
fn without_namespaces_there_is_no_network_and_that_is_said() {
    let home = Home::new();
    if !is_possible(&home, "landlock") {
        return;
    }
    let (port, visits) = server_at_work();
    let commands = [format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo ${{http_proxy-none}}")];
    let (answers, warnings) = answers(&home, "landlock", "[127.0.0.1]", &commands);
    assert!(answers[0].contains("Operation not permitted") || answers[0].contains("none"), "{answers:?}");
    let why = "the hosts of `network` are not reached: the sandbox `landlock` has no network";
    assert_eq!((visits.load(Ordering::SeqCst), warnings), (0, vec![json!(why)]));
}

/// What a server of the user with these settings gets when it asks an address of this machine, and the task's answer.
fn asked_by_server(server: &str, level: &str, host: &str) -> (Value, String, usize) {
    let home = Home::new();
    let (port, visits) = server_at_work();
    home.write("reach.sh", &through_proxy(&format!("GET http://{host}:{port}/ HTTP/1.1")));
    let reach = "text \"$(bash reach.sh 2>&1 | tr -d '\\r\\n\"' | tail -c 120)\"";
    home.write("server.sh", &FIXTURE.replace("echo call >>calls.txt && text counted", reach));
    settings(&home, &format!("[mcp_servers.f]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n{server}"));
    let agents = home.root().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    let file = "---\nname: borrower\ndescription: Borrows.\ntools: mcp__f\n---\nBorrow.\n";
    std::fs::write(agents.join("borrower.md"), file).unwrap();
    let (answer, outputs) = run(&home, level, &["mcp__f__count"]);
    (answer, outputs.concat(), visits.load(Ordering::SeqCst))
}

#[test]
fn a_server_reaches_the_hosts_that_its_settings_name_and_no_others() {
    if !is_possible(&Home::new(), "full") {
        return;
    }
    let named = "network = [\"127.0.0.1\"]";
    let (answer, said, visits) = asked_by_server(named, "full", "127.0.0.1");
    assert!(said.contains("hello") && visits == 1, "{said}");
    assert_eq!(answer["receipt"]["mcp_sandboxes"], json!({"f": "full"}));
    let (_, said, visits) = asked_by_server(named, "full", "127.0.0.2");
    assert!(said.contains("is not in the `network` list (127.0.0.1)") && visits == 0, "{said}");
    // Without a list there is no way out at all.
    let (_, said, visits) = asked_by_server("", "full", "127.0.0.1");
    assert!(!said.contains("hello") && visits == 0, "{said}");
}

#[test]
fn a_server_whose_hosts_cannot_be_kept_to_is_not_started() {
    if !is_possible(&Home::new(), "landlock") {
        return;
    }
    let (answer, _, visits) = asked_by_server("network = [\"127.0.0.1\"]", "landlock", "127.0.0.1");
    let told = answer["receipt"]["tools"]["dropped"].to_string();
    assert!(told.contains("its `network` needs the sandbox `full`") && visits == 0, "{answer}");
    let (answer, ..) = asked_by_server("sandbox = \"landlock\"", "full", "127.0.0.1");
    assert_eq!(answer["receipt"]["mcp_sandboxes"], json!({"f": "landlock"}));
}
