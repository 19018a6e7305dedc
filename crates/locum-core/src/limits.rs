//! Every bound on what a model, a file or a user can grow, with its reason.

use serde::{Deserialize, Serialize};

/// Characters of one token, as all limits count them (the specification's own estimate).
pub const CHARS_PER_TOKEN: usize = 4;

/// Agent names and session ids: short enough to be shown in a table (specification §4.6).
pub const NAME_CHARS_MAX: usize = 64;

/// Tokens of a task description through the native tool: it forces clear, scoped delegation (§4.2).
pub const TASK_TOKENS_MAX: usize = 1000;

/// Characters of a task typed by a person or sent through another face: they have no shared context to move it to.
pub const TASK_CHARS_MAX_PERSON: usize = 100_000;

/// Tokens of a result in `collect`: an orchestrator needs a conclusion, not a transfer (§4.1).
pub const RESULT_TOKENS_MAX: usize = 1000;

/// Tokens of a system prompt in `define` (§4.7).
pub const PROMPT_TOKENS_MAX: usize = 4000;

/// Characters of a description: it is one line in a list that a model reads whole.
pub const DESCRIPTION_CHARS_MAX: usize = 1000;

/// Characters of a label: it is shown beside a task.
pub const LABEL_CHARS_MAX: usize = 200;

/// Characters of an idempotency key: it is an index key.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 200;

/// Tools that one agent may be given: each costs tokens in every request.
pub const TOOLS_PER_AGENT_MAX: usize = 128;

/// Tasks that one task may wait for, and entries of one `parallel` or `chain`: bounds the size of one transaction.
pub const TASKS_PER_REQUEST_MAX: usize = 1000;

/// Agents that a session may define: `list_agents` shows them all.
pub const DEFINED_AGENTS_MAX: usize = 200;

/// Turns that an agent has when it does not say.
pub const TURNS_DEFAULT: u32 = 10;
/// The same in the faces of systems that bound no turns themselves: as many as are allowed where nobody says otherwise.
pub const TURNS_DEFAULT_FOREIGN: u32 = 25;

/// Bytes of one result in a text of the tallow and pi faces: a model reads it whole. The rest is kept.
pub const FACE_RESULT_BYTES_MAX: usize = 200 * 1024;
/// Characters of one message that faces show of a conversation: the log has the whole.
pub const FACE_MESSAGE_CHARS_MAX: usize = 4000;
/// Lines of one result in a text of the pi face.
pub const PI_RESULT_LINES_MAX: usize = 5000;
/// Texts and tool calls that the pi face shows of a run: the last ones; the session file has all.
pub const PI_DISPLAY_ITEMS_MAX: usize = 100;
/// Seconds that a task of the pi face may take.
pub const PI_SECONDS_MAX: u64 = 900;
/// Seconds that a task of the pi face may be silent.
pub const PI_IDLE_SECONDS_MAX: u64 = 180;
/// Seconds that a task of the acai face may take when neither the call nor its agent says.
pub const ACAI_SECONDS_DEFAULT: u64 = 300;
/// The longest that a call of the acai face may say.
pub const ACAI_SECONDS_MAX: u64 = 3600;
/// Characters of a result that the picoclaw face shows to a person.
pub const PICOCLAW_USER_CHARS_MAX: usize = 500;
/// Tasks of one `parallel` of the tallow face that run at once.
pub const TALLOW_CONCURRENCY: u32 = 4;
/// Results that the tallow face reports under one heading.
pub const TALLOW_BATCH: usize = 8;

/// Characters of a dependency's result that are handed on; beyond it the head is kept and the rest named.
pub const HANDED_ON_CHARS_MAX: usize = 100_000;

/// Characters of one page of `result`.
pub const RESULT_PAGE_CHARS_DEFAULT: usize = 4000;
/// The longest page of `result`: one answer must stay a bounded message.
pub const RESULT_PAGE_CHARS_MAX: usize = 100_000;

/// How long `wait` waits when it is not told.
pub const WAIT_MS_DEFAULT: u64 = 30_000;
/// The longest wait: below the 60 s after which most callers of tools give up.
pub const WAIT_MS_MAX: u64 = 45_000;

/// Bytes that one of locum's own tools returns; it says what it left out.
pub const TOOL_OUTPUT_BYTES_MAX: usize = 50_000;

/// Bytes of any tool's output that reach the model: an application's tool may know better than ours what is worth
/// reading, but not everything.
pub const TOOL_RESULT_BYTES_MAX: usize = 256 * 1024;

/// Bytes of one command: the system takes no longer argument than 128 KiB.
pub const COMMAND_BYTES_MAX: usize = 120 * 1024;
/// Seconds that a command may take when the call does not say.
pub const COMMAND_SECONDS_DEFAULT: u64 = 120;
/// The longest that a call may say: shorter than the watchdog's patience with a tool. What takes longer is a job.
pub const COMMAND_SECONDS_MAX: u64 = 540;
/// How long a command may take to end when it is asked to, before it is killed.
pub const COMMAND_GRACE_MS: u64 = 5_000;
/// Bytes from the beginning of an output that are shown: what was done, and the first error.
pub const COMMAND_HEAD_BYTES: usize = 16 * 1024;
/// Bytes from the end of an output that are shown: how it came out.
pub const COMMAND_TAIL_BYTES: usize = 24 * 1024;
/// Bytes of one command's output that are kept in a file when they are too many to be shown.
pub const COMMAND_OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Seconds of processor time for one process: no build needs more, and a loop without end stops.
pub const COMMAND_CPU_SECONDS_MAX: u64 = 3_600;
/// Bytes of memory that one process may write to.
pub const COMMAND_MEMORY_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;
/// Bytes of one file that a command writes: larger than what builds make, smaller than a disk.
pub const COMMAND_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Processes of one command, threads counted: a build on a large machine needs hundreds.
pub const COMMAND_PROCESSES_MAX: u64 = 2048;
/// Jobs that a task may have in the background at once: servers and watchers, not a scheduler.
pub const JOBS_PER_TASK_MAX: usize = 8;

/// Bytes of an address in the web: longer ones are refused by most servers too.
pub const WEB_ADDRESS_BYTES_MAX: usize = 4096;
/// Redirects that are followed for one page: more of them lead in circles.
pub const WEB_REDIRECTS_MAX: usize = 5;
/// Addresses of one name that are dialled, one after the other.
pub const WEB_ADDRESSES_TRIED_MAX: usize = 4;
/// Seconds that one of them may take to accept a connection.
pub const WEB_CONNECT_SECONDS_MAX: u64 = 10;
/// Seconds for one answer from the web, redirects not counted: who waits longer has forgotten what for.
pub const WEB_SECONDS_MAX: u64 = 30;
/// Bytes of one answer from the web that are read: the longest specifications fit.
pub const WEB_BODY_BYTES_MAX: usize = 5 * 1024 * 1024;
/// Tags of a page that are looked at: each costs memory, and a page of that many is a table of data.
pub const WEB_TAGS_MAX: usize = 100_000;
/// Tags within each other: deeper ones are ignored, their text is not.
pub const WEB_NESTING_MAX: usize = 32;
/// Characters of a page that are shown at once; `offset` shows the next.
pub const WEB_PAGE_CHARS: usize = 30_000;
/// Characters of what is searched for: search engines take no more.
pub const WEB_QUERY_CHARS_MAX: usize = 400;
/// Results of one search.
pub const WEB_RESULTS_MAX: usize = 20;
/// Characters of each line of a result.
pub const WEB_EXCERPT_CHARS: usize = 500;
/// Characters of what a call is about that a person is shown: enough to see what it would do.
pub const QUESTION_CHARS_MAX: usize = 2_000;

/// Hosts that an agent's commands may reach: each is looked at for every connection.
pub const NETWORK_HOSTS_MAX: usize = 100;
/// Connections through the gate of one command at once: a package manager opens dozens.
pub const GATE_CONNECTIONS_MAX: usize = 128;
/// Refused connections of one command that its result tells of: more of them say nothing new.
pub const GATE_REFUSALS_TOLD_MAX: usize = 10;

/// Characters of a permission rule: a pattern is a few words.
pub const RULE_CHARS_MAX: usize = 1_000;
/// Denials that a result tells of: more of them say nothing new.
pub const FORBIDDEN_TOLD_MAX: usize = 10;
/// Bytes of a file that `write` and `edit` handle: what is larger is data, and a program should make it.
pub const WRITTEN_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Changes that one `edit` makes at once.
pub const EDITS_PER_CALL_MAX: usize = 100;

/// MCP servers that settings may name: each may become a process.
pub const MCP_SERVERS_MAX: usize = 64;
/// Tools of one MCP server that are known: as many as one agent may be given.
pub const MCP_TOOLS_MAX: usize = TOOLS_PER_AGENT_MAX;
/// Answers in which a server may list its tools: more than a tool for each.
pub const MCP_TOOL_PAGES_MAX: usize = 200;
/// Characters of what a server says about one tool: models read it with every request.
pub const MCP_DESCRIPTION_CHARS_MAX: usize = 4_000;
/// Bytes of the schema of one tool's input.
pub const MCP_SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Characters of a tool's name: no provider takes a longer one.
pub const TOOL_NAME_CHARS_MAX: usize = 64;
/// Bytes of one message of an MCP server: a picture fits, a film does not.
pub const MCP_MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of what an MCP server complains about that are kept: the end says why it ended.
pub const MCP_COMPLAINT_BYTES_MAX: usize = 4 * 1024;
/// How long an MCP server may take to start, to say hello and to list its tools.
pub const MCP_START_MS: u64 = 30_000;
/// Seconds that a call of an MCP tool may take when the settings do not say.
pub const MCP_CALL_SECONDS_DEFAULT: u64 = 120;
/// The longest that settings may say: shorter than the watchdog's patience with a tool.
pub const MCP_CALL_SECONDS_MAX: u64 = 540;
/// How long an MCP server is kept that nobody calls.
pub const MCP_IDLE_MS: u64 = 300_000;
/// How long an MCP server that could not be reached is not tried again.
pub const MCP_RETRY_MS: u64 = 10_000;

/// Tool calls that one reply may make; more are answered with an error instead of being run.
pub const TOOL_CALLS_PER_REPLY_MAX: usize = 64;

/// How often the same failing call, or the same round of calls, may come in a row before the model is told.
pub const REPETITIONS_TOLD: u32 = 3;
/// How often before the task is stopped: it was told twice by then.
pub const REPETITIONS_STOPPED: u32 = 5;
/// The longest round of turns whose repetition is noticed: stopping it takes twenty turns, of 25 that a task may have.
pub const REPETITION_PERIOD_MAX: usize = 4;

/// Bytes of text in one model reply: a stream without end must not fill the memory.
pub const REPLY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// The hardest task: complexity and ratings go from 1 to this.
pub const COMPLEXITY_MAX: u8 = 5;
/// Characters of a task that are judged for routing: what follows is material, and judging must cost nothing.
pub const CLASSIFIED_CHARS_MAX: usize = 10_000;
/// Characters of a `model_scope`: more than the longest name of a model.
pub const MODEL_SCOPE_CHARS_MAX: usize = 200;
/// Models that may answer in the place of one that cannot: each costs the time of another failure.
pub const FALLBACK_MODELS_MAX: usize = 5;

/// Attempts of one model call after the first (`Retries: at most 5`).
pub const MODEL_RETRIES_MAX: u32 = 5;

/// Tokens that an answer is assumed to have where nothing bounds it: what is set aside for it. Every model can give as
/// many, so a bound below it can be sent to any of them.
pub const OUTPUT_TOKENS_ASSUMED: u64 = 4096;
/// Tokens that are kept back for the last answer of a task whose budget ends: as many as a result may have.
pub const ANSWER_TOKENS_KEPT: u64 = 1000;

/// Tokens of one value in the shared context: distilled state, not data.
pub const CONTEXT_VALUE_TOKENS_MAX: usize = 1000;
/// From here on a write is answered with a warning.
pub const CONTEXT_VALUE_TOKENS_WARN: usize = 800;
/// Tokens of the whole shared context of a session.
pub const CONTEXT_TOKENS_MAX: usize = 10_000;
/// Keys of a session: `list_keys` shows them all, and an empty value has no tokens.
pub const CONTEXT_KEYS_MAX: usize = 1000;
/// Keys of one `read_batch`: together they may hold no more than the whole.
pub const CONTEXT_BATCH_KEYS_MAX: usize = 100;
/// Versions of a key that are kept.
pub const CONTEXT_HISTORY_MAX: usize = 20;
/// Snapshots of a session: each is as large as the whole.
pub const CONTEXT_SNAPSHOTS_MAX: usize = 20;
/// The longest life of a value that expires: a year. What is kept longer is kept.
pub const CONTEXT_TTL_SECONDS_MAX: u64 = 31_536_000;
/// Patterns of participants in one list: they are matched with every look at the key.
pub const CONTEXT_PATTERNS_MAX: usize = 20;
/// Characters of a pattern: more than the longest identity has.
pub const CONTEXT_PATTERN_CHARS_MAX: usize = 160;

/// Tasks on the board of a session: `list` shows them all.
pub const BOARD_TASKS_MAX: usize = 200;
/// Tokens of everything that is written on a board: a model reads it whole.
pub const BOARD_TOKENS_MAX: usize = 20_000;
/// Characters of a subject, and of what is shown in its place while it is worked on: one line of a list.
pub const BOARD_SUBJECT_CHARS_MAX: usize = 200;
/// Characters of a description: as many as a task may have that does it.
pub const BOARD_DESCRIPTION_CHARS_MAX: usize = TASK_TOKENS_MAX * CHARS_PER_TOKEN;
/// Comments on one task of the board: it is a list of work, not a place to talk.
pub const BOARD_COMMENTS_MAX: usize = 50;
/// Characters of one comment.
pub const BOARD_COMMENT_CHARS_MAX: usize = 2000;
/// Characters of a task's metadata, written as JSON.
pub const BOARD_METADATA_CHARS_MAX: usize = 4000;
/// Tasks that one task of the board may be blocked by.
pub const BOARD_BLOCKERS_MAX: usize = 50;
/// Tasks that are kept after the board was cleared, the newest: as many as the board had.
pub const BOARD_ARCHIVED_MAX: usize = 200;

/// Bytes of one JSON request at a door: far above every legal request, far below what hurts.
pub const REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Status calls a second for one task that are answered at once; each further one is held (specification §9.6).
pub const STATUS_CALLS_PER_SECOND: u32 = 20;
/// How long a held status call waits for a change.
pub const STATUS_HOLD_MS: u64 = 1000;
/// What a running task's status suggests as the next look.
pub const POLL_AFTER_MS: u64 = 1000;

/// How long `cancel` waits for proof before it answers what is still alive.
pub const CANCEL_MS_MAX: u64 = 10_000;
/// How long whoever works on a task may take to hear a cancel, before it is killed: longer than a command may take to
/// end, and enough is left to prove that it is gone.
pub const CANCEL_GRACE_MS: u64 = 7_000;

/// Days after their end in which results and logs of tasks are kept: long enough to come back to, short enough to forget.
pub const RETENTION_DAYS: i64 = 30;

/// Worker processes that a task may lose: one may be bad luck, three are the task.
pub const WORKERS_LOST_MAX: u32 = 3;

/// Bytes of one message between a worker process and its parent: more than the largest reply and all tool results of a
/// turn, however they are written.
pub const FRAME_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Levels of the schema of a tool's input that a user wrote: more than anybody calls by hand.
pub const INPUT_SCHEMA_DEPTH_MAX: usize = 16;
/// Parts of such a schema: the model reads all of it in every request.
pub const INPUT_SCHEMA_PARTS_MAX: usize = 500;

/// Bytes of an agent file.
pub const AGENT_FILE_BYTES_MAX: usize = 256 * 1024;
/// Bytes of an agent file's frontmatter.
pub const FRONTMATTER_BYTES_MAX: usize = 16 * 1024;
/// Levels of lists and maps in a frontmatter: a JSON schema written by hand needs a dozen.
pub const FRONTMATTER_DEPTH_MAX: usize = 32;
/// Values in a frontmatter: a tenth of what its bytes could hold, and more than a person writes.
pub const FRONTMATTER_NODES_MAX: usize = 1600;
/// Seconds of wall clock that an agent file may ask for: a year. What takes longer has no limit.
pub const AGENT_TIMEOUT_SECONDS_MAX: u64 = 31_536_000;
/// Agents that one may build upon, one upon the other: each adds its prompt.
pub const EXTENDS_MAX: usize = 8;

/// Agent files in one place: each is offered to the orchestrating model, which reads the list whole.
pub const AGENT_FILES_MAX: usize = 1000;
/// Directories below each other in one place: people sort agents into folders, and a link may lead in circles.
pub const AGENT_DIRECTORY_DEPTH_MAX: usize = 8;
/// Directories in one place: each may be watched.
pub const AGENT_DIRECTORIES_MAX: usize = 100;
/// Entries of one directory that are looked at for agents.
pub const AGENT_DIRECTORY_ENTRIES_MAX: usize = 10_000;

/// Projects that may be trusted: the list is read whole.
pub const TRUSTED_PROJECTS_MAX: usize = 10_000;

/// The limits that a user's settings may move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Running tasks of a session (§4.3).
    pub max_running: u32,
    /// Tasks that the model of a session may start in all: a runaway orchestrator ends here.
    pub max_spawns: u32,
    /// How deep delegation goes; 1 means that subagents do not delegate (§4.5). At most [`Limits::DEPTH_CAP`]; absent
    /// means what the face says, 1 for the native one.
    pub max_depth: Option<u32>,
    /// The highest `max_turns` that is not clamped (§4.4).
    pub max_turns: u32,
    /// US dollars of one task and of those below it, where prices are known; absent means unlimited.
    pub max_cost_usd: Option<f64>,
    /// US dollars of all that a session's model starts, or of one command of a person; absent means unlimited.
    pub session_cost_usd: Option<f64>,
}

impl Limits {
    /// No setting makes delegation deeper than this.
    pub const DEPTH_CAP: u32 = 5;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_running: 5,
            max_spawns: 50,
            max_depth: None,
            max_turns: 25,
            max_cost_usd: Some(1.0),
            session_cost_usd: Some(5.0),
        }
    }
}
