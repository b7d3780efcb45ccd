-- What qcron knows of its entries; a file gets this table when qcron is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

CREATE TABLE IF NOT EXISTS q_cron(
  id TEXT PRIMARY KEY,                    -- the entry's
  spec TEXT NOT NULL,                     -- its schedule and zone; when they change it begins anew, from now
  file TEXT NOT NULL,                     -- the table that it was in the last time
  mark_ms INTEGER NOT NULL,               -- the last pass that had it: every slot up to here is decided
  from_ms INTEGER NOT NULL,               -- since when its slots count: it was new, changed, or back in the table
  slot_ms INTEGER,                        -- the last slot that became a job,
  job INTEGER,                            -- ... and that job
  missed INTEGER NOT NULL DEFAULT 0,      -- slots so far that became none: missed,
  overlapped INTEGER NOT NULL DEFAULT 0   -- ... or the job before was not settled; and those whose job was replaced
) STRICT, WITHOUT ROWID;
