-- Small things that several processes change, whole and by version: proposals, consents, limits, tokens.
CREATE TABLE document (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
