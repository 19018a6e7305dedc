-- The places that a queued task waits for, as its start rule has them, so that the first of a long queue are found
-- without looking at the rest. They are read from the rule and not kept.
ALTER TABLE tasks ADD COLUMN place TEXT GENERATED ALWAYS AS (json_extract(start, '$.among')) VIRTUAL;
ALTER TABLE tasks ADD COLUMN places INTEGER GENERATED ALWAYS AS (json_extract(start, '$.running_max')) VIRTUAL;

CREATE INDEX tasks_queued ON tasks (session, place, places, number) WHERE status = 'queued';

-- Who has delegated something that has not ended.
CREATE INDEX tasks_below ON tasks (session, parent) WHERE completed_at IS NULL AND parent IS NOT NULL;
