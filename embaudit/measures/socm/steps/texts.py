"""SOCM as steps: token clouds of texts, all pairs in shards. Lists: ``socm_listed``; averages: ``socm_summary``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from embaudit.checkpoint import TextKind
from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import TRACE_BOUND, TokenCloud, UndefinedText, clouds_of
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import Accuracy, all_pairs, checked, count_pairs_of_shard, plan_blocks
from embaudit.measures.socm.tables import SocmPairRow, SocmTextRow
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, StagedCorpus, encoder_of
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
