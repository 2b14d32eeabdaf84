-- For what share of texts does Theorem 1, S(X)/|mu(X)|^2 <= C(1+sqrt(lambda))^2 r, hold with each variant of lambda?
SELECT
    newest.source, corpus, layer, texts, holds_head_mean, holds_head_max, holds_head_averaged_attention,
    holds_multi_head_bound, holds_gaussian, holds_contraction
FROM layer_stat
JOIN (SELECT DISTINCT audit_id, source FROM layer_curve) AS newest USING (audit_id)
ORDER BY newest.source, corpus, layer, audit_id;
