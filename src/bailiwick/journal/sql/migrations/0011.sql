-- What a run is: one that people start and list (`run`), or one call of a model (`call`), of which there are many more.
ALTER TABLE run_fact ADD COLUMN kind TEXT NOT NULL DEFAULT 'run';

-- Lists go over one kind: ten thousand calls are not looked at for the newest twenty runs. An index for each, and not
-- one with the kind in front: that would be taken for the way to a run of a name or a tree.
DROP INDEX run_fact_recent;
CREATE INDEX run_fact_recent ON run_fact (created_at, number) WHERE kind = 'run';
CREATE INDEX run_fact_calls ON run_fact (created_at, number) WHERE kind = 'call';
