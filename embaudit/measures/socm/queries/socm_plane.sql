-- How are tokens spread around their means in the pairs with the highest, median and lowest SOCM (points of a plot)?
SELECT
    latest.source, corpus, pair, round(socm, 4) AS socm, position, point, coalesce(token, 'mean') AS token,
    round(x, 4) AS x, round(y, 4) AS y, round(share, 3) AS share
FROM socm_plane
JOIN (FROM latest_result WHERE measure = 'socm') AS latest USING (audit_id)
ORDER BY latest.source, corpus, pair, position, point, audit_id;
