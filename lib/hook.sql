-- What qhook took in, beside the job that each event became; a file gets this table when qhook is first used with it.
-- Like schema.sql public, and run again by an upgrade.  Times are milliseconds since 1970 UTC.

-- One row an event: what its signature was judged by, so that `qhook --verify` can judge it again.
CREATE TABLE IF NOT EXISTS q_hook(
  job INTEGER PRIMARY KEY,                -- its body is the job's payload, byte for byte
  path TEXT NOT NULL,                     -- which line of the table
  scheme TEXT NOT NULL,
  event TEXT NOT NULL,                    -- its id; with the path it is the job's key
  source TEXT NOT NULL CHECK(source = 'signed' OR source = 'unsigned' OR source = 'body'),
                                          -- of the id: under the signature, beside it, or a digest of the body, for want of one
  secret TEXT NOT NULL,                   -- name of the secret file whose signature it was
  received_ms INTEGER NOT NULL,
  target TEXT NOT NULL,                   -- path and query, as they came
  headers TEXT NOT NULL,                  -- those that the verifier read or the table keeps, "Name: value", one a line
  digest BLOB NOT NULL,                   -- SHA-256 of the body
  note TEXT                               -- what was odd: 'no-id', 'replay?' (this body came before, under another id)
) STRICT;

-- Did this body come before?
CREATE INDEX IF NOT EXISTS q_hook_body ON q_hook(path, digest);

-- Paths of which every request was refused since the last good event: a wrong secret, most often.  While requests come
-- it is at most a minute behind.
CREATE TABLE IF NOT EXISTS q_refused(
  path TEXT PRIMARY KEY,
  n INTEGER NOT NULL,                     -- requests,
  since_ms INTEGER NOT NULL,              -- the first
  last_ms INTEGER NOT NULL,               -- ... and the last of them,
  status INTEGER NOT NULL,                -- what that was answered,
  why TEXT NOT NULL                       -- ... and why
) STRICT, WITHOUT ROWID;
