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

-- name: call.columns
-- The columns of a CallRow in its order.
SELECT id, session_id, skill, phase, project, model, by, origin, run, node, started_at, finished_at, status,
       model_used, file_path, message, why, duration_ms, size, reserved_usd, until, chain, owner
  FROM call

-- name: attempt.insert
INSERT INTO attempt (call, run_id, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms,
                     input_tokens, output_tokens, cost, size, feedback, output_summary, runner_output)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: attempt.listed
-- Without the texts that may be long. A run goes by the name of what was started.
SELECT coalesce(a.call, ''), a.attempt, a.at, a.skill, a.model, a.tier, a.verdict, a.verified, a.warm_start,
       a.duration_ms, a.input_tokens, a.output_tokens, a.cost, a.feedback, '', '', a.size,
       coalesce(a.run_id, ''), coalesce(root.workflow, r.workflow, '')
  FROM attempt a LEFT JOIN run r ON r.id = a.run_id LEFT JOIN run root ON root.id = r.root_id
 WHERE a.at >= :since
 ORDER BY a.at, a.call, a.run_id, a.attempt

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
