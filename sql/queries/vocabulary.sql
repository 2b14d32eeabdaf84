-- What is the vocabulary made of, and how much of it can occur in a text?
SELECT source, checkpoint_id, category, count(*) AS tokens, count(*) FILTER (is_reachable) AS reachable
FROM token
JOIN checkpoint USING (checkpoint_id)
GROUP BY ALL
ORDER BY source, checkpoint_id, tokens DESC, category;
