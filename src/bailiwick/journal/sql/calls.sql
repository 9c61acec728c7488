-- name: call.insert
INSERT INTO call (id, session_id, skill, phase, project, model, by, origin, run, node, started_at, finished_at, status,
                  model_used, file_path, message, why, duration_ms, size, reserved_usd, until, chain, owner)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING RETURNING 1

-- name: call.standing
SELECT status FROM call WHERE id = ?

-- name: call.finish
UPDATE call SET finished_at = :finished_at, status = :status, model_used = :model_used, file_path = :file_path,
                message = :message, why = :why, duration_ms = :duration_ms, owner = NULL
 WHERE id = :id

-- name: call.listed
SELECT id, session_id, skill, phase, project, model, by, origin, run, node, started_at, finished_at, status,
       model_used, file_path, message, why, duration_ms, size, reserved_usd, until, chain, owner
  FROM call
 WHERE started_at >= :since
   AND (:session IS NULL OR session_id = :session)
   AND (:id IS NULL OR id = :id)
 ORDER BY started_at DESC, number DESC LIMIT :most

-- name: attempt.insert
INSERT INTO attempt (call, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms, input_tokens,
                     output_tokens, cost, feedback, output_summary, runner_output, size)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: attempt.listed
SELECT call, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms, input_tokens, output_tokens,
       cost, feedback, output_summary, runner_output, size
  FROM attempt
 WHERE at >= :since
 ORDER BY at, call, attempt

-- name: attempt.of_call
SELECT call, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms, input_tokens, output_tokens,
       cost, feedback, output_summary, runner_output, size
  FROM attempt
 WHERE call = :call AND at >= :since
 ORDER BY attempt

-- name: cooldown.read
SELECT failures, until FROM cooldown WHERE name = ?

-- name: cooldown.keep
INSERT INTO cooldown (name, failures, until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET failures = excluded.failures, until = excluded.until

-- name: cooldown.clear
DELETE FROM cooldown WHERE name = ?
