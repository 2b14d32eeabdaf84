-- Does sigma_a fall with length, and does the published bound on it hold?
SELECT
    source, corpus, layer, length, texts, is_causal, round(sigma_a, 4) AS sigma_a, round(frobenius, 4) AS frobenius,
    round(sigma_s, 4) AS sigma_s, round(sigma_s_centred, 4) AS sigma_s_centred, round(bound, 4) AS bound,
    round(bound_centred, 4) AS bound_centred, round(holds, 3) AS holds, round(holds_centred, 3) AS holds_centred,
    round(sigma_a_value_norm, 4) AS sigma_a_value_norm, round(hc_energy, 4) AS hc_energy
FROM sigma_by_length
ORDER BY source, corpus, layer, length, audit_id;
