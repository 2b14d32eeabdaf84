-- Where in a document may the evidence for a query stand?
SELECT
    latest.source, depth, round(tokens_before) AS tokens_before, queries, round(score, 4) AS score,
    round(gain, 4) AS gain, round(gain_low, 4) AS gain_low, round(gain_high, 4) AS gain_high,
    round(change, 4) AS change, round(change_low, 4) AS change_low, round(change_high, 4) AS change_high,
    round(kept, 3) AS kept, round(won, 3) AS won, round(words_gain, 4) AS words_gain, is_lost
FROM position
JOIN (FROM latest_result WHERE measure = 'position') AS latest USING (audit_id)
ORDER BY latest.source, position.tokens_before NULLS FIRST, depth, audit_id;
