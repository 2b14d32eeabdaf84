"""Hard negatives compared with random pairs of the same queries and passages, as a step on part of a list."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from embaudit.corpora.draw import Draw, content_order, pair_text
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.contrast import contrasts, strangers
from embaudit.measures.socm.steps.listed import kinds_of, numbered_texts
from embaudit.measures.socm.tables import SocmContrastRow
from embaudit.steps.corpora import drawn_pairs
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step

# Fixed, so that audits with other seeds use the same part of a list, unless they draw other pairs.
SAMPLE_SEED = 0


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmContrastRow,),
    name="SOCM contrast",
    run_name="SOCM of {corpus.name} against random pairs",
)
def socm_contrast(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, pairs: int) -> None:
    """Means of listed and of random pairs, and their paired difference (table ``socm_contrast``).

    Empty if one query has over half of the pairs, or fewer than two pairs have two defined texts.
    """
    drawn = drawn_pairs(corpus.content_path, draw).pairs
    kinds = kinds_of(spec, corpus.name)
    chosen = content_order([pair_text(*pair) for pair in drawn], SAMPLE_SEED)[:pairs]
    listed = [((kinds[0], drawn[place][0]), (kinds[1], drawn[place][1])) for place in chosen]
    numbers = numbered_texts(listed)
    contents = list(numbers)
    embedded: list[tuple[int, np.ndarray]] = []
    with tracked(f"SOCM, random pairs of {corpus.name}", len(contents)) as advance:
        for kind in dict.fromkeys(kinds):
            own = [number for number, text in enumerate(contents) if text[0] == kind]
            for index, X in encoder_of(spec, kind).token_embeddings([contents[number][1] for number in own]):
                embedded.append((own[index], X.copy()))
                advance(1)
    clouds = {cloud.position: cloud for cloud in clouds_of(embedded)[0]}
    numbered = [(numbers[first], numbers[second]) for first, second in listed]
    defined = [pair for pair in numbered if pair[0] in clouds and pair[1] in clouds]
    first, second = [pair[0] for pair in defined], [pair[1] for pair in defined]
    partner = strangers(first)
    found = [] if partner is None else contrasts(clouds, first, second, partner)
    rows = [{"corpus": corpus.name, **asdict(one)} for one in found]
    out.rows(SocmContrastRow, rows, encodes=len(contents))
