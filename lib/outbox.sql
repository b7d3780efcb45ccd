-- q_outbox: an application adds jobs inside its own transaction, from any language:
--   INSERT INTO q_outbox(queue, payload [, key, type, entity, priority, due_ms, event_ms]) VALUES(...)
-- A key that is taken adds nothing and aborts nothing.  Installed by qinit --outbox or --into: parsing it
-- costs every program that opens the file about a tenth of a millisecond.

DROP VIEW IF EXISTS q_outbox;
CREATE VIEW q_outbox(queue, payload, key, type, entity, priority, due_ms, event_ms) AS
  SELECT j.queue, b.body, j.key, j.type, j.entity, j.priority, j.due_ms, j.event_ms
    FROM q_job j JOIN q_body b ON b.job = j.id
   WHERE j.finished_ms IS NULL;

CREATE TRIGGER q_outbox_add INSTEAD OF INSERT ON q_outbox BEGIN
  SELECT RAISE(ABORT, 'q_outbox: queue must be 1 to 64 of A-Z a-z 0-9 . _ -, not begin with . or -, and not be a number')
   WHERE typeof(NEW.queue) <> 'text' OR length(CAST(NEW.queue AS BLOB)) NOT BETWEEN 1 AND 64
      OR NEW.queue GLOB '*[^A-Za-z0-9._-]*' OR NEW.queue GLOB '[.-]*' OR NEW.queue NOT GLOB '*[^0-9]*'
      OR instr(NEW.queue, char(0)) > 0;
  SELECT RAISE(ABORT, 'q_outbox: payload must be text or blob, at most 1 MiB')
   WHERE typeof(NEW.payload) NOT IN ('text', 'blob') OR length(CAST(NEW.payload AS BLOB)) > 1048576;
  SELECT RAISE(ABORT, 'q_outbox: key, type and entity must be text, 1 to 255 bytes, without control bytes')
   WHERE EXISTS(SELECT 1 FROM (SELECT NEW.key AS v, 1 AS low UNION ALL SELECT NEW.entity, 1 UNION ALL SELECT NEW.type, 0)
                 WHERE v IS NOT NULL AND (typeof(v) <> 'text' OR length(CAST(v AS BLOB)) NOT BETWEEN low AND 255
                       OR instr(v, char(0)) > 0 OR v GLOB '*[' || char(1) || '-' || char(31) || char(127) || ']*'));
  SELECT RAISE(ABORT, 'q_outbox: priority must be a whole number from 0 to 9')
   WHERE NEW.priority IS NOT NULL AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN 0 AND 9);
  SELECT RAISE(ABORT, 'q_outbox: due_ms and event_ms must be milliseconds since 1970')
   WHERE (NEW.due_ms IS NOT NULL AND (typeof(NEW.due_ms) <> 'integer' OR NEW.due_ms NOT BETWEEN 0 AND 253402300799999))
      OR (NEW.event_ms IS NOT NULL AND (typeof(NEW.event_ms) <> 'integer' OR NEW.event_ms NOT BETWEEN 0 AND 253402300799999));
  INSERT INTO q_job(queue, type, key, entity, priority, due_ms, event_ms, ready_ms, until_ms, added_ms)
    SELECT NEW.queue, coalesce(NEW.type, ''), NEW.key, NEW.entity, coalesce(NEW.priority, 5), due, coalesce(NEW.event_ms, due),
           CASE WHEN NEW.entity IS NULL THEN due END,
           due + (SELECT number FROM q_setting WHERE kind = 'queue' AND name = NEW.queue AND field = 'window'
                     AND number BETWEEN 1 AND 315360000000), now
      FROM (SELECT now, coalesce(NEW.due_ms, now) AS due
              FROM (SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now))
     WHERE NEW.key IS NULL
        OR NOT EXISTS(SELECT 1 FROM q_key k WHERE k.queue = NEW.queue AND k.key = NEW.key
             AND (k.until_ms > now OR EXISTS(SELECT 1 FROM q_job j WHERE j.id = k.job AND j.finished_ms IS NULL)));
  INSERT INTO q_body SELECT last_insert_rowid(), CAST(NEW.payload AS BLOB) WHERE changes() = 1;
  INSERT INTO q_key SELECT NEW.queue, NEW.key, (SELECT max(id) FROM q_job), coalesce((
           SELECT CASE WHEN number BETWEEN 1 AND 9000000000000000
                       THEN number + CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) ELSE number END
             FROM q_setting WHERE kind = 'queue' AND name = NEW.queue AND field = 'keys'), 9223372036854775807)
     WHERE NEW.key IS NOT NULL AND changes() = 1
    ON CONFLICT(queue, key) DO UPDATE SET job = excluded.job, until_ms = excluded.until_ms;
  UPDATE q_job SET head = NULL, ready_ms = NULL
   WHERE queue = NEW.queue AND entity = NEW.entity AND head = 1 AND ready_ms IS NOT NULL
     AND id <> (SELECT id FROM q_job WHERE queue = NEW.queue AND entity = NEW.entity AND finished_ms IS NULL
                 ORDER BY event_ms, id LIMIT 1);
  UPDATE q_job SET head = 1, ready_ms = due_ms
   WHERE id = (SELECT id FROM q_job WHERE queue = NEW.queue AND entity = NEW.entity AND finished_ms IS NULL
                ORDER BY event_ms, id LIMIT 1)
     AND NOT EXISTS(SELECT 1 FROM q_job WHERE queue = NEW.queue AND entity = NEW.entity AND head = 1);
END;
