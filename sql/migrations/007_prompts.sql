-- What a checkpoint puts before a text.

ALTER TABLE checkpoint ADD COLUMN prompt VARCHAR;
ALTER TABLE checkpoint ADD COLUMN query_prompt VARCHAR;
ALTER TABLE checkpoint ADD COLUMN document_prompt VARCHAR;
ALTER TABLE checkpoint ADD COLUMN pools_prompt BOOLEAN;
