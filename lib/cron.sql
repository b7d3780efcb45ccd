-- What qcron knows of its entries; a file gets this table when qcron is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

CREATE TABLE IF NOT EXISTS q_cron(
  id TEXT PRIMARY KEY,                    -- the entry's
  spec TEXT NOT NULL,                     -- its schedule and zone; when they change it begins anew, from now
  mark_ms INTEGER NOT NULL,               -- every slot up to here is decided; never goes back
  slot_ms INTEGER,                        -- the last slot that became a job,
  job INTEGER,                            -- ... and that job
  missed INTEGER NOT NULL DEFAULT 0,      -- slots so far that became none: too late,
  overlapped INTEGER NOT NULL DEFAULT 0   -- or the job before was not settled
) STRICT, WITHOUT ROWID;
