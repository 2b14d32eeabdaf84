"""Finding: how many documents are cut at the checkpoint's limit?"""

from __future__ import annotations

from collections.abc import Sequence

from embaudit.declared.rule import Finding, Rule

# No checkpoint that is served for texts has a limit as low as this; many that are healthy cut long documents.
TOO_SHORT = 32
RULE = Rule(
    "cut_texts",
    "share of the documents as long as the limit",
    look=0.05,
    problem=0.5,
    is_share=True,
    problem_if=f"from {{problem}}, at a limit of at most {TOO_SHORT} tokens",
    reason="healthy checkpoints cut long documents, but none has the limit of a sentence",
)


def limit_findings(name: str, ids: Sequence[Sequence[int]], limit: int) -> list[Finding]:
    """``problem`` only if the limit is a sentence's: otherwise the documents may just be long.

    Args:
        name: the data set.
        ids: the documents' ids as read; those as long as the limit count as cut.
    """
    share = sum(len(one) >= limit for one in ids) / len(ids)
    level = RULE.level(share)
    level = "look" if level == "problem" and limit > TOO_SHORT else level
    sentence = f"The limit of {limit} tokens cuts {share:.0%} of the documents of {name}."
    return [
        RULE.finding(
            level,
            sentence,
            "What is cut off is in no vector.",
            "Compare max_seq_length in sentence_bert_config.json with the length that it was trained with, or split "
            "the documents.",
            share,
        )
    ]
