"""Three pairs of texts as pictures: the tokens of the pairs with the highest, median and lowest SOCM, in a plane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import token_cloud
from embaudit.measures.socm.plane import shared_plane
from embaudit.measures.socm.tables import SocmPlaneRow
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_batches
from embaudit.steps.step import Outputs, step

# A text's mean comes before its tokens.
MEAN_POINT = -1


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmPlaneRow,),
    name="SOCM planes",
    run_name="SOCM planes of {corpus.name}",
)
def socm_plane(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, pairs: list[Staged]) -> None:
    """Tokens and means of three pairs in their planes (table ``socm_plane``)."""
    encoder = encoder_of(spec)
    chosen = chosen_pairs([part.path for part in pairs])
    last = max(max(first, second) for first, second, _ in chosen.values())
    contents = drawn_texts(corpus.content_path, Draw(rows=1 + last)).texts
    rows: list[dict[str, Any]] = []
    for name, (first, second, socm) in chosen.items():
        texts = [contents[first], contents[second]]
        clouds = {index: token_cloud(index, X) for index, X in encoder.token_embeddings(texts)}
        plane = shared_plane(clouds[0], clouds[1])
        ids = encoder.pooled_ids(texts)
        for position, mean, points, token_ids in (
            (first, plane.first_mean, plane.first, ids[0]),
            (second, plane.second_mean, plane.second, ids[1]),
        ):
            tokens = encoder.checkpoint.tokenizer.convert_ids_to_tokens(token_ids)
            for point, (token, (x, y)) in enumerate(zip([None, *tokens], [mean, *points], strict=True), MEAN_POINT):
                rows.append(
                    {
                        "corpus": corpus.name,
                        "pair": name,
                        "position": position,
                        "point": point,
                        "token": token,
                        "x": float(x),
                        "y": float(y),
                        "socm": socm,
                        "share": plane.share,
                    }
                )
    out.rows(SocmPlaneRow, rows, encodes=encoder.texts)


def chosen_pairs(paths: Sequence[str]) -> dict[str, tuple[int, int, float]]:
    """(first, second, SOCM) of the pairs with the highest and lowest SOCM, and the one nearest to the median."""

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for path in paths:
            for batch in read_batches(path, ("first", "second", "socm")):
                yield {name: batch.column(name).to_numpy() for name in ("first", "second", "socm")}

    median = float(np.median(np.concatenate([batch["socm"] for batch in batches()])))
    wanted = {"highest": np.inf, "median": median, "lowest": -np.inf}
    best: dict[str, tuple[float, int, int, float]] = {}
    for batch in batches():
        for name, target in wanted.items():
            distance = np.abs(batch["socm"] - target) if np.isfinite(target) else -np.sign(target) * batch["socm"]
            at = int(distance.argmin())
            found = (float(distance[at]), int(batch["first"][at]), int(batch["second"][at]), float(batch["socm"][at]))
            best[name] = min(best.get(name, found), found)
    return {name: (first, second, socm) for name, (_, first, second, socm) in best.items()}
