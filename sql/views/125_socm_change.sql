-- How much of a change of the average SOCM remains for texts of equal length: compared with the previous revision, and with the backbone.
CREATE OR REPLACE VIEW socm_change AS
WITH link AS (
    SELECT audit_id, predecessor_audit_id AS other_audit_id, 'predecessor' AS other_is FROM audit_predecessor
    UNION ALL
    SELECT audit_id, backbone_audit_id, 'backbone' FROM audit_backbone
),
whole AS (
    SELECT
        link.*, own.corpus, own.socm_mean - other.socm_mean AS change, own.trace_mean - other.trace_mean AS trace_change
    FROM link
    JOIN socm_summary AS own ON own.audit_id = link.audit_id
    JOIN socm_summary AS other ON other.audit_id = link.other_audit_id AND other.corpus = own.corpus
    -- A corpus of the same name may have other texts.
    WHERE other.corpus_id = own.corpus_id
)
SELECT
    whole.audit_id,
    whole.other_audit_id,
    whole.other_is,
    whole.corpus,
    whole.change,
    whole.trace_change,
    own.tokens,
    own.texts,
    other.texts AS other_texts,
    own.socm_mean - other.socm_mean AS change_at_length,
    own.trace_mean - other.trace_mean AS trace_change_at_length,
    -- MOVER, as for regressions; conservative, since both audits read the same texts.
    abs(own.socm_mean - other.socm_mean) > CASE
        WHEN own.socm_mean >= other.socm_mean
            THEN sqrt((own.socm_mean - own.socm_low) ** 2 + (other.socm_high - other.socm_mean) ** 2)
        ELSE sqrt((own.socm_high - own.socm_mean) ** 2 + (other.socm_mean - other.socm_low) ** 2)
    END AS is_beyond_noise
FROM whole
LEFT JOIN socm_cut AS own ON own.audit_id = whole.audit_id AND own.corpus = whole.corpus
LEFT JOIN socm_cut AS other
    ON other.audit_id = whole.other_audit_id AND other.corpus = whole.corpus AND other.tokens = own.tokens;
