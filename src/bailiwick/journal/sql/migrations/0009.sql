-- The files that a definition was pinned with, so that any machine can lay them out again.
CREATE TABLE definition_file (
  definition TEXT NOT NULL REFERENCES definition (digest),
  name TEXT NOT NULL,
  digest TEXT NOT NULL REFERENCES blob (digest),
  executable INTEGER NOT NULL,
  PRIMARY KEY (definition, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX definition_file_digest ON definition_file (digest);
