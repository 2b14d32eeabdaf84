"""What is done to queries, or to documents, alone: a prompt of theirs, or a step of the client that only one has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.comparisons.parity.compare import LEFT, KindDifference
from embaudit.comparisons.parity.explain import Explanation, explain
from embaudit.comparisons.parity.texts import ROLES


def explain_roles(
    checkpoint: Checkpoint,
    texts: Mapping[str, Sequence[str]],
    apart: Sequence[KindDifference],
    theirs: Mapping[str, np.ndarray],
    plainly: Explanation | None,
) -> dict[str, Explanation]:
    """By role, how the checkpoint would have to be used to give the other's vectors of queries, or of documents.

    Args:
        texts: by kind.
        apart: the kinds that differ; those that are asked for as something are explained.
        theirs: (n, D) the other's vectors by kind.
        plainly: what explains the texts that are asked for as nothing in particular. It is not looked for again where
            it explains these, too.
    """
    found: dict[str, Explanation] = {}
    own_kind = {text: kind for kind, some in texts.items() if kind not in ROLES for text in some}
    for one in apart:
        if one.kind not in ROLES:
            continue
        vectors = theirs[one.kind]
        if plainly is not None and plainly.leaves is not None and plainly.sentences:
            left = plainly.leaves(one.texts, vectors)
            known = left[np.isfinite(left)]
            if len(known) and known.max() <= LEFT:
                found[one.kind] = replace(plainly, left={one.kind: float(known.max())})
                continue
        places: dict[str, list[int]] = {}
        for place, text in enumerate(one.texts):
            places.setdefault(own_kind[text], []).append(place)
        found[one.kind] = explain(
            checkpoint.reading(ROLES[one.kind]),
            {kind: [one.texts[place] for place in some] for kind, some in places.items()},
            {kind: vectors[some] for kind, some in places.items()},
        )
    return found
