-- Tokens of moderate or strong severity, or outliers among the candidates, in several checkpoints that share a vocabulary.
-- Uses each checkpoint's newest search for sticky tokens; a model with two poolings or length limits counts once.
CREATE OR REPLACE VIEW sticky_across_checkpoints AS
WITH vocabulary AS (
    SELECT checkpoint_id, md5(string_agg(token, chr(10) ORDER BY token_id)) AS vocabulary_md5
    FROM token
    GROUP BY checkpoint_id
),
newest AS (
    SELECT audit_id, checkpoint_id FROM latest_result WHERE measure = 'sticky' AND is_lead
),
found AS (
    SELECT
        vocabulary.vocabulary_md5, checkpoint.weights_sha256, checkpoint.source, sticky_token.*
    FROM sticky_token
    JOIN newest USING (audit_id)
    JOIN checkpoint ON checkpoint.checkpoint_id = newest.checkpoint_id
    JOIN vocabulary ON vocabulary.checkpoint_id = newest.checkpoint_id
    WHERE sticky_token.severity IN ('strong', 'moderate')
        OR 'yes' IN (sticky_token.retention_outlier, sticky_token.definition_outlier)
    QUALIFY row_number() OVER (PARTITION BY checkpoint.weights_sha256, token_id ORDER BY loss DESC, source, checkpoint.checkpoint_id) = 1
)
SELECT
    vocabulary_md5,
    token_id,
    min(token) AS token,
    min(origin) AS origin,
    min(script) AS script,
    count(*) AS checkpoints,
    count(*) FILTER (retention_outlier = 'yes') AS outlier_by_retention,
    count(*) FILTER (definition_outlier = 'yes') AS outlier_by_definition,
    count(*) FILTER (severity IN ('strong', 'moderate')) AS strong_or_moderate,
    min(loss) AS loss_min,
    max(loss) AS loss_max,
    list(source ORDER BY loss DESC, source) AS sources
FROM found
GROUP BY vocabulary_md5, token_id
HAVING count(*) > 1;
