-- Every time that a model was asked, by a call or by a node of a run, in one index: statistics read no journals.

-- `attempt` is the number in a call, or the seq of the event in a run's journal. NULL tokens and cost are unknown, which
-- is not 0; NULL `verified` means that nobody looked. The long texts stand last: what is before them is read without.
CREATE TABLE asked (
  number INTEGER PRIMARY KEY,
  call TEXT REFERENCES call (id) ON DELETE CASCADE,
  run_id TEXT REFERENCES run (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  at REAL NOT NULL,
  skill TEXT NOT NULL,
  model TEXT NOT NULL,
  tier TEXT NOT NULL,
  verdict TEXT NOT NULL,
  verified INTEGER,
  warm_start INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cost REAL,
  size INTEGER NOT NULL,
  feedback TEXT NOT NULL,
  output_summary TEXT NOT NULL,
  runner_output TEXT NOT NULL,
  CHECK ((call IS NULL) <> (run_id IS NULL))
) STRICT;

INSERT INTO asked (call, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms, input_tokens,
                   output_tokens, cost, size, feedback, output_summary, runner_output)
SELECT call, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms, input_tokens, output_tokens,
       cost, size, feedback, output_summary, runner_output
  FROM attempt;

DROP TABLE attempt;
ALTER TABLE asked RENAME TO attempt;

CREATE UNIQUE INDEX attempt_call ON attempt (call, attempt) WHERE call IS NOT NULL;
CREATE UNIQUE INDEX attempt_run ON attempt (run_id, attempt) WHERE run_id IS NOT NULL;
CREATE INDEX attempt_at ON attempt (at);

-- The attempts of nodes, from the journals of before. A session that counts up is counted beyond what it was. What went
-- wrong stays in the journals: it is looked up for a few minutes only, and may hold what is no text to a database.
INSERT INTO attempt (run_id, attempt, at, skill, model, tier, verdict, verified, warm_start, duration_ms, input_tokens,
                     output_tokens, cost, size, feedback, output_summary, runner_output)
WITH ended AS (
  SELECT run_id, seq, at, body ->> '$.key' AS key, body ->> '$.log.session' AS session,
         body ->> '$.failure' IS NULL AS well, body ->> '$.failure.kind' AS kind,
         CAST(round(coalesce(body ->> '$.seconds', 0) * 1000) AS INTEGER) AS duration_ms,
         coalesce(body ->> '$.log.backend', '') AS backend, nullif(body ->> '$.log.model', '') AS model,
         CAST(body ->> '$.log.usage.input' AS INTEGER) AS input,
         CAST(body ->> '$.log.usage.output' AS INTEGER) AS output,
         CAST(body ->> '$.log.usage.usd' AS REAL) AS usd,
         coalesce(body ->> '$.log.usage.cumulative', 0) AS cumulative,
         body -> '$.log.verdict' IS NOT NULL AS routed, nullif(body ->> '$.log.verdict', '') AS verdict,
         body ->> '$.log.skill' AS skill, nullif(body ->> '$.log.candidate', '') AS candidate,
         nullif(body ->> '$.log.tier', '') AS tier, coalesce(body -> '$.log.warm_start', '') AS warm,
         coalesce(body -> '$.log.verified', '') AS verified
    FROM event
   WHERE type = 'EffectFinished' AND CASE WHEN json_valid(body) THEN body -> '$.log.backend' END IS NOT NULL
), told AS (
  SELECT *, CASE WHEN cumulative THEN coalesce(lag(input) OVER earlier, 0) ELSE 0 END AS input_before,
         CASE WHEN cumulative THEN coalesce(lag(output) OVER earlier, 0) ELSE 0 END AS output_before,
         CASE WHEN cumulative THEN coalesce(lag(usd) OVER earlier, 0.0) ELSE 0.0 END AS usd_before
    FROM ended
  WINDOW earlier AS (PARTITION BY run_id, key, session ORDER BY seq)
)
SELECT run_id, seq, at,
       CASE WHEN routed THEN coalesce(skill, '') ELSE '' END,
       coalesce(CASE WHEN routed THEN candidate END, model, '(' || backend || ')'),
       coalesce(CASE WHEN routed THEN tier END,
                CASE WHEN backend IN ('ollama', 'openai', 'simulate') THEN 'local' ELSE 'subagent' END),
       coalesce(verdict, CASE WHEN well THEN 'accept_unverified' ELSE 'error' END),
       CASE WHEN routed AND verified IN ('true', 'false') THEN verified = 'true' END,
       NOT (routed AND warm = 'false'),
       duration_ms,
       max(0, input - input_before),
       max(0, output - output_before),
       CASE WHEN usd IS NOT NULL THEN max(0.0, usd - usd_before)
            WHEN kind IN ('auth', 'billing', 'cap', 'held', 'no_backend', 'overloaded', 'rate_limit', 'spawn',
                          'unreachable') THEN 0.0 END,
       0, '', '', ''
  FROM told
 ORDER BY run_id, seq;
