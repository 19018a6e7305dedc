-- The board: each task as JSON of the core's type. What was archived is kept for a while.
CREATE TABLE board (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    task TEXT NOT NULL,
    PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;
