-- The versions of the packages that a measure's results were computed with, whenever that was.

ALTER TABLE measure_run ADD COLUMN libraries JSON;
