-- When a run ended: lists of what ended lately look at no other. NULL while it goes on.
ALTER TABLE run_fact ADD COLUMN ended_at REAL;

UPDATE run_fact
   SET ended_at = (SELECT coalesce(s.body ->> '$.ended_at', run_fact.created_at) FROM run r
                     LEFT JOIN run_summary s ON s.run_id = r.id
                    WHERE r.id = run_fact.run_id AND r.status <> 'ready');

CREATE INDEX run_fact_ended ON run_fact (ended_at) WHERE ended_at IS NOT NULL;
