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
from embaudit.comparisons.parity.compare import SAME, apart
from embaudit.comparisons.passport.file import read_passport
from embaudit.comparisons.passport.passport import Passport
from embaudit.measures.quality.material import sample_material
from embaudit.tables.watch import IndexVerdict

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
    before, after = ({one.text: one for one in passport.canaries} for passport in (old, new))
    texts = [text for text in before if text in after]
    if not texts:
        return None
    distances = apart(*(np.array([some[text].numbers for text in texts]) for some in (before, after)))
    median = 1 - float(np.median(distances))
    if distances.max() <= SAME:
        line = f"Same index: {len(texts)} texts get the same vectors (1 − cosine at most {distances.max():.1e})."
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
    from embaudit.comparisons.switch.encode import SearchTexts
    from embaudit.comparisons.switch.switch import switch_functions
    from embaudit.functions.checkpoint import CheckpointFunction

    material = sample_material()
    report = switch_functions(
        CheckpointFunction(load_checkpoint(old, options), old),
        CheckpointFunction(load_checkpoint(new, options), new),
        material.pairs,
        [SearchTexts(one) for one in material.collections],
    )
    median = None if report.same_text is None else report.same_text.median.value
    return IndexChange(compared="texts", verdict=report.verdict, line=report.line, median_cosine=median)
