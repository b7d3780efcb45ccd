-- What qpoll and qbackfill know; a file gets these tables when one of them is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

-- One row a source (its "name").
CREATE TABLE IF NOT EXISTS q_poll(
  name TEXT PRIMARY KEY,
  gen INTEGER NOT NULL,                   -- commits so far: a run that finds another number has lost to another run
  config TEXT NOT NULL,                   -- digest of what decides which items come
  cursor TEXT,                            -- greatest value that was seen, as it came; NULL: none yet
  cursor_key BLOB,                        -- the same, sortable
  seen_key BLOB,                          -- q_seen has every item at and above this one; NULL: every item
  walk TEXT,                              -- a walk that is under way, JSON; NULL: none
  etag TEXT,                              -- validators of the first page,
  modified TEXT,
  unmodified INTEGER NOT NULL DEFAULT 0,  -- ... and how often in a row they were used
  pointed INTEGER NOT NULL DEFAULT 0,     -- 1: it has shown a pointer to a next page, so one that lacks it is the last
  shown_ms INTEGER,                       -- when the source last showed something new
  probed_ms INTEGER,                      -- when the control query was last asked,
  hidden INTEGER NOT NULL DEFAULT 0       -- ... and how often in a row it showed what the filter hides
) STRICT, WITHOUT ROWID;

-- Items that may come again: those at and above the bound of the next query.
CREATE TABLE IF NOT EXISTS q_seen(
  name TEXT NOT NULL,
  key BLOB NOT NULL,                      -- the item's cursor value, sortable
  ver BLOB NOT NULL,                      -- digest of its id and all of it
  PRIMARY KEY(name, key, ver)
) STRICT, WITHOUT ROWID;

-- One row a run, whatever became of it.
CREATE TABLE IF NOT EXISTS q_poll_run(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL,                  -- new, nothing, unmodified, limited, stopped, failed; unfinished: it goes on, or was killed;
                                          -- set: no run, but somebody who set the cursor
  exit INTEGER NOT NULL,
  http INTEGER,                           -- last HTTP status
  pages INTEGER NOT NULL,
  items INTEGER NOT NULL,                 -- that came, of these
  fresh INTEGER NOT NULL,                 -- new ones, now jobs,
  repeated INTEGER NOT NULL,              -- seen before,
  late INTEGER NOT NULL,                  -- new with a value below the cursor,
  future INTEGER NOT NULL,                -- new with a value in the server's future
  bytes INTEGER NOT NULL,
  waited_ms INTEGER NOT NULL,
  before TEXT,                            -- the cursor before the run
  after TEXT,                             -- ... and after it
  note TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS q_poll_run_name ON q_poll_run(name, id);

-- One row a plan of qbackfill.  Its values are ms since 1970, or whole numbers as they are.
CREATE TABLE IF NOT EXISTS q_backfill(
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK(kind = 'time' OR kind = 'int'),
  start INTEGER NOT NULL,                 -- from here
  stop INTEGER NOT NULL,                  -- to here, which is not in it
  step INTEGER NOT NULL,
  config TEXT NOT NULL,                   -- as in q_poll; '' without a source
  flag TEXT CHECK(flag = 'pause' OR flag = 'stop'),   -- what somebody asked of it
  made_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS q_window(
  name TEXT NOT NULL,
  start INTEGER NOT NULL,
  stop INTEGER NOT NULL,
  state TEXT NOT NULL CHECK(state = 'todo' OR state = 'doing' OR state = 'done' OR state = 'failed'),
  walk TEXT,                              -- where to go on, JSON
  pages INTEGER NOT NULL DEFAULT 0,
  items INTEGER NOT NULL DEFAULT 0,
  fresh INTEGER NOT NULL DEFAULT 0,       -- of these new, now jobs
  finished_ms INTEGER,
  note TEXT,                              -- why it failed
  PRIMARY KEY(name, start)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS q_window_open ON q_window(name, state, start) WHERE state <> 'done';
