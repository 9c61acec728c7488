-- One run to each name and key that is not set aside: the key itself says so, whoever writes beside us.
CREATE TABLE run_name (
  workflow TEXT NOT NULL,
  run_key TEXT NOT NULL,
  run_id TEXT NOT NULL UNIQUE REFERENCES run (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  PRIMARY KEY (workflow, run_key)
) STRICT, WITHOUT ROWID;

INSERT INTO run_name (workflow, run_key, run_id)
SELECT r.workflow, r.run_key, r.id FROM run r JOIN run_fact f ON f.run_id = r.id
 WHERE f.archived = 0
 ORDER BY f.created_at DESC, f.number DESC
    ON CONFLICT DO NOTHING;
