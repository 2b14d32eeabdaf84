-- The length curves, one row per bin and condition, with the rise from the first bin; from each checkpoint's newest results.
CREATE OR REPLACE VIEW length_curve AS
WITH newest AS (
    SELECT audit_id, checkpoint_id FROM latest_result WHERE measure = 'length'
)
SELECT
    checkpoint.source, newest.checkpoint_id, bin.audit_id, bin.corpus, bin.condition, bin.low, bin.high, bin.length,
    bin.beyond_limit, bin.texts, bin.cosine_mean, bin.cosine_low, bin.cosine_high,
    bin.cosine_mean - rise.first_cosine AS risen
FROM length_bin AS bin
JOIN newest USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
LEFT JOIN length_rise AS rise USING (audit_id, corpus, condition);
