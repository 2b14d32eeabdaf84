-- Severity is the verdict on a token; that it stands out from the candidates beside it is called what it is.

ALTER TABLE sticky_validation RENAME COLUMN verdict TO outlier;
UPDATE sticky_validation SET outlier = CASE outlier WHEN 'sticky' THEN 'yes' WHEN 'not_sticky' THEN 'no' ELSE outlier END;
ALTER TABLE sticky_summary RENAME COLUMN sticky TO outliers;
UPDATE regression SET measure = 'outliers' WHERE summary = 'sticky_summary' AND measure = 'sticky';
