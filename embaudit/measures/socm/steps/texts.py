"""SOCM as steps: token clouds of texts, all pairs in shards. Lists: ``socm_listed``; averages: ``socm_summary``.

What is measured on samples of a corpus's texts and pairs, as steps.

Other poolings of the same tokens compared with the mean; how tight the Gaussian approximation is, and SIF pooling
compared with plain; and the tokens of the pairs with the highest, median and lowest SOCM, in a plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from embaudit.checkpoint import TextKind
from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import TRACE_BOUND, TokenCloud, UndefinedText, clouds_of, shared_plane, token_cloud
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import Accuracy, all_pairs, checked, count_pairs_of_shard, plan_blocks
from embaudit.measures.socm.tables import SocmPairRow, SocmPlaneRow, SocmPoolingRow, SocmTextRow, SocmTightnessRow
from embaudit.measures.socm.tightness import cloud_angles, compare_poolings, pair_tightness, sample_pairs, sif_weights
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_batches
from embaudit.steps.step import Outputs, step

# Number of undefined texts whose positions are kept; the others are only counted.
NAMED = 20


@dataclass(frozen=True)
class UndefinedTexts:
    """How many texts are undefined, and which, for the note at the audit's end."""

    undefined: int
    undefined_positions: list[int]

    @classmethod
    def of(cls, texts: Sequence[UndefinedText]) -> UndefinedTexts:
        return cls(len(texts), [text.position for text in texts[:NAMED]])


@dataclass(frozen=True)
class DescribedTexts(UndefinedTexts):
    """What the pairs of these texts are divided by."""

    blocks: int
    all_pairs: int


@dataclass(frozen=True)
class NormAccuracy:
    """How nuclear norms were computed, and their largest error on the pairs that were also computed exactly."""

    method: str
    accuracy: float
    checked_pairs: int

    @classmethod
    def of(cls, method: str, accuracy: Accuracy) -> NormAccuracy:
        return cls(method, accuracy.largest, accuracy.pairs)


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmTextRow,),
    name="SOCM texts",
    run_name="SOCM texts of {corpus.name}",
)
def socm_texts(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw) -> None:
    """Length, ‖μ‖, tr Σ and mean cosine of every text (table ``socm_text``)."""
    clouds, undefined = clouds_of_corpus(spec, corpus.name, corpus.content_path, draw)
    drawn = drawn_texts(corpus.content_path, draw)
    truncated = dict(zip(drawn.places, are_truncated(spec, drawn.texts), strict=True))
    blocks = plan_blocks([cloud.n for cloud in clouds], nuclear_norms_on(spec.device).tokens_per_block)
    all_pairs = len(clouds) * (len(clouds) - 1) // 2
    detail = DescribedTexts(**vars(UndefinedTexts.of(undefined)), blocks=len(blocks), all_pairs=all_pairs)
    rows = text_rows(corpus, clouds, undefined, truncated)
    out.rows(SocmTextRow, rows, encodes=len(rows), detail=detail)


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmPairRow,),
    name="SOCM pairs",
    run_name="SOCM pairs of {corpus.name}, shard {shard}",
)
def socm_pairs(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, shard: int, shards: int) -> None:
    """d_μ, d_Σ and SOCM of every pair of one shard, streamed to its file (table ``socm_pair``)."""
    clouds, _ = clouds_of_corpus(spec, corpus.name, corpus.content_path, draw)
    norms, accuracy = nuclear_norms_on(spec.device), Accuracy()
    planned = count_pairs_of_shard(clouds, shard, shards, norms.tokens_per_block)
    with tracked(f"SOCM, pairs of {corpus.name}", planned, of_all=len(clouds) * (len(clouds) - 1) // 2) as advance:

        def columns() -> Iterator[dict[str, object]]:
            blocks = all_pairs(clouds, shard=shard, shards=shards, norms=norms)
            for block in checked(blocks, {cloud.position: cloud for cloud in clouds}, planned, accuracy):
                advance(len(block.socm))
                yield {"corpus": repeated(corpus.name, len(block.socm)), **asdict(block)}

        out.columns(SocmPairRow, columns(), detail=lambda: NormAccuracy.of(norms.name, accuracy))


def text_rows(
    corpus: StagedCorpus,
    clouds: Sequence[TokenCloud],
    undefined: Sequence[UndefinedText],
    truncated: Mapping[int, bool],
) -> list[dict[str, Any]]:
    """Rows of ``socm_text`` in order of position; ``truncated`` has positions as keys."""
    rows: list[dict[str, Any]] = [
        {
            "position": cloud.position,
            "tokens": cloud.n,
            "mean_norm": cloud.mean_norm,
            "trace_sigma": cloud.trace,
            "exceeds_trace_bound": cloud.trace > TRACE_BOUND,
            "mean_cosine": cloud.mean_cosine,
            "is_undefined": False,
            "is_truncated": truncated[cloud.position],
        }
        for cloud in clouds
    ]
    rows += [
        {
            **dict.fromkeys(("trace_sigma", "exceeds_trace_bound", "mean_cosine")),
            **asdict(text),
            "is_undefined": True,
            "is_truncated": truncated[text.position],
        }
        for text in undefined
    ]
    scope = {"corpus": corpus.name, "corpus_id": corpus.corpus_id}
    return [{**scope, **row} for row in sorted(rows, key=lambda row: int(row["position"]))]


def are_truncated(spec: CheckpointSpec, contents: Sequence[str], kind: TextKind = "text") -> list[bool]:
    """Whether each text is longer than what the checkpoint reads."""
    encoder = encoder_of(spec, kind)
    return [len(ids) > encoder.checkpoint.content_limit for ids in encoder.own_ids(contents)]


def repeated(value: str, count: int) -> Any:
    """An array of one string repeated, without as many Python strings."""
    return pa.repeat(value, count)


# A process computes a corpus's shards one after another, so its clouds are computed only once.
@lru_cache(maxsize=1)
def clouds_of_corpus(
    spec: CheckpointSpec, corpus: str, corpus_path: str, draw: Draw
) -> tuple[list[TokenCloud], list[UndefinedText]]:
    """Token clouds of the drawn texts of a corpus, and the texts that have none."""
    drawn = drawn_texts(corpus_path, draw)
    encoder = encoder_of(spec)
    with tracked(f"SOCM, token embeddings of {corpus}", len(drawn.texts)) as advance:

        def embedded() -> Iterator[tuple[int, Any]]:
            for index, embeddings in encoder.token_embeddings(drawn.texts):
                # Copy it: the encoder returns a view of a padded batch, and all of the batch would stay in memory.
                yield drawn.places[index], embeddings.copy()
                advance(1)

        return clouds_of(embedded())


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
