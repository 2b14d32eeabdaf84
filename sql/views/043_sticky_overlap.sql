-- For each two audited models: the severe tokens they have in common, among written forms in both vocabularies, and the number expected by chance.
CREATE OR REPLACE VIEW sticky_overlap AS
WITH counted AS (
    SELECT
        own.checkpoint_id,
        other.checkpoint_id AS other_checkpoint_id,
        own.source,
        other.source AS other_source,
        own.parameters,
        other.parameters AS other_parameters,
        count(*) AS shared,
        count(*) FILTER (own.is_severe) AS severe,
        count(*) FILTER (other.is_severe) AS other_severe,
        count(*) FILTER (own.is_severe AND other.is_severe) AS severe_in_both
    FROM sticky_text AS own
    JOIN sticky_text AS other USING (written, continues_word)
    -- Each pair of models once, the smaller one first.
    WHERE (own.parameters, own.checkpoint_id) < (other.parameters, other.checkpoint_id)
    GROUP BY ALL
)
SELECT
    *,
    -- Expected overlap of two independent selections of these sizes (hypergeometric).
    severe * other_severe / shared AS expected_by_chance,
    severe_in_both * shared / nullif(severe * other_severe, 0) AS times_chance,
    severe_in_both / nullif(severe + other_severe - severe_in_both, 0) AS jaccard
FROM counted;
