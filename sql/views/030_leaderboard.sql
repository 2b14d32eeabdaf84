-- One row per checkpoint, from its newest published audit: the figures to compare checkpoints by.
CREATE OR REPLACE VIEW leaderboard AS
SELECT
    latest_audit.source,
    latest_audit.checkpoint_id,
    latest_audit.audit_id,
    latest_audit.profile,
    max(sticky.u) AS u,
    max(worst.loss) AS worst_loss,
    round(max(severity.estimated)) AS strong_or_moderate_tokens,
    max(sticky.basis) AS basis,
    round(avg(socm_summary.socm_mean), 4) AS socm_mean,
    string_agg(DISTINCT socm_summary.corpus, ', ' ORDER BY socm_summary.corpus) AS socm_corpora,
    latest_audit.finished
FROM latest_audit
LEFT JOIN (SELECT audit_id, max(u) AS u, max(basis) AS basis FROM sticky_summary GROUP BY audit_id) AS sticky
    USING (audit_id)
LEFT JOIN (SELECT audit_id, max(loss) AS loss FROM sticky_token GROUP BY audit_id) AS worst USING (audit_id)
-- Estimated for the whole vocabulary: the number found is limited by the shortlist.
LEFT JOIN (SELECT audit_id, estimated FROM sticky_severity WHERE severity = 'moderate') AS severity USING (audit_id)
LEFT JOIN socm_summary USING (audit_id)
GROUP BY ALL;
