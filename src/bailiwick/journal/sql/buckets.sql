-- name: bucket.read
SELECT blocked_until, probe_until FROM bucket WHERE name = ?

-- name: bucket.probe
UPDATE bucket SET probe_until = ? WHERE name = ?

-- name: bucket.block
INSERT INTO bucket (name, blocked_until, probe_until) VALUES (?, ?, 0)
ON CONFLICT (name) DO UPDATE SET blocked_until = max(blocked_until, excluded.blocked_until), probe_until = 0

-- name: bucket.clear
DELETE FROM bucket WHERE name = ?
