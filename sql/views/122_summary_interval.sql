-- The 95 % intervals of the summary figures that have one: what a change from one audit to the next is measured against.
CREATE OR REPLACE VIEW summary_interval AS
SELECT audit_id, 'socm_summary' AS summary, corpus AS item, 'socm_mean' AS measure, socm_low AS low, socm_high AS high
FROM socm_summary
UNION ALL
SELECT audit_id, 'layer_stat', corpus || ', layer ' || layer, 'within_text_cosine', within_text_cosine_low, within_text_cosine_high
FROM layer_stat
UNION ALL
SELECT audit_id, 'layer_stat', corpus || ', layer ' || layer, 'normalised_spread', normalised_spread_low, normalised_spread_high
FROM layer_stat
UNION ALL
-- Of the token whose loss is the worst; of several, of the first in the vocabulary.
SELECT audit_id, 'sticky_token', 'retention', 'worst_loss', 
    first(loss_low ORDER BY loss DESC, token_id), first(loss_high ORDER BY loss DESC, token_id)
FROM sticky_token
GROUP BY audit_id;
