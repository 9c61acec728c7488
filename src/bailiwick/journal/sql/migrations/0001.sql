-- The first schema. Later files only add; a change that an older process could not live with raises meta.min_app.

CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  schema INTEGER NOT NULL,
  min_app INTEGER NOT NULL
) STRICT;

INSERT INTO meta (one, schema, min_app) VALUES (1, 1, 1);

CREATE TABLE migration (
  number INTEGER PRIMARY KEY,
  applied_at REAL NOT NULL
) STRICT;

-- The hot row: rewritten by every append, so nothing that lists or people need lives here.
CREATE TABLE run (
  id TEXT PRIMARY KEY,
  workflow TEXT NOT NULL,
  run_key TEXT NOT NULL,
  status TEXT NOT NULL,
  seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  owner TEXT,
  lease_until REAL NOT NULL,
  wake_at REAL,
  priority INTEGER NOT NULL,
  root_id TEXT NOT NULL,
  host TEXT,
  definition TEXT NOT NULL,
  min_reader INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX run_due ON run (priority, wake_at) WHERE status = 'ready' AND wake_at IS NOT NULL;
CREATE INDEX run_free ON run (wake_at) WHERE status = 'ready' AND owner IS NULL AND wake_at IS NOT NULL;
CREATE INDEX run_named ON run (workflow, run_key);

CREATE TABLE run_fact (
  number INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE REFERENCES run (id) ON DELETE CASCADE,
  source TEXT NOT NULL,
  runs_dir TEXT NOT NULL,
  parent TEXT,
  generation INTEGER NOT NULL,
  created_at REAL NOT NULL,
  archived INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX run_fact_parent ON run_fact (parent) WHERE parent IS NOT NULL;

CREATE TABLE run_summary (
  run_id TEXT PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
  body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Which journal leans on which: a fork reads the prefix of the run it was made from.
CREATE TABLE run_ref (
  run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  refers_to TEXT NOT NULL,
  PRIMARY KEY (run_id, refers_to)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
  run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

-- A blob without data is a file beside the database.
CREATE TABLE blob (
  digest TEXT PRIMARY KEY,
  data BLOB
) STRICT;

CREATE TABLE blob_use (
  run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  digest TEXT NOT NULL,
  PRIMARY KEY (run_id, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_use_digest ON blob_use (digest);

CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  at REAL NOT NULL
) STRICT;

CREATE INDEX inbox_run ON inbox (run_id, id);

-- Outlives the message: a sender that tries again after the holder has read it is still a duplicate.
CREATE TABLE inbox_seen (
  run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  dedupe TEXT NOT NULL,
  PRIMARY KEY (run_id, dedupe)
) STRICT, WITHOUT ROWID;

CREATE TABLE wait (
  run_id TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  scope TEXT NOT NULL,
  node TEXT NOT NULL,
  kind TEXT NOT NULL,
  due_at REAL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE definition (
  digest TEXT PRIMARY KEY,
  body TEXT NOT NULL
) STRICT;

-- `reserved` is what is open now, `settled` what all settlements of this key came to.
CREATE TABLE spend (
  scope TEXT NOT NULL,
  unit TEXT NOT NULL,
  key TEXT NOT NULL,
  reserved REAL NOT NULL,
  settled REAL,
  known INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (scope, unit, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX spend_run ON spend (run_id, scope);

-- The sum over a scope, kept so that a reservation costs the same however long the ledger is.
CREATE TABLE spend_total (
  scope TEXT NOT NULL,
  unit TEXT NOT NULL,
  amount REAL NOT NULL,
  PRIMARY KEY (scope, unit)
) STRICT, WITHOUT ROWID;
