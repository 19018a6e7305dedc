-- A row of `events` may hold several events of its task, as a list of times and events; its number and its time are
-- those of the first.

-- Counted where tasks change, so that nobody has to count them for every decision.
ALTER TABLE sessions ADD COLUMN unfinished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN running INTEGER NOT NULL DEFAULT 0;

UPDATE sessions SET
    unfinished = (SELECT count(*) FROM tasks WHERE session = sessions.id AND completed_at IS NULL),
    running = (SELECT count(*) FROM tasks WHERE session = sessions.id AND completed_at IS NULL AND status = 'running');

CREATE TRIGGER tasks_accepted AFTER INSERT ON tasks BEGIN
    UPDATE sessions SET
        unfinished = unfinished + (new.completed_at IS NULL),
        running = running + (new.status = 'running')
    WHERE id = new.session;
END;

-- Not for the updates of a running task that goes on: they name neither column.
CREATE TRIGGER tasks_changed AFTER UPDATE OF status, completed_at ON tasks BEGIN
    UPDATE sessions SET
        unfinished = unfinished + (new.completed_at IS NULL) - (old.completed_at IS NULL),
        running = running + (new.status = 'running') - (old.status = 'running')
    WHERE id = new.session;
END;
