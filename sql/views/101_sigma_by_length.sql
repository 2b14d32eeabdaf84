-- sigma_a by layer and length, means over heads, with the published bound; from each checkpoint's newest results.
CREATE OR REPLACE VIEW sigma_by_length AS
WITH newest AS (
    SELECT audit_id, checkpoint_id FROM latest_result WHERE measure = 'length'
)
SELECT
    min(checkpoint.source) AS source, newest.checkpoint_id, newest.audit_id, corpus, layer, length,
    max(tokens) AS tokens, max(texts) AS texts, bool_or(is_causal) AS is_causal, count(*) AS heads,
    avg(sigma_a) AS sigma_a, max(sigma_a) AS sigma_a_max, avg(frobenius) AS frobenius, avg(sigma_s) AS sigma_s,
    avg(sigma_s_centred) AS sigma_s_centred, avg(bound) AS bound, avg(bound_centred) AS bound_centred,
    avg(holds) AS holds, avg(holds_centred) AS holds_centred, avg(sigma_a_value_norm) AS sigma_a_value_norm,
    max(hc_energy) AS hc_energy
FROM length_sigma
JOIN newest USING (audit_id)
JOIN checkpoint USING (checkpoint_id)
GROUP BY newest.checkpoint_id, newest.audit_id, corpus, layer, length;
