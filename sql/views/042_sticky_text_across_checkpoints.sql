-- Written forms of moderate or strong severity in several models, across different vocabularies.
CREATE OR REPLACE VIEW sticky_text_across_checkpoints AS
SELECT
    written,
    continues_word,
    min(script) AS script,
    -- Models whose vocabulary has it.
    count(*) AS checkpoints,
    count(*) FILTER (is_severe) AS severe_in,
    min(loss) FILTER (is_severe) AS loss_min,
    max(loss) FILTER (is_severe) AS loss_max,
    list(source ORDER BY loss DESC, source) FILTER (is_severe) AS sources
FROM sticky_text
GROUP BY written, continues_word
HAVING count(*) FILTER (is_severe) > 1;
