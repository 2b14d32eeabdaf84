-- Change of the average SOCM from backbone to fine-tuned checkpoint, with a paired jackknife interval over texts.
-- With row sums R_i of the differences and their total T, the mean without text i is (T - R_i) / C(N-1, 2).
CREATE OR REPLACE VIEW backbone_socm_change AS
WITH paired AS (
    SELECT link.audit_id, link.backbone_audit_id, own.corpus, own.first, own.second, own.socm - other.socm AS change
    FROM audit_backbone AS link
    JOIN socm_pair AS own ON own.audit_id = link.audit_id
    JOIN socm_pair AS other
        ON other.audit_id = link.backbone_audit_id AND other.corpus = own.corpus
        AND other.first = own.first AND other.second = own.second
    -- Only if the texts are the same: a corpus of the same name may have others.
    WHERE EXISTS (
        SELECT 1 FROM socm_summary AS a JOIN socm_summary AS b USING (corpus_id, corpus, texts)
        WHERE a.audit_id = link.audit_id AND b.audit_id = link.backbone_audit_id AND a.corpus = own.corpus
    )
),
text_sum AS (
    SELECT audit_id, backbone_audit_id, corpus, place, sum(change) AS row_sum
    FROM (
        SELECT audit_id, backbone_audit_id, corpus, first AS place, change FROM paired
        UNION ALL
        SELECT audit_id, backbone_audit_id, corpus, second AS place, change FROM paired
    )
    GROUP BY ALL
),
total AS (
    SELECT audit_id, backbone_audit_id, corpus, count(*) AS n, sum(row_sum) / 2 AS t
    FROM text_sum
    GROUP BY ALL
),
spread AS (
    SELECT
        total.audit_id, total.backbone_audit_id, total.corpus, n, t,
        -- (N-1)/N times the sum of squares about the mean.
        var_pop((t - row_sum) / nullif((n - 1) * (n - 2) / 2.0, 0)) AS variance_of_one
    FROM total
    JOIN text_sum USING (audit_id, backbone_audit_id, corpus)
    GROUP BY ALL
)
SELECT
    audit_id,
    backbone_audit_id,
    corpus,
    n AS texts,
    t / (n * (n - 1) / 2.0) AS change,
    CASE WHEN n >= 4 THEN t / (n * (n - 1) / 2.0) - 1.96 * sqrt((n - 1) * variance_of_one) END AS change_low,
    CASE WHEN n >= 4 THEN t / (n * (n - 1) / 2.0) + 1.96 * sqrt((n - 1) * variance_of_one) END AS change_high
FROM spread;
