-- Does each checkpoint find the right text before one that is wrong by a figure, a date, a version or an exclusion?
SELECT
    latest.source, kind, searches, round(found, 3) AS found, round(found_low, 3) AS low,
    round(found_high, 3) AS high, round(words_found, 3) AS words_found, round(margin, 3) AS margin,
    round(right_similarity, 3) AS right_similarity, round(wrong_similarity, 3) AS wrong_similarity
FROM meaning_search
JOIN (FROM latest_result WHERE measure = 'meaning') AS latest USING (audit_id)
ORDER BY latest.source, found, kind, audit_id;
