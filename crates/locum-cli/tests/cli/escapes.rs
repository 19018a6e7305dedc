//! Programs that try to get out of the sandbox, at each level, as root and as another user. The oracle does not believe
//! them: files with a canary, a victim process and listeners outside tell whether anything was touched.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};

use crate::commands::{LEVELS, answers, bash, is_possible};
use crate::home::Home;

const ATTACKS: &str = include_str!("attacks.txt");

/// What is written where nobody may read it.
const CANARY: &str = "canary-7f3a91-outside";

/// What an attack says when it has succeeded.
const SUCCESS: &str = "ESCAPED";

/// Attacks in one task: a reply can make 64 calls.
const AT_ONCE: usize = 28;

/// Somebody who owns nothing.
const NOBODY: u32 = 65_534;

struct Attack {
    name: &'static str,
    marks: &'static str,
    command: &'static str,
}

fn attacks() -> Vec<Attack> {
    let lines = ATTACKS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &'static str| {
        let (name, rest) = line.split_once(" |").unwrap();
        let (marks, command) = rest.split_once("| ").unwrap();
        Attack { name, marks: marks.trim(), command }
    };
    lines.map(parse).collect()
}

/// What is outside, and would notice.
struct Outside {
    home: Home,
    directory: PathBuf,
    tag: String,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    abstract_unix: UnixListener,
}

impl Outside {
    fn new(user: Option<u32>) -> Self {
        let home = Home::new().with("OPENAI_API_KEY", "sk-canary-7f3a91-key").with("SECRET_OF_MINE", CANARY);
        let root = home.root();
        let tag = root.file_name().unwrap().to_string_lossy().into_owned();
        let directory = root.join("outside");
        for (path, text) in [
            ("outside/canary.txt", CANARY),
            (".ssh/id_canary", CANARY),
            (".ssh/authorized_keys", "mine"),
            (".netrc", CANARY),
            (".bashrc", "mine"),
            (".cargo/credentials.toml", CANARY),
            (".cargo/bin/tool", "tool"),
            ("home/config/secret.txt", CANARY),
            ("home/config/config.toml", "# mine\n"),
            ("home/data/secret.txt", CANARY),
            ("home/state/secret.txt", CANARY),
            ("project/.git/config", "[core]\n"),
            ("project/.vscode/tasks.json", "{}"),
            ("project/.envrc", "mine"),
            ("project/.config/git/config", "mine"),
            ("project/.cargo/config.toml", "mine"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        fs::write(shared_memory(&tag), CANARY).unwrap();
        let unix = UnixListener::bind(directory.join("socket")).unwrap();
        let name = SocketAddr::from_abstract_name(&tag).unwrap();
        let home = match user {
            Some(user) => home.given_to(user),
            None => home,
        };
        let mut victim = Command::new("/bin/sh");
        victim
            .args(["-c", "while :; do sleep 1000; done", CANARY, &tag])
            .env("SECRET_OF_VICTIM", CANARY)
            .process_group(0);
        if let Some(user) = user {
            victim.uid(user).gid(user);
        }
        let outside = Self {
            victim: victim.spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            abstract_unix: UnixListener::bind_addr(&name).unwrap(),
            home,
            directory,
            tag,
            unix,
        };
        outside.tcp.set_nonblocking(true).unwrap();
        outside.udp.set_nonblocking(true).unwrap();
        outside.unix.set_nonblocking(true).unwrap();
        outside.abstract_unix.set_nonblocking(true).unwrap();
        outside
    }

    /// The command of an attack on this outside.
    fn aimed(&self, attack: &Attack) -> String {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("{outside}", path(self.directory.clone())),
            ("{home}", path(self.home.root())),
            ("{state}", path(self.home.locum_home())),
            ("{tag}", self.tag.clone()),
            ("{abstract}", self.tag.clone()),
            ("{victim}", self.victim.id().to_string()),
            ("{tcp}", self.tcp.local_addr().unwrap().port().to_string()),
            ("{udp}", self.udp.local_addr().unwrap().port().to_string()),
            ("!!", SUCCESS.to_owned()),
        ]
        .into_iter()
        .fold(attack.command.to_owned(), |command, (name, value)| command.replace(name, &value))
    }

    /// Makes the attacks, and returns what each was answered.
    fn attacked(&self, level: &str, attacks: &[&Attack]) -> Vec<String> {
        let mut said = Vec::new();
        for some in attacks.chunks(AT_ONCE) {
            let calls = some.iter().map(|attack| bash(&self.aimed(attack))).collect();
            said.extend(answers(&self.home, level, &[calls]));
        }
        said
    }

    /// What was touched.
    fn touched(&mut self) -> Vec<String> {
        let root = self.home.root();
        let mut touched = Vec::new();
        let mut expect = |what: &str, untouched: bool| {
            if !untouched {
                touched.push(what.to_owned());
            }
        };
        for (path, text) in [
            ("outside/canary.txt", CANARY),
            (".ssh/authorized_keys", "mine"),
            (".bashrc", "mine"),
            (".cargo/bin/tool", "tool"),
            ("home/config/config.toml", "# mine\n"),
            ("home/data/secret.txt", CANARY),
            ("project/.git/config", "[core]\n"),
            ("project/.vscode/tasks.json", "{}"),
            ("project/.envrc", "mine"),
            ("project/.config/git/config", "mine"),
            ("project/.cargo/config.toml", "mine"),
        ] {
            expect(path, fs::read_to_string(root.join(path)).is_ok_and(|found| found == text));
        }
        let mut names: Vec<String> = fs::read_dir(&self.directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        expect("outside", names == ["canary.txt", "socket"]);
        expect("git", fs::read_dir(root.join("project/.git")).unwrap().count() == 1);
        expect("the temporary directory", !PathBuf::from(format!("/tmp/locum-escape-{}", self.tag)).exists());
        expect("victim", self.victim.try_wait().unwrap().is_none());
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.victim.id())).unwrap_or_default();
        // What else it does meanwhile depends on the machine.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        expect("victim is stopped or traced", state.is_some_and(|state| !matches!(state, 'T' | 't' | 'Z' | 'X')));
        expect("tcp", self.tcp.accept().is_err());
        expect("udp", self.udp.recv(&mut [0; 16]).is_err());
        expect("unix", self.unix.accept().is_err());
        expect("abstract", self.abstract_unix.accept().is_err());
        touched
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        // It may be gone already if an attack succeeded.
        nix::sys::signal::killpg(nix::unistd::Pid::from_raw(self.victim.id().cast_signed()), nix::sys::signal::SIGKILL)
            .ok();
        self.victim.wait().unwrap();
        fs::remove_file(shared_memory(&self.tag)).ok();
    }
}

fn shared_memory(tag: &str) -> String {
    format!("/dev/shm/locum-{tag}")
}

fn is_escape(answer: &str) -> bool {
    [CANARY, SUCCESS, "7f3a91", "[redacted]"].iter().any(|sign| answer.contains(sign))
}

/// Whether the number of processes can be limited: for root only by a kernel that counts them for each namespace.
fn processes_are_limited(user: Option<u32>) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let numbers: Vec<u32> = release.split('.').take(2).filter_map(|part| part.parse().ok()).collect();
    user.is_some() || !nix::unistd::getuid().is_root() || numbers >= vec![6, 14]
}

fn check(level: &str, user: Option<u32>) {
    if user.is_some() && !nix::unistd::getuid().is_root() {
        return;
    }
    let mut outside = Outside::new(user);
    if !is_possible(&outside.home, level) {
        return;
    }
    let all = attacks();
    let promised = |attack: &&Attack| {
        (level == "full" || !attack.marks.contains('f'))
            && (processes_are_limited(user) || attack.name != "fork without end")
    };
    let some: Vec<&Attack> = all.iter().filter(promised).collect();
    assert!(some.len() >= 100, "{}", some.len());
    let said = outside.attacked(level, &some);
    assert_eq!(said.len(), some.len());
    let mut report = Vec::new();
    for (attack, answer) in some.iter().zip(&said).filter(|(_, answer)| is_escape(answer)) {
        writeln!(report, "{}: {answer}", attack.name).unwrap();
    }
    let report = String::from_utf8(report).unwrap();
    assert_eq!((report.as_str(), outside.touched()), ("", Vec::new()), "{level} {user:?}");
    for answer in &said {
        assert!(!answer.contains("sandbox"), "{answer}");
    }
}

#[test]
fn nothing_escapes_from_the_full_sandbox() {
    check(LEVELS[0], None);
}

#[test]
fn nothing_escapes_from_the_full_sandbox_as_nobody() {
    check(LEVELS[0], Some(NOBODY));
}

#[test]
fn nothing_escapes_from_landlock() {
    check(LEVELS[1], None);
}

#[test]
fn nothing_escapes_from_landlock_as_nobody() {
    check(LEVELS[1], Some(NOBODY));
}

/// The suite is worth something only if it notices what it looks for: without a sandbox, every attack that needs no
/// more than a user's rights must be noticed.
#[test]
fn without_a_sandbox_the_attacks_succeed() {
    let user = nix::unistd::getuid().is_root().then_some(NOBODY);
    let mut outside = Outside::new(user);
    let all = attacks();
    let some: Vec<&Attack> = all.iter().filter(|attack| attack.marks.contains('p')).collect();
    assert!(some.len() >= 60, "{}", some.len());
    let said = outside.attacked("none", &some);
    let unnoticed: Vec<String> = some
        .iter()
        .zip(&said)
        .filter(|(_, answer)| !is_escape(answer))
        .map(|(attack, answer)| format!("{}: {answer}", attack.name))
        .collect();
    assert_eq!(unnoticed, [""; 0]);
    let touched = outside.touched();
    for witness in ["outside/canary.txt", ".bashrc", "outside", "git", "tcp", "unix", "abstract"] {
        assert!(touched.iter().any(|what| what == witness), "{witness}: {touched:?}");
    }
}
