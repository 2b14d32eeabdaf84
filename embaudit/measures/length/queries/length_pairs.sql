-- Which unrelated long texts look alike?
SELECT
    latest.source, p.corpus, p.rank, round(p.cosine, 4) AS cosine, p.first_tokens, p.second_tokens,
    p.first_label, p.second_label, left(one.text, 60) AS first, left(two.text, 60) AS second
FROM length_pair AS p
JOIN (FROM latest_result WHERE measure = 'length') AS latest USING (audit_id)
JOIN length_summary AS s USING (audit_id, corpus)
LEFT JOIN text AS one ON one.corpus_id = s.corpus_id AND one.position = p.first
LEFT JOIN text AS two ON two.corpus_id = s.corpus_id AND two.position = p.second
ORDER BY latest.source, p.corpus, p.rank, audit_id;
