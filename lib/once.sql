-- What qonce remembers; a file gets this table when qonce is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC, lease_ms is on the boot clock.

CREATE TABLE IF NOT EXISTS q_once(
  key TEXT PRIMARY KEY,
  state TEXT NOT NULL CHECK(state = 'started' OR state = 'done' OR state = 'failed'),
                                          -- started and its lease is over: nobody knows whether it happened
  runs INTEGER NOT NULL,                  -- how often its command was started; also the fence of this start
  boot TEXT NOT NULL,                     -- whose clock lease_ms is on
  lease_ms INTEGER NOT NULL,              -- end of the lease of the run that started it last
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER,
  exit INTEGER,                           -- of the last run: exit status, 128+N for a signal
  worker TEXT,
  output BLOB,                            -- what it wrote to standard output, the first 64 KiB,
  output_len INTEGER,                     -- ... of so many bytes
  reason TEXT                             -- why it failed
) STRICT, WITHOUT ROWID;
