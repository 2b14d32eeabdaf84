-- Do larger models have fewer sticky tokens?
SELECT
    source, parameters, layers, hidden_size, vocabulary_size, searched, round(moderate, 1) AS moderate,
    round(moderate_low, 1) AS moderate_low, round(moderate_high, 1) AS moderate_high,
    round(moderate_share, 5) AS moderate_share, round(worst_loss, 3) AS worst_loss, round(u, 4) AS u
FROM sticky_size
ORDER BY parameters, source, checkpoint_id;
