-- Names under which an audited checkpoint appears among published figures and among downstream scores.
-- Names match by id (owner/name, without @revision and packaged:), otherwise by their last part. Ids with different
-- owners are different checkpoints; a last part that fits ids of several owners matches none of them.
CREATE OR REPLACE VIEW checkpoint_match AS
WITH written AS (
    SELECT 'audited' AS kind, checkpoint_id, source AS name FROM checkpoint
    UNION ALL
    SELECT DISTINCT 'published' AS kind, NULL AS checkpoint_id, checkpoint AS name FROM published_figure
    UNION ALL
    SELECT DISTINCT 'scored' AS kind, NULL AS checkpoint_id, checkpoint AS name FROM downstream_score
),
cleaned AS (
    SELECT
        kind, checkpoint_id, name,
        lower(CASE
            -- A folder in the hub's cache contains the checkpoint's id.
            WHEN regexp_matches(name, 'models--.+--.+/snapshots/[^/]+/?$')
                THEN regexp_replace(name, '^.*models--(.+?)--(.+)/snapshots/[^/]+/?$', '\1/\2')
            ELSE regexp_replace(rtrim(regexp_replace(name, '^packaged:', ''), '/'), '@[^/]*$', '')
        END) AS id
    FROM written
),
named AS (
    SELECT
        *, regexp_extract(id, '[^/]*$') AS last_part,
        CASE WHEN regexp_matches(id, '^[^/.~][^/]*/[^/]+$') THEN split_part(id, '/', 1) END AS owner
    FROM cleaned
),
found AS (
    SELECT
        own.checkpoint_id, other.kind, other.name, other.owner,
        CASE
            WHEN own.id = other.id AND (own.owner IS NOT NULL OR own.name = other.name) THEN 'id' ELSE 'name'
        END AS matched_by
    FROM named AS own
    JOIN named AS other ON other.last_part = own.last_part
    WHERE own.kind = 'audited' AND other.kind <> 'audited' AND own.last_part <> ''
        AND (own.id = other.id OR own.owner IS NULL OR other.owner IS NULL)
    QUALIFY count(DISTINCT other.owner) OVER (PARTITION BY own.checkpoint_id, other.kind) <= 1
)
SELECT checkpoint_id, kind, name, matched_by
FROM found
-- At most one published checkpoint each; scores may exist under a long and a short name.
QUALIFY kind = 'scored' OR row_number() OVER (
    PARTITION BY checkpoint_id, kind ORDER BY matched_by, owner IS NULL, name
) = 1;
