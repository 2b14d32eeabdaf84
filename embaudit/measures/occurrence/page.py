"""Occurrence on a page: one row per corpus, the severe tokens that occur, and the texts in which they are dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {
    "occurrence_corpora": "SELECT * FROM occurrence_corpus WHERE audit_id = ? ORDER BY corpus",
    "occurrences": (
        "SELECT occurrence.*, token.token FROM occurrence JOIN audit USING (audit_id) "
        "JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = occurrence.token_id "
        "WHERE audit_id = ? AND occurrences > 0 ORDER BY occurrences DESC, corpus, occurrence.token_id"
    ),
    "dense_texts": (
        "SELECT dense.*, token.token, text.text FROM occurrence_text AS dense JOIN audit USING (audit_id) "
        "JOIN token ON token.checkpoint_id = audit.checkpoint_id AND token.token_id = dense.worst_token_id "
        "JOIN audit_corpus ON audit_corpus.audit_id = dense.audit_id AND audit_corpus.name = dense.corpus "
        "LEFT JOIN text ON text.corpus_id = audit_corpus.corpus_id AND text.position = dense.position "
        "WHERE dense.audit_id = ? ORDER BY dense.corpus, dense.rank"
    ),
}
SHOWN = 10
BEGINNING = 100
MOVEMENT = {
    "removal_texts": Column("texts", ",d"),
    "moved": Column("cosine moves by [95 %]", ".3f", ".3f"),
    "ordinary_moved": Column("other tokens", ".3f"),
    "excess": Column("excess [95 %]", "+.3f", "+.3f"),
}
CORPORA = {
    **{"corpus": Column("corpus"), "severe_texts": Column("texts with one", ",d")},
    **{"severe_share": Column("share [95 %]", ".2%", ".2%"), "dense_texts": Column("dense", ",d"), **MOVEMENT},
}
TOKENS = {
    **{"token": Column("token"), "corpus": Column("corpus"), "severity": Column("severity")},
    **{"occurrences": Column("occurrences", ",d"), "per_million": Column("per million", ",.1f")},
    **{"less_frequent": Column("of the vocabulary less frequent", ".0%"), **MOVEMENT},
}
DENSE = {
    **{"corpus": Column("corpus"), "position": Column("row", ",d"), "score": Column("score", ".3f")},
    **{"severe": Column("severe", ",d"), "tokens": Column("of tokens", ",d")},
    **{"token": Column("most often"), "begins": Column("begins")},
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Severe tokens in real texts", list(_parts(facts))) if facts["occurrence_corpora"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    for row in facts["occurrence_corpora"]:
        left_out = f"; left out: {row['unreachable']:,} that no text can produce" if row["unreachable"] else ""
        yield (
            f"{row['corpus']}: {row['tokens']:,} tokens in {row['texts']:,} texts; {row['met']:,} of {row['listed']:,} "
            f"severe tokens occur, {row['severe']:,} times{left_out}."
        )
    yield Table.of(
        CORPORA,
        facts["occurrence_corpora"],
        "Texts that contain severe tokens, and how far removing these moves their cosines",
        more="embaudit query occurrence",
    )
    yield Table.of(
        TOKENS, facts["occurrences"], "Severe tokens that occur", brief=SHOWN, more="embaudit query occurrence"
    )
    yield Table.of(
        DENSE,
        [{**row, "begins": (row["text"] or "")[:BEGINNING]} for row in facts["dense_texts"]],
        "Texts in which severe tokens are dense",
        brief=SHOWN,
        more="embaudit query 'FROM occurrence_text'",
    )
