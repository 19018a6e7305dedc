-- What tasks spend from together with others: the session, a command of a person, a task with those below it.

-- Tasks that models started outside of a person's command: what the limit of a session counts.
ALTER TABLE sessions ADD COLUMN delegated INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET delegated = spawned;

-- What was drawn from each, by tasks that have ended and by those that have not. Money is in billionths of a dollar.
CREATE TABLE purses (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    key TEXT NOT NULL,
    input INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0,
    money INTEGER NOT NULL DEFAULT 0,
    spawned INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

-- What each task holds of its purses: spent, and set aside for the request under way.
CREATE TABLE drawn (
    task INTEGER PRIMARY KEY REFERENCES tasks ON DELETE CASCADE,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    money INTEGER NOT NULL
) STRICT;
