"""How tight the Gaussian approximation is, and SIF pooling compared with plain, as a step on random pairs."""

from __future__ import annotations

from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.steps.texts import clouds_of_corpus
from embaudit.measures.socm.tables import SocmTightnessRow
from embaudit.measures.socm.tightness import pair_tightness, sample_pairs, sif_weights
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.results import CheckpointSpec, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step

# Fixed, so that audits with other seeds that read the same texts share this sample.
SAMPLE_SEED = 0


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmTightnessRow,),
    name="SOCM tightness",
    run_name="SOCM tightness of {corpus.name}",
)
def socm_tightness(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, pairs: int) -> None:
    """Exact transport and SIF weights on ``pairs`` random pairs (table ``socm_tightness``)."""
    clouds, _ = clouds_of_corpus(spec, corpus.name, corpus.content_path, draw)
    drawn = drawn_texts(corpus.content_path, draw)
    weights = dict(zip(drawn.places, sif_weights(encoder_of(spec).pooled_ids(drawn.texts)), strict=True))
    by_position = {cloud.position: cloud for cloud in clouds}
    first, second = sample_pairs(list(by_position), pairs, SAMPLE_SEED)
    rows = [{"corpus": corpus.name, **vars(row)} for row in pair_tightness(by_position, weights, first, second)]
    out.rows(SocmTightnessRow, rows)
