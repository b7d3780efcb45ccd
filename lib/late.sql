-- What qlate remembers between its runs; a file gets these tables at the first `qlate --prom` or `--check --every`.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

-- Counters that only grow, whatever qpurge deletes: all attempts up to 'upto' (of queue '') are in them.
CREATE TABLE IF NOT EXISTS q_total(
  queue TEXT NOT NULL,
  name TEXT NOT NULL,                     -- done, failed, ..., late; wait_ms and run_ms: sums; wait_N, run_N: in the N-th bucket
  n INTEGER NOT NULL,
  PRIMARY KEY(queue, name)
) STRICT, WITHOUT ROWID;

-- What --check --every told last, so that it is not told again too soon.
CREATE TABLE IF NOT EXISTS q_told(
  id TEXT PRIMARY KEY,                    -- of --id, and a line for each queue that was asked for
  digest TEXT NOT NULL,                   -- which problems there were, a line each
  told_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
