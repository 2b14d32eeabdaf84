-- Data for a scatter plot: d_mu against d_sigma for about 2 000 pairs per corpus, always the same ones.
CREATE OR REPLACE VIEW socm_scatter AS
SELECT value.audit_id, value.corpus, value.pair_kind, value.first, value.second, value.d_mu, value.d_sigma, value.socm
FROM socm_value AS value
JOIN socm_summary AS summary USING (audit_id, corpus)
WHERE hash(value.first, value.second) % greatest(1, summary.pairs // 2000)::UBIGINT = 0;
