-- name: run.columns
-- The columns of a RunRow in its order; put before a FROM that joins run r, run_fact f and run_summary s.
SELECT r.id, r.workflow, r.run_key, r.status, r.seq, r.epoch, r.owner, r.lease_until, r.wake_at, r.priority,
       r.root_id, r.host, r.definition, r.min_reader,
       f.source, f.runs_dir, f.parent, f.generation, f.created_at, f.archived, s.body, f.kind
  FROM run r JOIN run_fact f ON f.run_id = r.id LEFT JOIN run_summary s ON s.run_id = r.id

-- name: run.by_id
 WHERE r.id = :id

-- name: run.by_name
 WHERE r.workflow = :workflow AND r.run_key = :run_key AND f.archived = 0
 ORDER BY f.created_at DESC, f.number DESC LIMIT 1

-- name: run.slot
SELECT f.number, r.workflow || '-' || r.run_key FROM run_fact f JOIN run r ON r.id = f.run_id WHERE f.run_id = ?

-- name: run.reached
SELECT f.number, r.id, r.seq FROM run_fact f JOIN run r ON r.id = f.run_id

-- name: run.slots_of
SELECT number FROM run_fact WHERE run_id IN (:each)

-- name: run.listed_at
SELECT created_at, number FROM run_fact WHERE run_id = ?

-- name: run.held
 WHERE r.status = 'ready' AND r.wake_at <= :now AND r.owner IS NOT NULL AND r.lease_until > :now AND f.kind = 'run'
   AND (CAST(:run_id AS TEXT) IS NULL OR r.id = :run_id)
   AND (CAST(:root_id AS TEXT) IS NULL OR r.root_id = :root_id)
 ORDER BY r.priority, r.wake_at, r.id

-- name: run.next_wake
SELECT wake_at FROM run
 WHERE status = 'ready' AND owner IS NULL AND wake_at IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM run_fact f WHERE f.run_id = run.id AND f.kind = 'call')
 ORDER BY wake_at LIMIT 1

-- name: run.insert
INSERT INTO run (id, workflow, run_key, status, seq, epoch, owner, lease_until, wake_at, priority, root_id, host,
                 definition, min_reader)
VALUES (:id, :workflow, :run_key, 'ready', :seq, 0, NULL, 0, :created_at, :priority, :root_id, NULL,
        :definition, :min_reader)
ON CONFLICT (id) DO NOTHING RETURNING 1

-- name: run.insert_fact
INSERT INTO run_fact (run_id, source, runs_dir, parent, generation, created_at, kind)
VALUES (:id, :source, :runs_dir, :parent, :generation, :created_at, :kind)

-- name: run.summarise
INSERT INTO run_summary (run_id, body) VALUES (?, ?) ON CONFLICT (run_id) DO UPDATE SET body = excluded.body

-- name: run.claim
UPDATE run SET epoch = epoch + 1, owner = :owner, lease_until = :lease_until
 WHERE id = (SELECT id FROM run
              WHERE status = 'ready' AND wake_at <= :now AND min_reader <= :reader
                AND id NOT IN (:each)
                AND (host IS NULL OR host = :host)
                AND (CAST(:run_id AS TEXT) IS NULL OR id = :run_id)
                AND (CAST(:root_id AS TEXT) IS NULL OR root_id = :root_id)
                AND (owner IS NULL OR lease_until <= :now OR epoch = :dead)
                AND NOT EXISTS (SELECT 1 FROM run_fact f WHERE f.run_id = run.id AND f.kind = 'call')
              ORDER BY priority, wake_at, id LIMIT 1)
RETURNING id

-- name: run.hold
UPDATE run SET epoch = epoch + 1, owner = :owner, lease_until = :lease_until WHERE id = :id RETURNING epoch

-- name: run.seize
UPDATE run SET epoch = epoch + 1, owner = :owner, lease_until = :lease_until
 WHERE id = :id AND epoch = :epoch AND owner IS NOT NULL AND status = 'ready'
RETURNING 1

-- name: run.renew
UPDATE run SET lease_until = ? WHERE id = ? AND epoch = ? AND owner IS NOT NULL RETURNING 1

-- name: run.release
UPDATE run SET owner = NULL, lease_until = 0, wake_at = ? WHERE id = ? AND epoch = ? AND owner IS NOT NULL RETURNING 1

-- name: run.wake_for_inbox
-- What came while the run was held must not be slept over: order of sending and letting go makes no difference.
UPDATE run SET status = 'ready', wake_at = CASE WHEN wake_at < came.at THEN wake_at ELSE came.at END
  FROM (SELECT min(at) AS at FROM inbox WHERE run_id = :id) came
 WHERE run.id = :id AND came.at IS NOT NULL

-- name: run.wake
UPDATE run SET status = 'ready', wake_at = CASE WHEN wake_at < :at THEN wake_at ELSE :at END WHERE id = :id

-- name: run.advance
UPDATE run SET seq = ? WHERE id = ? AND epoch = ? AND seq = ? RETURNING 1

-- name: run.place
SELECT epoch, seq FROM run WHERE id = ?

-- name: run.alter
-- An empty host unbinds the run.
UPDATE run SET status = coalesce(:status, status), definition = coalesce(:definition, definition),
               min_reader = coalesce(:min_reader, min_reader), host = nullif(coalesce(:host, host), '')
 WHERE id = :id

-- name: run.ended
UPDATE run_fact SET ended_at = :at WHERE run_id = :id

-- name: run.standing
SELECT r.status, f.archived FROM run r JOIN run_fact f ON f.run_id = r.id WHERE r.id = ?

-- name: run.name
INSERT INTO run_name (workflow, run_key, run_id) VALUES (:workflow, :run_key, :id) ON CONFLICT DO NOTHING RETURNING 1

-- name: run.of_name
SELECT run_id FROM run_name WHERE workflow = :workflow AND run_key = :run_key

-- name: run.free_name
DELETE FROM run_name WHERE run_id = ?

-- name: run.archive
UPDATE run_fact SET archived = 1 WHERE run_id = ?

-- name: run.tree
WITH RECURSIVE tree (id) AS (
  SELECT :id UNION SELECT f.run_id FROM run_fact f JOIN tree ON f.parent = tree.id
)
SELECT r.id, r.status FROM tree JOIN run r ON r.id = tree.id

-- name: run.referred
SELECT run_id, refers_to FROM run_ref WHERE refers_to IN (:each) ORDER BY run_id

-- name: run.refer
INSERT INTO run_ref (run_id, refers_to) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: run.delete
DELETE FROM run WHERE id IN (:each)
