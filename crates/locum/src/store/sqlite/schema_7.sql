-- The places that a queued task waits for are written with it: columns that are generated from the rule are computed for
-- every row that is written, also for the many that are not queued.
DROP INDEX tasks_queued;
ALTER TABLE tasks DROP COLUMN place;
ALTER TABLE tasks DROP COLUMN places;
ALTER TABLE tasks ADD COLUMN place TEXT;
ALTER TABLE tasks ADD COLUMN places INTEGER;
UPDATE tasks SET place = start -> '$.among', places = start ->> '$.running_max' WHERE completed_at IS NULL;
CREATE INDEX tasks_queued ON tasks (session, place, places, number) WHERE status = 'queued';

-- The counts of a session are kept by whoever writes a task: with a trigger each of these statements has a journal of its
-- own, to which it copies every page that it changes.
DROP TRIGGER tasks_accepted;
DROP TRIGGER tasks_changed;
