-- name: spend.total
SELECT amount FROM spend_total WHERE scope = ? AND unit = ?

-- name: spend.add
INSERT INTO spend_total (scope, unit, amount) VALUES (:scope, :unit, :amount)
ON CONFLICT (scope, unit) DO UPDATE SET amount = amount + excluded.amount

-- name: spend.reserve
INSERT INTO spend (scope, unit, key, reserved, settled, known, run_id)
VALUES (:scope, :unit, :key, :amount, NULL, 1, :run_id)
ON CONFLICT (scope, unit, key) DO UPDATE SET reserved = reserved + excluded.reserved

-- name: spend.open
SELECT reserved FROM spend WHERE scope = :scope AND unit = :unit AND key = :key

-- name: spend.settle
INSERT INTO spend (scope, unit, key, reserved, settled, known, run_id)
VALUES (:scope, :unit, :key, 0, :amount, :known, :run_id)
ON CONFLICT (scope, unit, key) DO UPDATE
   SET reserved = 0, settled = coalesce(settled, 0) + excluded.settled, known = min(known, excluded.known)

-- name: spend.read
SELECT scope, key, unit, reserved, settled, known, run_id FROM spend WHERE scope = ? ORDER BY unit, key

-- name: spend.scopes_of
SELECT DISTINCT scope FROM spend WHERE run_id IN (SELECT value FROM json_each(:tree))

-- name: spend.drop
DELETE FROM spend WHERE scope = ?

-- name: spend.drop_total
DELETE FROM spend_total WHERE scope = ?

-- name: spend.of_call
SELECT scope, unit, reserved FROM spend WHERE run_id = :call AND key = :call
