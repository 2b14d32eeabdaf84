-- Published figures compared with ours, from the newest audit of each checkpoint, measure and corpus.
CREATE OR REPLACE VIEW published_beside_own AS
SELECT *
FROM published_beside_audit
QUALIFY row_number() OVER (
    PARTITION BY checkpoint_id, measure, corpus ORDER BY finished DESC, audit_id
) = 1;
