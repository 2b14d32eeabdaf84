-- The paper's first experiment as distributions: the effect of appending n copies on a fixed set of pairs.
CREATE OR REPLACE VIEW sticky_shift_by_token AS
SELECT
    shift.audit_id,
    shift.token_id,
    token.token,
    shift.role,
    count(*) AS pairs,
    avg(after - before) AS delta_mean,
    quantile_cont(after - before, 0.05) AS delta_q05,
    quantile_cont(after - before, 0.25) AS delta_q25,
    quantile_cont(after - before, 0.5) AS delta_q50,
    quantile_cont(after - before, 0.75) AS delta_q75,
    quantile_cont(after - before, 0.95) AS delta_q95,
    stddev_pop(after) / nullif(stddev_pop(before), 0) AS compression,
    -- No slope if the similarities before have no spread; regr_slope would give NaN.
    CASE WHEN stddev_pop(before) > 0 THEN regr_slope(after, before) END AS slope
FROM sticky_shift AS shift
JOIN audit USING (audit_id)
JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = shift.token_id
GROUP BY ALL;
