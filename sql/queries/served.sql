-- Does each watched endpoint serve the checkpoint that it should, and since when?
SELECT
    endpoint, verdict, checkpoint, worst, kinds_apart, kinds,
    max(asked) FILTER (verdict = 'the same function') OVER of_endpoint AS last_right,
    asked, line
FROM served
WINDOW of_endpoint AS (PARTITION BY endpoint)
QUALIFY row_number() OVER (PARTITION BY endpoint ORDER BY asked DESC) = 1
ORDER BY verdict = 'the same function', endpoint;
