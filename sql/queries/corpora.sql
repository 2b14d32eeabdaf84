-- Which corpora were ingested, and what was dropped on the way?
SELECT * EXCLUDE (ingested), ingested FROM corpus ORDER BY name, ingested, corpus_id;
