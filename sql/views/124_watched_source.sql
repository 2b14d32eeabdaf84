-- Each watched source as last seen: its newest revision for each set of settings, and the number of revisions seen.
CREATE OR REPLACE VIEW watched_source AS
SELECT
    watched.*,
    count(*) FILTER (revision <> '') OVER source_of AS revisions,
    (SELECT count(*) FROM regression AS r WHERE r.audit_id = watched.audit_id AND r.is_worse) AS figures_worse,
    (
        SELECT count(*) FROM found_item AS f WHERE f.audit_id = watched.audit_id AND f.accepted IS NULL
    ) AS open_items
FROM watched_revision AS watched
WINDOW source_of AS (PARTITION BY source, parameters_key)
QUALIFY row_number() OVER (
    PARTITION BY source, parameters_key ORDER BY last_seen DESC, first_seen DESC, revision
) = 1;
