"""Finding: how many documents are cut at the checkpoint's limit?"""

from __future__ import annotations

from collections.abc import Sequence

from embaudit.declared.finding import Finding, Level

RULE = "cut_texts"
LOOK, PROBLEM = 0.05, 0.5
# No checkpoint that is served for texts has a limit as low as this; many that are healthy cut long documents.
TOO_SHORT = 32


def limit_findings(name: str, ids: Sequence[Sequence[int]], limit: int) -> list[Finding]:
    """``problem`` only if the limit is a sentence's: otherwise the documents may just be long.

    Args:
        name: the data set.
        ids: the documents' ids as read; those as long as the limit count as cut.
    """
    share = sum(len(one) >= limit for one in ids) / len(ids)
    level: Level = "problem" if share >= PROBLEM and limit <= TOO_SHORT else "look" if share >= LOOK else "ok"
    sentence = f"The limit of {limit} tokens cuts {share:.0%} of the documents of {name}."
    if level == "ok":
        return [Finding("ok", sentence, name=RULE, value=share)]
    return [
        Finding(
            level,
            sentence,
            "What is cut off is in no vector.",
            "Compare max_seq_length in sentence_bert_config.json with the length that it was trained with, or split "
            "the documents.",
            RULE,
            share,
        )
    ]
