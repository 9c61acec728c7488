-- name: meta.read
SELECT schema, min_app FROM meta

-- name: event.insert
INSERT INTO event (run_id, seq, type, version, body, at, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: event.read
SELECT seq, type, version, body, at, checksum FROM event WHERE run_id = ? AND seq > ? AND seq <= ? ORDER BY seq

-- name: event.every
SELECT run_id, seq, type, version, body, at, checksum FROM event ORDER BY run_id, seq

-- name: blob.every
SELECT digest, data FROM blob

-- name: wait.open
INSERT INTO wait (run_id, id, scope, node, kind, due_at, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id, id) DO UPDATE SET scope = excluded.scope, node = excluded.node, kind = excluded.kind,
                                       due_at = excluded.due_at, body = excluded.body

-- name: wait.close
DELETE FROM wait WHERE run_id = ? AND id = ?

-- name: definition.keep
INSERT INTO definition (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING

-- name: definition.read
SELECT body FROM definition WHERE digest = ?

-- name: definition.keep_file
INSERT INTO definition_file (definition, name, digest, executable) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: definition.files
SELECT name, digest, executable FROM definition_file WHERE definition = ? ORDER BY name

-- name: inbox.remember
INSERT INTO inbox_seen (run_id, dedupe) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING 1

-- name: inbox.insert
INSERT INTO inbox (run_id, kind, body, at) VALUES (?, ?, ?, ?)

-- name: inbox.consume
DELETE FROM inbox WHERE id = ? AND run_id = ? RETURNING 1

-- name: inbox.read
SELECT id, run_id, kind, body, at FROM inbox WHERE run_id = ? ORDER BY id

-- name: blob.known
SELECT 1 FROM blob WHERE digest = ?

-- name: blob.insert
INSERT INTO blob (digest, data) VALUES (?, ?)

-- name: blob.read
SELECT data FROM blob WHERE digest = ?

-- name: blob.use
INSERT INTO blob_use (run_id, digest) SELECT :run_id, digest FROM blob WHERE digest = :digest ON CONFLICT DO NOTHING

-- name: blob.used_by
SELECT DISTINCT digest FROM blob_use WHERE run_id IN (:each)

-- name: blob.drop_unused
DELETE FROM blob
 WHERE digest IN (:each)
   AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.digest = blob.digest)
   AND NOT EXISTS (SELECT 1 FROM definition_file d WHERE d.digest = blob.digest)
RETURNING digest, data IS NULL
