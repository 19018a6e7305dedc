//! Which words are confined to which places, and why those. This is the table to edit.

/// One rule: none of `words` outside `places`.
pub(super) struct Confinement {
    pub(super) rule: &'static str,
    /// Sources of crates whose path begins so are checked.
    pub(super) scope: &'static str,
    pub(super) words: &'static [&'static str],
    pub(super) places: &'static [Place],
    pub(super) advice: &'static str,
}

/// Where the words of a rule are at home.
pub(super) struct Place {
    /// A file, or without `.rs` a module: the file of that name and all files in the folder of that name.
    pub(super) path: &'static str,
    pub(super) reason: &'static str,
}

/// Every rule of this kind.
pub(super) const CONFINEMENTS: &[Confinement] = &[
    Confinement {
        rule: "core-is-pure",
        scope: "crates/locum-core/",
        words: &[
            "async",
            "tokio",
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
            "SystemTime",
            "Instant",
            "Timestamp::now",
            "Zoned::now",
        ],
        places: &[],
        advice: "take the value as an argument and leave the effect to the engine",
    },
    Confinement {
        rule: "one-select",
        scope: "crates/",
        words: &["select!", "tokio::select"],
        places: &[
            Place {
                path: "crates/locum/src/driver/attend.rs",
                reason: "the driver waits for its work and for everything that may end it",
            },
            Place {
                path: "crates/locum/src/attached/line.rs",
                reason: "a parent waits for its worker, for what it runs for it and for what may end it",
            },
            Place {
                path: "crates/locum-cli/src/commands/foreground.rs",
                reason: "a person waits for an answer, watches progress and may interrupt",
            },
            Place {
                path: "crates/locum-cli/src/watch.rs",
                reason: "a screen waits for keys, for what is new and for what was asked for",
            },
            Place {
                path: "crates/locum-cli/src/mcp/call.rs",
                reason: "a client waits for an answer, is told of progress and may give up or leave",
            },
        ],
        advice: "let the driver wait, or give each source its own owned task",
    },
    Confinement {
        rule: "named-spawns",
        scope: "crates/",
        words: &[
            "tokio::spawn",
            "task::spawn",
            "spawn_blocking",
            "spawn_local",
            "thread::spawn",
            "thread::Builder",
            "JoinSet",
            "TaskTracker",
            ".spawn(async",
            ".spawn(move",
            ".spawn(||",
        ],
        places: &[
            Place { path: "crates/locum/src/worker", reason: "owns and joins the tasks that drive claimed work" },
            Place { path: "crates/locum/src/web/gate.rs", reason: "a command's connections; they end with it" },
            Place {
                path: "crates/locum/src/traces.rs",
                reason: "the one teller of traces; whoever finishes waits for it",
            },
            Place { path: "crates/locum/src/pool.rs", reason: "the bounded pool for blocking work of tools" },
            Place { path: "crates/locum/src/store/sqlite/writer.rs", reason: "the one writer thread of the database" },
            Place { path: "crates/locum/src/store/sqlite/reader.rs", reason: "the one reader thread of the database" },
            Place {
                path: "crates/locum-cli/src/serve/connections.rs",
                reason: "owns and joins the connections of the server",
            },
        ],
        advice: "hand the work to the worker or the pool, which join what they start",
    },
    Confinement {
        rule: "one-printer",
        scope: "crates/",
        words: &["println!", "eprintln!", "print!", "eprint!", "dbg!", "anstream::print", "io::stdout", "io::stderr"],
        places: &[
            Place {
                path: "crates/locum-cli/src/output",
                reason: "decides on colour, width and streams for all commands",
            },
            Place {
                path: "crates/locum/src/attached/worker.rs",
                reason: "the standard output of a worker process is its way to its parent, and nothing is printed",
            },
        ],
        advice: "return the text and let the output module of the command line print it",
    },
    Confinement {
        rule: "one-environment-reader",
        scope: "crates/",
        words: &["env::var", "env::var_os", "env::vars", "env::vars_os", "env::set_var", "env::remove_var"],
        places: &[Place {
            path: "crates/locum/src/settings/environment.rs",
            reason: "documents every variable and reads it once",
        }],
        advice: "add the variable to settings and pass the value that is needed",
    },
    Confinement {
        rule: "one-sql-speaker",
        scope: "crates/",
        words: &["rusqlite", "rusqlite_migration"],
        places: &[Place { path: "crates/locum/src/store/sqlite", reason: "the SQLite store" }],
        advice: "ask for it through the store trait",
    },
    Confinement {
        rule: "one-process-starter",
        scope: "crates/",
        words: &["Command::new", "process::Command"],
        places: &[Place {
            path: "crates/locum/src/process",
            reason: "puts every child in its own group and ends the group",
        }],
        advice: "start it through the process module, which also ends it",
    },
    Confinement {
        rule: "one-git-runner",
        scope: "crates/",
        words: &["GIT_DIR", "GIT_CONFIG_COUNT", "Git::find"],
        places: &[Place {
            path: "crates/locum/src/git",
            reason: "runs git so that nothing of a repository's configuration is run",
        }],
        advice: "ask for it through a checkout of the git module",
    },
    Confinement {
        rule: "no-async-trait",
        scope: "crates/",
        words: &["async_trait"],
        places: &[],
        advice: "return a boxed future from the trait method",
    },
];
