-- What qpurge has done and is about to do; a file gets this table when qpurge is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

-- One row a run and queue of which something was to go, and one a run with the queue '': its sums.
CREATE TABLE IF NOT EXISTS q_purge(
  queue TEXT NOT NULL,
  as_of_ms INTEGER NOT NULL,              -- the run: the instant from which ages were counted
  cutoff_ms INTEGER NOT NULL,             -- what was done or cancelled before goes: as_of_ms less what the queue keeps;
                                          -- the marks of earlier runs are not counted again
  marked_ms INTEGER NOT NULL,             -- when; a grace time later it may be deleted
  marked INTEGER NOT NULL,                -- so many jobs were to go then,
  deleted INTEGER NOT NULL DEFAULT 0,     -- ... and so many are gone; replayed ones stay
  done_ms INTEGER,                        -- when that was over
  PRIMARY KEY(queue, as_of_ms)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS q_purge_open ON q_purge(as_of_ms) WHERE done_ms IS NULL;
