-- Which published and which scored names an audited checkpoint goes by.
-- A name is an id (owner/name, without @revision and packaged:), or else its last part. Ids of two owners are two
-- checkpoints; a last part that fits several owners' ids fits none of them.
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
            -- The hub's cache is a local folder that names the checkpoint.
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
-- Never two published checkpoints for one; a checkpoint's scores may come under a long and a short name.
QUALIFY kind = 'scored' OR row_number() OVER (
    PARTITION BY checkpoint_id, kind ORDER BY matched_by, owner IS NULL, name
) = 1;
