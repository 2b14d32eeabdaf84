-- Every name under which an audit was requested.
-- The same content under the same settings is one audit, whatever it is called, and the history of a name must not end
-- where another name is audited.
CREATE TABLE IF NOT EXISTS audit_name (
    audit_id          VARCHAR NOT NULL,
    source            VARCHAR NOT NULL,      -- as requested, with a revision if one was given
    asked             TIMESTAMPTZ NOT NULL,  -- when it was last requested under this name
    PRIMARY KEY (audit_id, source)
);
INSERT INTO audit_name
SELECT audit_id, settings ->> '$.source', coalesce(finished, started)
FROM audit
WHERE
    status = 'published' AND (settings ->> '$.source') IS NOT NULL
    AND audit_id NOT IN (SELECT audit_id FROM audit_name);
