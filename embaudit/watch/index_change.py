"""What becomes of an index when a watched source has a new revision.

Where the revision before can still be loaded, the two are compared as ``embaudit switch`` does. A folder that was
written over is gone; but its audit left a passport, and the same texts' vectors by both say whether they may be in one
index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.measures.quality.material import sample_material
from embaudit.questions.parity.compare import compare_kind, is_apart, is_rounding
from embaudit.questions.passport.passport import Passport, read_passport
from embaudit.warehouse.tables.watch import IndexVerdict

OTHER_VECTORS: Literal["other vectors"] = "other vectors"


class IndexChange(BaseModel):
    """A row of the table ``index_change``, without the audits.

    Attributes:
        compared: on ``texts`` by both checkpoints, or on the ``canaries`` of both passports.
        median_cosine: of the same text's two vectors; None if they have other dimensions.
    """

    model_config = ConfigDict(frozen=True)

    compared: Literal["texts", "canaries"]
    verdict: IndexVerdict
    line: str
    median_cosine: float | None


def passport_of(reports: Path, checkpoint_id: str) -> Passport | None:
    """The passport that an audit left; None if there is none."""
    path = reports / f"{checkpoint_id}.passport.json"
    return read_passport(path) if path.is_file() else None


def compare_passports(old: Passport, new: Passport) -> IndexChange | None:
    """What the vectors of the texts in both passports say; None if they have none in common."""
    if old.reading.dimension != new.reading.dimension:
        line = f"Rebuild: vectors of {new.reading.dimension} dimensions, where the index has {old.reading.dimension}."
        return IndexChange(compared="canaries", verdict="rebuild", line=line, median_cosine=None)
    after = {one.text: one for one in new.canaries}
    kinds = []
    for kind, some in old.kinds.items():
        both = [one for one in some if one.text in after]
        if both:
            mine, theirs = (
                np.array([one.numbers for one in rows]) for rows in (both, [after[one.text] for one in both])
            )
            kinds.append(compare_kind(kind, [one.text for one in both], mine, theirs, {}))
    if not kinds:
        return None
    texts = [text for kind in kinds for text in kind.texts]
    distances = np.concatenate([kind.distances for kind in kinds])
    median, worst = 1 - float(np.median(distances)), float(distances.max())
    is_same = not any(is_apart(kind) for kind in kinds)
    # As `embaudit switch` says of the texts themselves.
    if is_same or is_rounding(kinds):
        rounded = "" if is_same else ", no more than half precision rounds"
        line = f"Same index: {len(texts)} texts get the same vectors (1 − cosine at most {worst:.1e}{rounded})."
        return IndexChange(compared="canaries", verdict="same index", line=line, median_cosine=median)
    line = (
        f"Other vectors than those in the index: the median cosine of {len(texts)} texts by both revisions is "
        f"{median:.2f}. Keep them apart; what a bridge would hold, and what a cut-off becomes: embaudit switch OLD NEW."
    )
    return IndexChange(compared="canaries", verdict=OTHER_VECTORS, line=line, median_cosine=median)


def switch_revisions(old: str, new: str, options: LoadOptions) -> IndexChange:
    """What ``embaudit switch`` says on the embedded sample.

    Raises:
        EmbauditError: if one of them cannot be loaded, or a vector is not finite.
    """
    # It imports torch.
    from embaudit.embedders.checkpoint import CheckpointFunction
    from embaudit.questions.switch.encode import SearchTexts
    from embaudit.questions.switch.switch import switch_functions

    material = sample_material()
    report = switch_functions(
        CheckpointFunction(load_checkpoint(old, options), old),
        CheckpointFunction(load_checkpoint(new, options), new),
        material.pairs,
        [SearchTexts(one) for one in material.collections],
    )
    median = None if report.same_text is None else report.same_text.median.value
    return IndexChange(compared="texts", verdict=report.verdict, line=report.line, median_cosine=median)
