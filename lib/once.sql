-- What qonce remembers; a file gets this table when qonce is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

CREATE TABLE IF NOT EXISTS q_once(
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE CHECK(length(CAST(key AS BLOB)) BETWEEN 1 AND 255),
  state TEXT NOT NULL CHECK(state = 'started' OR state = 'done' OR state = 'failed'),
                                          -- started without a live hold of its key and fence in q_hold (kind 'once'):
                                          -- nobody knows whether it happened
  fence INTEGER NOT NULL,                 -- of the run that started last; 0: none, it is done by a person's word
  runs INTEGER NOT NULL,                  -- how often a command was started
  started_ms INTEGER,                     -- the last time
  finished_ms INTEGER,                    -- when that ended, or somebody decided; NULL: nobody has told
  exit INTEGER,                           -- its exit status, 128 + N for a signal
  worker TEXT,                            -- who started it, or decided
  reason TEXT,                            -- why it is not done
  output BLOB,                            -- what it wrote to standard output, the first 64 KiB
  output_len INTEGER                      -- ... of so many bytes
) STRICT;
CREATE INDEX IF NOT EXISTS q_once_started ON q_once(state, key) WHERE state = 'started';
