-- Every figure of every summary of the published audits, one a row: what two audits are compared by.
CREATE OR REPLACE VIEW summary_figure AS
SELECT audit_id, summary, item, measure, value
FROM summary_cell
WHERE value IS NOT NULL;
