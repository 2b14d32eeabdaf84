-- Every look at every watched endpoint, and where its verdict changed.
CREATE OR REPLACE VIEW endpoint_history AS
SELECT
    endpoint,
    asked,
    verdict,
    verdict IS DISTINCT FROM lag(verdict) OVER of_endpoint AS is_other_verdict,
    worst,
    kinds_apart,
    kinds,
    checkpoint,
    line,
    look_key
FROM served
WINDOW of_endpoint AS (PARTITION BY endpoint ORDER BY asked, look_key);
