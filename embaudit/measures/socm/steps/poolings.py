"""Other poolings of the same tokens compared with the mean, as a step on some texts of a corpus and their pairs."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.poolings import cloud_angles, compare_poolings
from embaudit.measures.socm.tables import SocmPoolingRow
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_batches
from embaudit.steps.step import Outputs, step


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmPoolingRow,),
    name="SOCM poolings",
    run_name="poolings of {corpus.name}",
)
def socm_poolings(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, pairs: list[Staged]) -> None:
    """What five poolings of the same states keep (table ``socm_pooling``); empty with fewer than two defined texts.

    Args:
        draw: of texts that ``pairs`` covers: the same number or fewer.
        pairs: the files of ``socm_pair``.
    """
    encoder = encoder_of(spec)
    drawn = drawn_texts(corpus.content_path, draw)
    with tracked(f"poolings of {corpus.name}", len(drawn.texts)) as advance:
        states = {}
        for index, X in encoder.token_embeddings(drawn.texts):
            states[drawn.places[index]] = X.copy()
            advance(1)
    clouds, _ = clouds_of(states.items())
    positions = np.array([cloud.position for cloud in clouds], dtype=np.int64)
    rows = []
    if len(positions) > 1:
        first, second, d_mu, d_sigma = _pairs_among(positions, [part.path for part in pairs])
        traces = np.array([cloud.trace for cloud in clouds])
        checkpoint = encoder.checkpoint
        rows = [
            {
                "corpus": corpus.name,
                "is_served": checkpoint.recipe.pooling == (found.pooling,),
                **asdict(found),
            }
            for found in compare_poolings(
                [states[position] for position in positions.tolist()],
                first,
                second,
                cloud_angles(d_mu, d_sigma, traces[first], traces[second]),
                behind=checkpoint.prompt.unpooled,
            )
        ]
    out.rows(SocmPoolingRow, rows, encodes=encoder.texts)


def _pairs_among(positions: np.ndarray, paths: list[str]) -> tuple[np.ndarray, ...]:
    """Of the pairs of two of these positions: the indices of both texts among the positions, d_μ and d_Σ."""
    found = []
    for path in paths:
        for batch in read_batches(path, ("first", "second", "d_mu", "d_sigma")):
            first, second, d_mu, d_sigma = (batch.column(place).to_numpy() for place in range(4))
            own = np.isin(first, positions) & np.isin(second, positions)
            places = (np.searchsorted(positions, column[own]) for column in (first, second))
            found.append((*places, d_mu[own], d_sigma[own]))
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))
