-- Times are milliseconds since 1970, JSON is that of the core's types, and numbers without a sign keep their bits.

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    next_task INTEGER NOT NULL DEFAULT 1,
    spawned INTEGER NOT NULL DEFAULT 0,
    UNIQUE (project, name)
) STRICT;

CREATE TABLE agents (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    key INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    agent TEXT NOT NULL,
    parent TEXT,
    label TEXT,
    start TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    status TEXT NOT NULL,
    activity TEXT,
    usage TEXT NOT NULL,
    error TEXT,
    reason TEXT,
    completed_at INTEGER,
    collected_at INTEGER,
    -- Nobody holds a task that has ended.
    owner INTEGER,
    epoch INTEGER NOT NULL,
    UNIQUE (session, number)
) STRICT;

-- None of these names a column that changes with every event: such an update touches the table alone.
CREATE INDEX tasks_unfinished ON tasks (session, status, number) WHERE completed_at IS NULL;
CREATE INDEX tasks_uncollected ON tasks (session, number) WHERE collected_at IS NULL;
CREATE INDEX tasks_held ON tasks (owner) WHERE owner IS NOT NULL;
CREATE INDEX tasks_delegated ON tasks (parent) WHERE parent IS NOT NULL;

-- Events of all tasks lie one after the other, so that a commit of many tasks writes few pages.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    UNIQUE (task, seq)
) STRICT;

CREATE TABLE idempotency (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

-- A value that was removed is null; its version goes on counting.
CREATE TABLE context (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT,
    tokens INTEGER NOT NULL,
    written_by TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE owners (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    started TEXT NOT NULL,
    boot TEXT NOT NULL,
    detached INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT;

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    task INTEGER NOT NULL REFERENCES tasks ON DELETE CASCADE,
    command TEXT NOT NULL
) STRICT;

CREATE INDEX inbox_task ON inbox (task);
