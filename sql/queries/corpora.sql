-- Which corpora were ingested, and what was dropped?
SELECT * EXCLUDE (ingested), ingested FROM corpus ORDER BY name, ingested, corpus_id;
