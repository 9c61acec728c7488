-- name: document.read
SELECT kind, id, version, body FROM document WHERE kind = :kind AND id = :id

-- name: document.listed
SELECT kind, id, version, body FROM document WHERE kind = :kind AND id > :after ORDER BY id LIMIT :most

-- name: document.insert
INSERT INTO document (kind, id, version, body) VALUES (:kind, :id, 1, :body) ON CONFLICT DO NOTHING RETURNING version

-- name: document.replace
UPDATE document SET version = version + 1, body = :body WHERE kind = :kind AND id = :id AND version = :version
RETURNING version

-- name: document.drop
DELETE FROM document WHERE kind = :kind AND id = :id AND version = :version RETURNING version
