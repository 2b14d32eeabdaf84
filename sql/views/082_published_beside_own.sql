-- Published figures beside ours: of each checkpoint, measure and corpus the newest audit that has it.
CREATE OR REPLACE VIEW published_beside_own AS
SELECT *
FROM published_beside_audit
QUALIFY row_number() OVER (
    PARTITION BY checkpoint_id, measure, corpus ORDER BY finished DESC, audit_id
) = 1;
