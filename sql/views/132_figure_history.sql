-- Every figure of every audit under each name, with its interval, and its change since the name's audit before.
CREATE OR REPLACE VIEW figure_history AS
SELECT
    named.source,
    named.asked,
    figure.summary,
    figure.item,
    figure.measure,
    figure.value,
    part.low,
    part.high,
    figure.value - lag(figure.value) OVER (
        PARTITION BY named.source, named.question, figure.summary, figure.item, figure.measure
        ORDER BY named.asked, named.audit_id
    ) AS change,
    named.audit_id,
    named.checkpoint_id
FROM summary_figure AS figure
JOIN audit_named AS named USING (audit_id)
LEFT JOIN summary_interval AS part USING (audit_id, summary, item, measure);
