"""The published protocol in full, on the published pairs: shortlist, threshold and sticky tokens beside the published.

All 23 699 tokens are scored on 5 pairs, and the tokens of both shortlists, ours and the published one, validated on 250
(``embaudit.measures.sticky.inspect``): about five million encodes, as each distinct sentence is encoded once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench, only, rows_of
from benchmarks.reproduction.compared import Comparison, compared
from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.steps.files import read_pairs, token_shards
from embaudit.measures.sticky.steps.reference import (
    VALIDATED_TOKENS_PER_SHARD,
    measure_reference,
    reference_shard,
)
from embaudit.measures.sticky.steps.sentences import given_pairs, read_tokens, token_similarity
from embaudit.measures.sticky.verdicts import adaptive_threshold
from embaudit.statistics import spearman
from embaudit.steps.results import Staged
from embaudit.steps.staging.stage import read_rows
from embaudit.system.files import replace_atomically

PAIRS = {"scoring": "std/minilm_scoring_pairs_5.json", "validation": "std/minilm_verification_pairs_250.json"}


def measure(bench: Bench) -> dict[str, Any]:
    run, staged, tokens = run_protocol(bench)
    pairs, entries = staged[0], read_rows([tokens.path])
    rows = {row["token_id"]: row for row in rows_of(staged, "sticky_reference")}
    summary = only(rows_of(staged, "sticky_reference_summary"))
    listed = {one.token_id: one for one in published.published_shortlist() if one.token_id in rows}
    ours = {token for token, row in rows.items() if row["is_shortlisted"]}
    # Tokens that only the published run shortlisted: would they have been called sticky?
    values = {token: rows[token]["value"] for token in ours} | _validated(run, pairs, sorted(listed.keys() - ours))
    of_published = adaptive_threshold(np.array([values[token] for token in listed]), above=True)
    names = {row["token_id"]: row["token"] for row in entries}
    return {
        "categories": dict(Counter(row["category"] for row in entries)),
        "vocabulary": len(entries),
        "pair_difference": _farthest_similarity(bench, pairs),
        **{name: summary[name] for name in ("scanned", "candidates", "cutoff", "threshold", "sticky", "encodes")},
        "threshold_of_published_shortlist": of_published,
        "score_spearman": spearman(
            np.array([one.score for one in listed.values()]), np.array([rows[token]["score"] for token in listed])
        ),
        "tokens": [
            {
                "token_id": token,
                "token": names[token],
                "score": round(rows[token]["score"], 6),
                "score_rank": rows[token]["score_rank"],
                "value": round(values[token], 6),
                "is_shortlisted": token in ours,
                "is_sticky": rows[token]["verdict"] == "sticky",
            }
            for token in sorted(ours | listed.keys())
        ],
    }


def run_protocol(bench: Bench) -> tuple[Run, list[Staged], Staged]:
    """The run, the files of the published protocol (the first has its pairs), and the vocabulary."""
    files = {purpose: _few(bench, bench.file(place)) for purpose, place in PAIRS.items()}
    run = bench.run({"sts": "sample"}, files)
    (tokens,) = run(read_tokens, bench.spec)
    similarity, _ = token_similarity(run, tokens, None)
    given = {
        purpose: only(run(given_pairs, bench.spec, source, run.pair_contents[purpose], purpose))
        for purpose, source in run.pair_sources.items()
    }
    # The corpus is asked for and not read: both purposes have their pairs.
    return run, measure_reference(run, run.corpora["sts"], tokens, similarity, given), tokens


def _few(bench: Bench, path: Path) -> Path:
    """The file of pairs; with a limit, a file of the first ones."""
    if bench.limit is None:
        return path
    first = json.loads(path.read_text("utf-8"))[: bench.limit]
    short = bench.out / path.name
    with replace_atomically(short) as partial:
        partial.write_text(json.dumps(first), "utf-8")
    return short


def _validated(run: Run, pairs: Staged, token_ids: list[int]) -> dict[int, float]:
    """Validation values of more tokens, by id."""
    parts = run.sharded(
        reference_shard,
        token_shards(
            np.array(token_ids, dtype=np.int64),
            VALIDATED_TOKENS_PER_SHARD,
            len(token_ids),
            "reference protocol, the rest of the published shortlist",
        ),
        spec=run.spec,
        pairs=pairs,
        purpose="reference_validation",
        settings=run.settings(StickySettings),
        seed=run.seed,
    )
    return {row["token_id"]: row["number"] for row in rows_of(parts, "reference")}


def _farthest_similarity(bench: Bench, pairs: Staged) -> float:
    """The largest difference to the similarities in the published files."""
    differences = [0.0]
    for purpose, place in PAIRS.items():
        known = [float(one["similarity"]) for one in json.loads(bench.file(place).read_text("utf-8"))]
        # A limited run has fewer.
        found = read_pairs(pairs, f"reference_{purpose}")
        differences += [abs(pair.similarity - value) for pair, value in zip(found, known, strict=False)]
    return max(differences)


def compare(found: dict[str, Any]) -> Iterator[Comparison]:
    yield compared("entries of the vocabulary", published.VOCABULARY, found["vocabulary"], "C", 0)
    for name, count in published.CATEGORIES.items():
        what = f"of them `{name}` ([CLS] counted among the special ones)"
        yield compared(what, count, found["categories"].get(name, 0), "C", 0)
    yield compared("tokens scored", published.SCANNED, found["scanned"], "P", 0)
    yield compared("largest difference of a pair's similarity, 255 pairs", 0.0, found["pair_difference"], "C", 7)
    yield compared("98th percentile of the scores", published.CUTOFF, found["cutoff"], "P", 2)
    yield compared("tokens on the shortlist", published.CANDIDATES, found["candidates"], "P", 0)
    both = _by_id(found)
    listed = published.published_shortlist()
    common = sum(both[one.token_id]["is_shortlisted"] for one in listed)
    yield Comparison("on both shortlists", f"{len(listed)} [C]", f"{common}", f"{common / len(listed):.0%} in common")
    valued = [one for one in listed if one.value is not None]
    off = np.array([abs(both[one.token_id]["value"] - one.value) for one in valued if one.value is not None])
    yield Comparison(
        f"validation values of {len(valued)} tokens: largest difference; median",
        "– [C]",
        f"{off.max():.4f}; {np.median(off):.4f}",
        f"{off.max():.3f}",
    )
    low, high = _gap(valued)
    threshold = found["threshold"]
    yield Comparison(
        "adaptive threshold, Q3 + 0.7·IQR",
        f"between {low:.4f} and {high:.4f} [C]",
        f"{threshold:.4f}",
        "inside" if low <= threshold <= high else f"{max(low - threshold, threshold - high):.4f} outside",
    )
    sticky = {one.token_id for one in listed if one.is_sticky}
    ours = {token for token, row in both.items() if row["is_sticky"]}
    yield Comparison("sticky tokens", f"{len(sticky)} [P]", f"{len(ours)}", f"{len(ours & sticky)} in common")
    again = found["threshold_of_published_shortlist"]
    above = {one.token_id for one in listed if both[one.token_id]["value"] > again}
    yield Comparison(
        "the same from the published shortlist with our values",
        f"{len(sticky)} [P]",
        f"{len(above)} above {again:.4f}",
        f"{len(above & sticky)} in common",
    )


def reasons(found: dict[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    """Each token that one side calls sticky: token, published score and value, ours, and why the sides differ."""
    both, cutoff, threshold = _by_id(found), found["cutoff"], found["threshold"]
    listed = {one.token_id: one for one in published.published_shortlist()}
    judged = {token for token, one in listed.items() if one.is_sticky}
    judged |= {token for token, row in both.items() if row["is_sticky"]}
    for token in sorted(judged, key=lambda token: -both[token]["value"]):
        row, known = both[token], listed.get(token)
        if known is not None and known.is_sticky and row["is_sticky"]:
            why = "both"
        elif known is not None and known.is_sticky:
            why = (
                f"published only: score below our cutoff {cutoff:.2f}"
                if not row["is_shortlisted"]
                else f"published only: value not above {threshold:.4f}"
            )
        else:
            why = "ours only: " + ("not on the published shortlist" if known is None else "published value lower")
        theirs = "–" if known is None else f"{known.score:.2f}; {'–' if known.value is None else f'{known.value:.3f}'}"
        yield f"`{row['token']}`", str(token), theirs, f"{row['score']:.2f}; {row['value']:.3f}", why


def said(found: dict[str, Any]) -> str:
    counts = Counter(why.split(":")[0] for *_, why in reasons(found))
    missed = sum("score below" in why for *_, why in reasons(found))
    return (
        "The token filter gives the published counts in every category, so the tokenizer is the same; the pairs are "
        f"the published ones, and their similarities agree to rounding. {counts['both']} sticky tokens are common, "
        f"{counts['published only']} only published ({missed} of them because our run does not shortlist them), "
        f"{counts['ours only']} only ours. What is left is the random third of the score, which the published code "
        "draws from one global stream."
    )


def _by_id(found: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {row["token_id"]: row for row in found["tokens"]}


def _gap(valued: list[published.PublishedToken]) -> tuple[float, float]:
    """The published threshold lies between these: no value but that of a sticky token is above it."""
    values = [(one.value, one.is_sticky) for one in valued if one.value is not None]
    return max(v for v, is_sticky in values if not is_sticky), min(v for v, is_sticky in values if is_sticky)
