-- The queue's tables, version 3.  Public: read them with `sqlite3 -readonly`, and see q-schema(5).
-- Run on an older file it adds what is new there (qinit --upgrade), hence IF NOT EXISTS.
-- Times are milliseconds since 1970 UTC, except lease_ms and full_us (boot clock).  CHECKs use OR and not
-- IN(...): a list of three or more builds a temporary b-tree at each execution (10 times the cost
-- of a process's first INSERT).

CREATE TABLE IF NOT EXISTS q_job(
  id INTEGER PRIMARY KEY,                 -- never reused: the newest row is never deleted (trigger below)
  queue TEXT NOT NULL CHECK(queue <> ''),
  type TEXT NOT NULL DEFAULT '',          -- '' is none
  key TEXT CHECK(key <> ''),              -- for people; q_key decides
  entity TEXT CHECK(entity <> ''),
  event_ms INTEGER NOT NULL,              -- order within the entity
  priority INTEGER NOT NULL DEFAULT 5 CHECK(priority BETWEEN 0 AND 9),
  state TEXT NOT NULL DEFAULT 'pending'
    CHECK(state = 'pending' OR state = 'claimed' OR state = 'failed'
       OR state = 'done' OR state = 'dead' OR state = 'cancelled'),
  due_ms INTEGER NOT NULL,                -- when the next attempt is meant to start
  zone TEXT,                              -- the zone its time was meant in
  ready_ms INTEGER,                       -- due_ms while it may be claimed, else NULL
  lease_ms INTEGER,                       -- end of the lease on the boot clock, while claimed
  head INTEGER CHECK(head = 1),           -- 1: the one job of its entity that may run
  fence INTEGER NOT NULL DEFAULT 0,       -- claims so far
  nonce INTEGER,                          -- random half of the last claim's token; NULL: taken away
  generation INTEGER NOT NULL DEFAULT 1,  -- lives: a replay adds one
  spent INTEGER NOT NULL DEFAULT 0,       -- attempts used up in this generation (failed, lost)
  lost INTEGER NOT NULL DEFAULT 0,        -- lost claims in a row
  deferred INTEGER NOT NULL DEFAULT 0,    -- deferrals in a row
  defer_from_ms INTEGER,                  -- since when it is being deferred, moved on by the waits that were asked for
  attempts INTEGER,                       -- retry policy of its own (NULL: the default): how many attempts,
  base_ms INTEGER,                        -- first backoff,
  cap_ms INTEGER,                         -- longest backoff,
  window_ms INTEGER,                      -- no retry later than this
  until_ms INTEGER,                       -- ... which ends here in this generation
  added_ms INTEGER NOT NULL,
  claimed_ms INTEGER,                     -- start of the last claim
  finished_ms INTEGER,                    -- not NULL: done, dead or cancelled
  worker TEXT,                            -- who claimed it last
  last_attempt INTEGER,                   -- newest row in q_attempt
  CHECK((state = 'claimed') = (lease_ms IS NOT NULL)),
  CHECK((state = 'done' OR state = 'dead' OR state = 'cancelled') = (finished_ms IS NOT NULL)),
  CHECK(ready_ms IS NULL OR (ready_ms = due_ms AND (state = 'pending' OR state = 'failed')
                             AND (entity IS NULL OR head = 1))),
  CHECK(entity IS NOT NULL OR (state = 'pending' OR state = 'failed') = (ready_ms IS NOT NULL)),
  CHECK(head IS NULL OR (entity IS NOT NULL AND finished_ms IS NULL))
) STRICT;

-- Partial indexes hold only what is claimable or open, so finished jobs cost the hot path nothing.
CREATE INDEX IF NOT EXISTS q_job_ready ON q_job(queue, priority, ready_ms) WHERE ready_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS q_job_type ON q_job(queue, type, priority, ready_ms) WHERE ready_ms IS NOT NULL AND type <> '';
CREATE INDEX IF NOT EXISTS q_job_lease ON q_job(queue, lease_ms) WHERE lease_ms IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS q_job_head ON q_job(queue, entity) WHERE head = 1;   -- one running job an entity
CREATE INDEX IF NOT EXISTS q_job_entity ON q_job(queue, entity, event_ms) WHERE entity IS NOT NULL AND finished_ms IS NULL;
CREATE INDEX IF NOT EXISTS q_job_failed ON q_job(queue) WHERE state = 'failed';
CREATE INDEX IF NOT EXISTS q_job_dead ON q_job(queue) WHERE state = 'dead';

-- Payloads stand apart, so that a claim never rewrites or reads past one.
CREATE TABLE IF NOT EXISTS q_body(
  job INTEGER PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;

-- Idempotency keys: taken while until_ms lies ahead or the job is unfinished.
CREATE TABLE IF NOT EXISTS q_key(
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  job INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,              -- 0: until the job is settled; largest integer: for ever
  PRIMARY KEY(queue, key)
) STRICT, WITHOUT ROWID;

-- The ledger: one row an attempt, append-only; all reports are made from it.
CREATE TABLE IF NOT EXISTS q_attempt(
  id INTEGER PRIMARY KEY,
  job INTEGER NOT NULL,
  prev INTEGER,                           -- the job's attempt before this one
  generation INTEGER NOT NULL,
  attempt INTEGER NOT NULL,               -- attempts spent before it, plus one
  fence INTEGER NOT NULL,                 -- which claim
  queue TEXT NOT NULL,
  type TEXT NOT NULL,
  due_ms INTEGER NOT NULL,
  zone TEXT,
  started_ms INTEGER NOT NULL,
  finished_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL,                  -- done, failed, deferred, lost, released, superseded
  state TEXT NOT NULL,                    -- what the job became: done, failed, dead, pending
  exit INTEGER,
  signal INTEGER,
  worker TEXT,
  count INTEGER,                          -- what the run says it produced
  reason TEXT,
  result BLOB
) STRICT;

-- Runs that say what they produced: reports look for those of a queue that are unusual.
CREATE INDEX IF NOT EXISTS q_attempt_count ON q_attempt(queue, type, finished_ms, count) WHERE count IS NOT NULL;

-- Finished jobs by queue and state, kept by the triggers below: counting rows would cost with history.
CREATE TABLE IF NOT EXISTS q_count(
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY(queue, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS q_meta(                      -- version: of this schema; boot: whose clock the leases use; fence: of the last hold
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What people set with qset and qpause: queue.mail/reset.slo=10s/99% is 'queue', 'mail/reset', 'slo', '10s/99%'.
CREATE TABLE IF NOT EXISTS q_setting(
  kind TEXT NOT NULL,                     -- queue, rate, expect, credential
  name TEXT NOT NULL,                     -- '' with 'queue' is every queue (only paused)
  field TEXT NOT NULL,                    -- '' with rate and expect: the thing itself
  value TEXT NOT NULL,                    -- as it was given
  number INTEGER,                         -- the same where one number says it: ms, count
  set_ms INTEGER NOT NULL,
  PRIMARY KEY(kind, name, field)
) STRICT, WITHOUT ROWID;

-- The state of rate limits (a token bucket in one number: the generic cell rate algorithm).
CREATE TABLE IF NOT EXISTS q_rate(
  kind TEXT NOT NULL,                     -- 'queue', for that queue alone, or 'rate', shared
  name TEXT NOT NULL,
  full_us INTEGER NOT NULL,               -- when the bucket is full again (boot clock)
  blocked_ms INTEGER NOT NULL DEFAULT 0,  -- nothing passes before (wall clock)
  PRIMARY KEY(kind, name)
) STRICT, WITHOUT ROWID;

-- The newest event done for each entity, in queues with stale=skip.
CREATE TABLE IF NOT EXISTS q_entity(
  queue TEXT NOT NULL,
  entity TEXT NOT NULL,
  event_ms INTEGER NOT NULL,
  PRIMARY KEY(queue, entity)
) STRICT, WITHOUT ROWID;

-- What is held but for claims, until its lease is over; rows that are over count for nothing, and go with the next hold.
CREATE TABLE IF NOT EXISTS q_hold(
  kind TEXT NOT NULL,                     -- 'lock': the name is locked (qlock); 'backfill': a qbackfill works on that plan;
                                          -- 'once': a command of qonce runs; 'rate': one of what rate.NAME.concurrency
                                          -- allows; 'poll': a poller waits for the next token of rate.NAME
  name TEXT NOT NULL,
  fence INTEGER NOT NULL,                 -- greater than that of every hold before
  lease_ms INTEGER NOT NULL,              -- end of the lease on the boot clock
  since_ms INTEGER NOT NULL,
  worker TEXT,
  PRIMARY KEY(kind, name, fence)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS q_job_keep_newest BEFORE DELETE ON q_job
WHEN OLD.id = (SELECT max(id) FROM q_job) BEGIN
  SELECT RAISE(IGNORE);
END;
DROP TRIGGER IF EXISTS q_count_in;
CREATE TRIGGER q_count_in AFTER UPDATE OF finished_ms ON q_job
WHEN NEW.finished_ms IS NOT NULL AND (OLD.finished_ms IS NULL OR OLD.state <> NEW.state) BEGIN
  INSERT INTO q_count VALUES(NEW.queue, NEW.state, 1) ON CONFLICT(queue, state) DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS q_count_back;
CREATE TRIGGER q_count_back AFTER UPDATE OF finished_ms ON q_job
WHEN OLD.finished_ms IS NOT NULL AND (NEW.finished_ms IS NULL OR OLD.state <> NEW.state) BEGIN
  UPDATE q_count SET n = n - 1 WHERE queue = OLD.queue AND state = OLD.state;
END;
CREATE TRIGGER IF NOT EXISTS q_count_out AFTER DELETE ON q_job
WHEN OLD.finished_ms IS NOT NULL BEGIN
  UPDATE q_count SET n = n - 1 WHERE queue = OLD.queue AND state = OLD.state;
END;

INSERT OR REPLACE INTO q_meta VALUES('version', '3');
