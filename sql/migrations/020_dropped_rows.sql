-- Why rows of a corpus were dropped.

ALTER TABLE corpus ADD COLUMN first_broken VARCHAR;
