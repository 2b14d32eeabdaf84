"""Sticky tokens as tasks, first half: pairs, the scan in shards, narrowing, the shortlists."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import task

from embaudit.profile import StickySettings
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import (
    MEASURE,
    PAIR_SCHEMA,
    SCORE_SCHEMA,
    join_rungs,
    pair_rows,
    read_pairs,
    read_scan,
    read_similarity,
)

if TYPE_CHECKING:
    from embaudit.sticky.scan import ScanInputs


@task(name="choose pairs", **CACHED)
def choose_pairs(
    spec: CheckpointSpec,
    corpus_path: str,
    given: dict[str, str],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Stage the balanced scoring and validation pairs, and those of the first experiment (table ``sticky_pair``).

    Args:
        given: staged pairs of the user's own by purpose (``scoring``, ``validation``): they are taken as they are.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.pairs import distinct_sentences, named_pairs, sample_pairs, spread_pairs
    from embaudit.sticky.scan import unit_rows
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    texts = [row[side] for row in read_rows([corpus_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    with tracked("encode sentences", len(sentences)) as advance:
        vectors = encoder.encode_texts(sentences, advance)
    sample = sample_pairs(sentences, vectors, settings.scoring_pairs, settings.validation_pairs, seed)
    chosen = {"scoring": sample.scoring, "validation": sample.validation}
    if settings.shift_tokens:
        unit = unit_rows(vectors).astype(np.float64)
        similarity = unit @ unit.T
        above = similarity[np.triu_indices(len(similarity), 1)]
        spread = spread_pairs(
            similarity, above.min(), above.max(), settings.shift_pairs, np.random.default_rng([seed, 2])
        )
        chosen["shift"] = named_pairs(sentences, similarity, spread)
    chosen |= {purpose: tuple(read_pairs(path, purpose)) for purpose, path in given.items()}
    rows = [row for purpose, pairs in chosen.items() for row in pair_rows(purpose, pairs)]
    path = staged_path(Path(staging), MEASURE, key, "sticky_pair")
    return Staged(
        table="sticky_pair",
        path=str(path),
        rows=write_rows(path, rows, PAIR_SCHEMA),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts,
        detail={purpose: len(pairs) for purpose, pairs in chosen.items()},
    )


@task(name="read given pairs", persist_result=False)
def stage_given_pairs(spec: CheckpointSpec, source: str, content: str, purpose: str, staging: str) -> Staged:
    """Stage the pairs of a file of the user's own, with their similarities under the checkpoint.

    Raises:
        CorpusError: if a row is no pair, or the file is no longer what the audit was planned with.
    """
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.corpora.chosen_pairs import read_chosen_pairs
    from embaudit.errors import CorpusError
    from embaudit.keys import content_key
    from embaudit.sticky.pairs import SentencePair
    from embaudit.sticky.scan import unit_rows
    from embaudit.warehouse.stage import staged_path, write_rows

    found = read_chosen_pairs(Path(source))
    if found.content != content:
        raise CorpusError(f"{source} changed while it was being read.", next_step="Run the command again.")
    encoder = Encoder(checkpoint_of(spec))
    firsts, seconds = (unit_rows(encoder.encode_texts([pair[side] for pair in found.pairs])) for side in (0, 1))
    similarity = np.einsum("pd,pd->p", firsts, seconds, dtype=np.float64)
    pairs = [SentencePair(*pair, float(value)) for pair, value in zip(found.pairs, similarity, strict=True)]
    key = content_key(content=content, purpose=purpose, **spec.key_parts)
    path = staged_path(Path(staging), MEASURE, key, "given_pair")
    return Staged(table="given_pair", path=str(path), rows=write_rows(path, pair_rows(purpose, pairs), PAIR_SCHEMA))


@task(name="scan tokens", task_run_name="scan, draws {draws}, shard {shard}", **CACHED)
def scan_shard(
    spec: CheckpointSpec,
    scan_dtype: str,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    draws: list[int],
    settings: StickySettings,
    seed: int,
    shard: int,
    total: int,
    key: str,
    staging: str,
) -> Staged:
    """Similarities of some tokens after some draws, in the precision of the scan."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scan import scan_tokens
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    encoder = Encoder(checkpoint_of(spec.model_copy(update={"dtype": scan_dtype})))
    ids = np.array(token_ids, dtype=np.int64)
    with tracked(f"scan, {_counted(draws)}", len(ids) * len(draws), of_all=total) as advance:
        after = scan_tokens(encoder, inputs, ids, draws, advance)
    path = staged_path(Path(staging), MEASURE, key, "scan")
    anchors = [f"anchor_{index}" for index in range(after.shape[2])]
    blocks = (
        {
            "token_id": ids,
            "draw": np.full(len(ids), draw),
            **{name: after[:, place, anchor] for anchor, name in enumerate(anchors)},
        }
        for place, draw in enumerate(draws)
    )
    schema = {"token_id": "int32", "draw": "int32", **dict.fromkeys(anchors, "float32")}
    return Staged(
        table="scan",
        path=str(path),
        rows=write_columns(path, blocks, schema),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts,
        detail={"draws": len(draws)},
    )


@task(name="order draws", **CACHED)
def order_draws(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    pilot_paths: list[str],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The order in which the search spends the draws, from the pilot that got them all."""
    from embaudit.sticky.search import order_draws as ordered
    from embaudit.warehouse.stage import staged_path, write_rows

    _, _, after = read_scan(pilot_paths)
    order = ordered(_scan_inputs(spec, pairs_path, similarity_path, settings, seed), after)
    path = staged_path(Path(staging), MEASURE, key, "draw_order")
    rows = [{"position": position, "draw": draw} for position, draw in enumerate(order)]
    return Staged(table="draw_order", path=str(path), rows=write_rows(path, rows), detail={"order": order})


@task(name="narrow tokens", **CACHED)
def narrow(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    rungs: list[list[str]],
    keep: int,
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The tokens that the next rung looks at: the worst by both protocols, by turns.

    Args:
        rungs: the scan files of each rung so far; later rungs hold other draws of fewer tokens.
    """
    from embaudit.sticky.scan import score_tokens
    from embaudit.sticky.search import keep_worst
    from embaudit.warehouse.stage import staged_path, write_rows

    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    ids, draws, after = join_rungs(rungs)
    kept, cut = keep_worst(score_tokens(inputs, draws, after), keep)
    path = staged_path(Path(staging), MEASURE, key, "survivor")
    count = write_rows(path, [{"token_id": int(token_id)} for token_id in ids[kept]], {"token_id": "int32"})
    return Staged(
        table="survivor",
        path=str(path),
        rows=count,
        detail={"draws": len(draws), "pull": cut.pull, "slope": cut.slope},
    )


@task(name="compare precisions", **CACHED)
def compare_precisions(
    spec: CheckpointSpec,
    scan_dtype: str,
    pairs_path: str,
    similarity_path: str,
    token_ids: list[int],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Spearman's rank correlation of the scores in the scan's precision and in float32, one draw a token."""
    import numpy as np
    from scipy.stats import spearmanr

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scan import scan_tokens, score_tokens
    from embaudit.warehouse.stage import staged_path, write_rows

    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    ids = np.array(token_ids, dtype=np.int64)
    encoders = [Encoder(checkpoint_of(spec.model_copy(update={"dtype": dtype}))) for dtype in (scan_dtype, "float32")]
    cheap, exact = (score_tokens(inputs, [0], scan_tokens(encoder, inputs, ids, [0])) for encoder in encoders)
    agreement = {
        "definition": float(spearmanr(cheap.pull, exact.pull).statistic),
        "retention": float(spearmanr(cheap.slope, exact.slope).statistic),
    }
    path = staged_path(Path(staging), MEASURE, key, "precision")
    return Staged(table="precision", path=str(path), rows=write_rows(path, [agreement]), detail=agreement)


@task(name="score tokens", **CACHED)
def score(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    rungs: list[list[str]],
    pilot_paths: list[str],
    order: list[int],
    cuts: list[dict[str, float | None]],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Score every scanned token from all its draws, rank them, and choose the candidates (table ``sticky_score``).

    Args:
        rungs: the scan files of each rung; later rungs hold other draws of fewer tokens.
        pilot_paths: the files of the random tokens that got all draws; none in an exhaustive search.
        cuts: what each narrowing kept, to tell what it would have done to the pilot.
    """
    import numpy as np

    from embaudit.sticky.plan import choose_shortlists
    from embaudit.sticky.scan import ScanScores, score_tokens, split_half_reliability
    from embaudit.sticky.search import Cut, would_survive
    from embaudit.sticky.tally import ScoreBoard, misses_of
    from embaudit.warehouse.stage import staged_path, write_rows

    inputs = _scan_inputs(spec, pairs_path, similarity_path, settings, seed)
    board = ScoreBoard()
    for spent in range(1, len(rungs) + 1):
        ids, draws, after = join_rungs(rungs[:spent])
        scores = score_tokens(inputs, draws, after)
        board.add(ids, len(draws), scores)
    pilot_ids, survives = ids[:0], None
    if pilot_paths:
        pilot_ids, pilot_draws, pilot_after = read_scan(pilot_paths)
        pilot_scores = score_tokens(inputs, pilot_draws, pilot_after)
        board.add(pilot_ids, len(pilot_draws), pilot_scores, is_pilot=True)
        passed = [(int(cut["draws"] or 0), Cut(cut["pull"], cut["slope"])) for cut in cuts]
        survives = would_survive(inputs, pilot_after, order, passed)
        ids, after = np.concatenate([ids, pilot_ids]), np.concatenate([after, pilot_after])
        scores = ScanScores(
            np.concatenate([scores.pull, pilot_scores.pull]), np.concatenate([scores.slope, pilot_scores.slope])
        )
    shortlists = choose_shortlists(ids, scores, board.tokens, settings)
    # The split needs tokens that were not selected for their scores: the pilot, where there is one.
    unselected = pilot_after if pilot_paths else after
    reliability = split_half_reliability(inputs, sorted(order), unselected)
    path = staged_path(Path(staging), MEASURE, key, "sticky_score")
    return Staged(
        table="sticky_score",
        path=str(path),
        rows=write_rows(path, board.rows(shortlists), SCORE_SCHEMA),
        detail={
            "rungs": board.rungs(),
            "shortlists": shortlists,
            "lowest": board.lowest_slopes(100),
            "reliability": {
                protocol: None if np.isnan(value) else value
                for protocol, value in zip(("definition", "retention"), reliability, strict=True)
            },
            "misses": misses_of(shortlists, pilot_ids, survives),
        },
    )


def _scan_inputs(
    spec: CheckpointSpec, pairs_path: str, similarity_path: str, settings: StickySettings, seed: int
) -> ScanInputs:
    """Always in the audit's own precision: only the scan's many encodes may be cheaper."""
    from embaudit.checkpoint import Encoder
    from embaudit.sticky.scan import prepare_scan

    pairs, u = read_pairs(pairs_path, "scoring"), read_similarity(similarity_path)["u"]
    return prepare_scan(Encoder(checkpoint_of(spec)), pairs, u, settings.copies, seed)


def _counted(draws: list[int]) -> str:
    return "one draw" if len(draws) == 1 else f"{len(draws)} draws"
