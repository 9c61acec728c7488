-- One row for each credential that is being held back after a limit: until when, and until when somebody probes.
CREATE TABLE bucket (
  name TEXT PRIMARY KEY,
  blocked_until REAL NOT NULL,
  probe_until REAL NOT NULL
) STRICT, WITHOUT ROWID;

