-- Every pair with a SOCM value: all pairs of a corpus, and listed pairs.
CREATE OR REPLACE VIEW socm_value AS
SELECT audit_id, corpus, 'all' AS pair_kind, first, second, d_mu, d_sigma, socm FROM socm_pair
UNION ALL
SELECT audit_id, corpus, 'listed' AS pair_kind, first, second, d_mu, d_sigma, socm FROM socm_listed_pair;
