-- One row per checkpoint: the figures to compare checkpoints by, each from the newest result that most of them have too.
CREATE OR REPLACE VIEW leaderboard AS
WITH lead AS (
    SELECT * FROM latest_result WHERE is_lead
),
checkpoint_state AS (
    SELECT
        source, checkpoint_id, max(finished) AS finished,
        string_agg(DISTINCT profile, ', ' ORDER BY profile) AS profile,
        list(DISTINCT audit_id ORDER BY audit_id) AS audits
    FROM lead
    GROUP BY source, checkpoint_id
),
sticky AS (
    SELECT lead.checkpoint_id, max(u) AS u, max(basis) AS basis
    FROM lead JOIN sticky_summary USING (audit_id)
    WHERE lead.measure = 'sticky'
    GROUP BY lead.checkpoint_id
),
worst AS (
    SELECT lead.checkpoint_id, max(loss) AS loss
    FROM lead JOIN sticky_token USING (audit_id)
    WHERE lead.measure = 'sticky'
    GROUP BY lead.checkpoint_id
),
-- Estimated for the whole vocabulary: the number found is limited by the shortlist.
severity AS (
    SELECT lead.checkpoint_id, max(estimated) AS estimated
    FROM lead JOIN sticky_severity USING (audit_id)
    WHERE lead.measure = 'sticky' AND severity = 'moderate'
    GROUP BY lead.checkpoint_id
),
quality AS (
    SELECT lead.checkpoint_id, avg(score) AS score
    FROM lead JOIN quality USING (audit_id)
    WHERE lead.measure = 'quality'
    GROUP BY lead.checkpoint_id
),
socm AS (
    SELECT
        lead.checkpoint_id, avg(socm_mean) AS socm_mean, string_agg(DISTINCT corpus, ', ' ORDER BY corpus) AS corpora
    FROM lead JOIN socm_summary USING (audit_id)
    WHERE lead.measure = 'socm'
    GROUP BY lead.checkpoint_id
)
SELECT
    checkpoint_state.source,
    checkpoint_state.checkpoint_id,
    checkpoint_state.audits,
    checkpoint_state.profile,
    latest_verdict.kind AS verdict,
    round(quality.score, 4) AS quality,
    sticky.u,
    worst.loss AS worst_loss,
    round(severity.estimated) AS strong_or_moderate_tokens,
    sticky.basis,
    round(socm.socm_mean, 4) AS socm_mean,
    socm.corpora AS socm_corpora,
    checkpoint_state.finished
FROM checkpoint_state
LEFT JOIN latest_verdict USING (checkpoint_id)
LEFT JOIN quality USING (checkpoint_id)
LEFT JOIN sticky USING (checkpoint_id)
LEFT JOIN worst USING (checkpoint_id)
LEFT JOIN severity USING (checkpoint_id)
LEFT JOIN socm USING (checkpoint_id);
