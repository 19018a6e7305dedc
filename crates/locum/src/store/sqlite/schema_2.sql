-- Values that expire and have readers and writers of their own; their history; snapshots of the whole.

ALTER TABLE context ADD COLUMN expires_at INTEGER;
-- JSON lists of patterns; an empty one means everyone.
ALTER TABLE context ADD COLUMN readable_by TEXT NOT NULL DEFAULT '[]';
ALTER TABLE context ADD COLUMN writable_by TEXT NOT NULL DEFAULT '[]';

-- The last versions of each key, the one in `context` included.
CREATE TABLE context_history (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    written_by TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    expires_at INTEGER,
    readable_by TEXT NOT NULL,
    writable_by TEXT NOT NULL,
    PRIMARY KEY (session, key, version)
) STRICT, WITHOUT ROWID;

INSERT INTO context_history
SELECT session, key, value, written_by, written_at, version, expires_at, readable_by, writable_by
FROM context WHERE value IS NOT NULL;

CREATE TABLE snapshots (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    label TEXT NOT NULL,
    taken_by TEXT NOT NULL,
    taken_at INTEGER NOT NULL,
    keys INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    entries TEXT NOT NULL,
    PRIMARY KEY (session, label)
) STRICT, WITHOUT ROWID;

-- Removing a session removes its tasks, and with each of them what refers to it.
CREATE INDEX idempotency_task ON idempotency (task);
