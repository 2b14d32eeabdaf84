-- Which written forms are severe in several models, even if their vocabularies differ?
SELECT
    written, continues_word, script, severe_in, checkpoints, round(loss_min, 3) AS loss_min,
    round(loss_max, 3) AS loss_max, sources
FROM sticky_text_across_checkpoints
ORDER BY severe_in DESC, loss_max DESC, written, continues_word
LIMIT 50;
