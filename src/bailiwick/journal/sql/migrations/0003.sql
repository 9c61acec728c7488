-- Calls that were routed over a chain of models, each model's try, and endpoints that are left alone for a while.

-- `number` keeps the order of arrival where two calls began in the same moment.
CREATE TABLE call (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  session_id TEXT NOT NULL,
  skill TEXT NOT NULL,
  phase TEXT NOT NULL,
  project TEXT NOT NULL,
  model TEXT NOT NULL,
  by TEXT NOT NULL,
  origin TEXT NOT NULL,
  run TEXT NOT NULL,
  node TEXT NOT NULL,
  started_at REAL NOT NULL,
  finished_at REAL,
  status TEXT NOT NULL,
  model_used TEXT NOT NULL,
  file_path TEXT NOT NULL,
  message TEXT NOT NULL,
  why TEXT NOT NULL,
  duration_ms INTEGER,
  size INTEGER NOT NULL,
  reserved_usd REAL NOT NULL,
  until REAL,
  chain TEXT NOT NULL,
  owner TEXT
) STRICT;

CREATE INDEX call_started ON call (started_at);
CREATE INDEX call_session ON call (session_id) WHERE session_id <> '';

-- NULL tokens and cost are unknown, which is not 0; NULL `verified` means that nobody looked.
CREATE TABLE attempt (
  call TEXT NOT NULL REFERENCES call (id) ON DELETE CASCADE,
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
  feedback TEXT NOT NULL,
  output_summary TEXT NOT NULL,
  runner_output TEXT NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY (call, attempt)
) STRICT, WITHOUT ROWID;

CREATE INDEX attempt_at ON attempt (at);

CREATE TABLE cooldown (
  name TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;
