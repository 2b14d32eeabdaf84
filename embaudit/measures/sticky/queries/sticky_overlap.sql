-- Do two models have the same severe tokens, even if their vocabularies and sizes differ?
SELECT
    source, other_source, parameters, other_parameters, shared, severe, other_severe, severe_in_both,
    round(expected_by_chance, 2) AS expected_by_chance, round(times_chance, 1) AS times_chance,
    round(jaccard, 3) AS jaccard
FROM sticky_overlap
ORDER BY severe_in_both DESC, source, other_source, checkpoint_id, other_checkpoint_id;
