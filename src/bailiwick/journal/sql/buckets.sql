-- name: bucket.read
SELECT blocked_until, probe_until FROM bucket WHERE name = ?

-- name: bucket.probe
UPDATE bucket SET probe_until = :until WHERE name = :name AND blocked_until <= :now AND probe_until <= :now RETURNING 1

-- name: bucket.block
INSERT INTO bucket (name, blocked_until, probe_until) VALUES (?, ?, 0)
ON CONFLICT (name) DO UPDATE SET probe_until = 0, blocked_until =
       CASE WHEN bucket.blocked_until > excluded.blocked_until THEN bucket.blocked_until ELSE excluded.blocked_until END

-- name: bucket.clear
DELETE FROM bucket WHERE name = ?
