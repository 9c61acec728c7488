-- name: spend.total
SELECT amount FROM spend_total WHERE scope = ? AND unit = ?

-- name: spend.take
-- Adds to the total where it stays within the limit; no row where it does not. One statement: two writers can't pass it.
INSERT INTO spend_total (scope, unit, amount)
SELECT :scope, :unit, :amount WHERE CAST(:most AS REAL) IS NULL OR :amount <= :most
ON CONFLICT (scope, unit) DO UPDATE SET amount = spend_total.amount + excluded.amount
 WHERE CAST(:most AS REAL) IS NULL OR spend_total.amount + excluded.amount <= :most
RETURNING amount

-- name: spend.add
INSERT INTO spend_total (scope, unit, amount) VALUES (:scope, :unit, :amount)
ON CONFLICT (scope, unit) DO UPDATE SET amount = spend_total.amount + excluded.amount

-- name: spend.reserve
INSERT INTO spend (scope, unit, key, reserved, settled, known, run_id)
VALUES (:scope, :unit, :key, :amount, NULL, 1, :run_id)
ON CONFLICT (scope, unit, key) DO UPDATE SET reserved = spend.reserved + excluded.reserved

-- name: spend.open
SELECT reserved FROM spend WHERE scope = :scope AND unit = :unit AND key = :key

-- name: spend.settle
INSERT INTO spend (scope, unit, key, reserved, settled, known, run_id)
VALUES (:scope, :unit, :key, 0, :amount, :known, :run_id)
ON CONFLICT (scope, unit, key) DO UPDATE
   SET reserved = 0, settled = coalesce(spend.settled, 0) + excluded.settled,
       known = CASE WHEN spend.known < excluded.known THEN spend.known ELSE excluded.known END

-- name: spend.read
SELECT scope, key, unit, reserved, settled, known, run_id FROM spend WHERE scope = ? ORDER BY unit, key

-- name: spend.spenders
SELECT s.run_id, coalesce(root.workflow, r.workflow, ''), coalesce(c.skill, '')
  FROM (SELECT DISTINCT run_id FROM spend WHERE scope = :scope) s
  LEFT JOIN run r ON r.id = s.run_id LEFT JOIN run root ON root.id = r.root_id LEFT JOIN call c ON c.id = s.run_id
 WHERE r.id IS NOT NULL OR c.id IS NOT NULL
 ORDER BY s.run_id

-- name: spend.scopes_of
SELECT DISTINCT scope FROM spend WHERE run_id IN (:each)

-- name: spend.drop
DELETE FROM spend WHERE scope = ?

-- name: spend.drop_total
DELETE FROM spend_total WHERE scope = ?

-- name: spend.of_call
SELECT scope, unit, reserved FROM spend WHERE run_id = :call AND key = :call
