-- Lists of runs go by this, page by page: the newest first, without looking at all of them.
CREATE INDEX run_fact_recent ON run_fact (created_at, number);

-- A checksum over the event; NULL where an older version wrote it.
ALTER TABLE event ADD COLUMN checksum INTEGER;
