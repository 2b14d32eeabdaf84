-- Every entry of each audited model's vocabulary that can occur in a text, by its written form: comparable across vocabularies.
-- WordPiece's ##, SentencePiece's ▁ and byte-level BPE's Ġ only mark word boundaries: what counts is the decoded text, and
-- whether it continues a word. Of several entries with the same written form, the worst counts; of several audits of a
-- model (poolings, prompts, length limits), the newest.
CREATE OR REPLACE VIEW sticky_text AS
WITH newest AS (
    SELECT audit.audit_id, audit.checkpoint_id, checkpoint.weights_sha256, checkpoint.source, checkpoint.parameters
    FROM latest_result AS audit
    JOIN checkpoint ON checkpoint.checkpoint_id = audit.checkpoint_id
    WHERE audit.measure = 'sticky' AND audit.is_lead
    QUALIFY row_number() OVER (PARTITION BY weights_sha256 ORDER BY finished DESC, audit_id) = 1
),
entry AS (
    SELECT
        newest.*, token.token_id, token.token, token.script,
        ltrim(regexp_replace(token.text, '^##', '')) AS written,
        token.origin = 'subword' AS continues_word
    FROM newest
    JOIN token ON token.checkpoint_id = newest.checkpoint_id
    WHERE token.is_reachable OR token.category = 'special'
)
SELECT
    entry.audit_id,
    entry.checkpoint_id,
    entry.source,
    entry.parameters,
    entry.written,
    entry.continues_word,
    min(entry.script) AS script,
    max(validated.loss) AS loss,
    coalesce(bool_or(validated.severity IN ('strong', 'moderate')), false) AS is_severe
FROM entry
LEFT JOIN sticky_validation AS validated
    ON validated.audit_id = entry.audit_id AND validated.token_id = entry.token_id
    AND validated.protocol = 'retention' AND validated.role = 'candidate'
WHERE entry.written <> ''
GROUP BY entry.audit_id, entry.checkpoint_id, entry.source, entry.parameters, entry.written, entry.continues_word;
