"""The sequential search against the exhaustive one: encodes, lists, recall, over three seeds.

3 000 random tokens of all-MiniLM-L6-v2, real STS pairs where they lie beside the checkout. The exhaustive search is
run; the sequential ones take their values from it (a value depends on its token, draw and point alone), so that both
see the same numbers and the difference is what was skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.measured import Measured
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora import load_corpus
from embaudit.measures.sticky.effects import resample_clusters
from embaudit.measures.sticky.pairs import distinct_sentences, sample_pairs
from embaudit.measures.sticky.plan import choose_controls, choose_shortlists, choose_tokens, rungs_of, tokens_kept
from embaudit.measures.sticky.scan import ScanInputs, ScanScores, prepare_scan, scan_tokens, score_tokens
from embaudit.measures.sticky.scores import Protocol, pull, retention
from embaudit.measures.sticky.search import keep_worst, order_draws, undecided_tokens
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.thresholds import adaptive_threshold
from embaudit.measures.sticky.validation import ValidationInputs, common_points, prepare_validation, validate_tokens
from embaudit.profile import load_profile
from embaudit.vocabulary.entries import read_vocabulary

REAL_PAIRS = Path(__file__).resolve().parents[2] / "shared/data/sts/stsb/stsb-en-test.csv"
TOKENS = 3_000
CONTROLS = 30
SEEDS = (0, 1, 2)
U = 0.19985
Shortlists = Mapping[Protocol, Collection[int]]


@dataclass(frozen=True)
class Exhaustive:
    """All draws of all tokens; all points of candidates and controls, more of them measured when asked for."""

    encoder: Encoder
    token_ids: np.ndarray
    scan: ScanInputs
    scanned: np.ndarray
    validation: ValidationInputs
    seed: int
    rows: dict[int, np.ndarray]
    controls: list[int]

    def after(self, tokens: np.ndarray) -> np.ndarray:
        """(T, P) similarities on all validation points."""
        missing = np.array([token for token in tokens if int(token) not in self.rows], dtype=np.int64)
        if len(missing):
            measured = validate_tokens(self.encoder, self.validation, missing, 8, self.seed)
            self.rows.update(zip(missing.tolist(), measured, strict=True))
        return np.stack([self.rows[int(token)] for token in tokens])


@dataclass(frozen=True)
class Outcome:
    encodes: int
    shortlists: Shortlists
    sticky: dict[Protocol, set[int]]
    severe: set[int]


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    found: dict[str, list[tuple[Outcome, Outcome]]] = {"standard": [], "quick": []}
    stability = []
    single: dict[Protocol, list[tuple[float, float]]] = {"retention": [], "definition": []}
    rotation: dict[Protocol, list[float]] = {"retention": [], "definition": []}
    for seed in SEEDS:
        data = _exhaustive(encoder, seed)
        settings = load_profile("standard").sticky
        whole = _search(data, settings.everything())
        stability.append(_flagged_under_bootstrap(data, whole))
        for protocol in ("retention", "definition"):
            single[protocol].append(_recall_of_one_draw(data, protocol))
            rotation[protocol].append(_agreement_of_rotation(data, whole, protocol))
        for name in found:
            found[name].append((whole, _search(data, load_profile(name).sticky)))
    where = "STS Benchmark test" if REAL_PAIRS.is_file() else "the embedded sample"
    for name, runs in found.items():
        fewer = [whole.encodes / part.encodes for whole, part in runs]
        yield Measured(
            f"`{name}` against exhaustive, {TOKENS} tokens, {where}, seeds 0–2: encodes",
            f"{_spread(fewer)} times fewer",
            "≥ 4" if name == "standard" else "≥ 10",
        )
        severe = [_jaccard(whole.severe, part.severe) for whole, part in runs]
        recall = [len(whole.severe & part.severe) / max(len(whole.severe), 1) for whole, part in runs]
        yield Measured(
            f"`{name}`: tokens of moderate or strong severity, Jaccard / recall",
            f"{_spread(severe)} / {_spread(recall)} ({', '.join(str(len(whole.severe)) for whole, _ in runs)} of them)",
            "≥ 0.95" if name == "standard" else "stated",
        )
        for protocol in ("retention", "definition"):
            listed = [_recall(whole.shortlists, part.shortlists, protocol) for whole, part in runs]
            flagged = [_jaccard(whole.sticky[protocol], part.sticky[protocol]) for whole, part in runs]
            counts = ", ".join(str(len(whole.sticky[protocol])) for whole, _ in runs)
            yield Measured(
                f"`{name}`, {protocol}: recall of the shortlist; Jaccard of the tokens beyond the adaptive threshold",
                f"{_spread(listed)}; {_spread(flagged)} ({counts} of them)",
                "≥ 0.95" if name == "standard" else "stated",
            )
    for protocol in ("retention", "definition"):
        worst, best = zip(*single[protocol], strict=True)
        yield Measured(
            f"worst 2 % by {protocol} that are among the worst 10 % after one draw: the worst of 15 draws, the best",
            f"{_spread(list(worst))}, {_spread(list(best))}",
        )
        yield Measured(
            f"{protocol}, candidates: correlation of values from one operator a pair with those from all three",
            f"{np.median(rotation[protocol]):.3f} ({min(rotation[protocol]):.3f}–{max(rotation[protocol]):.3f})",
        )
        yield Measured(
            f"exhaustive, {protocol}: Jaccard of the tokens beyond the threshold with themselves, pairs resampled",
            _spread([seed[protocol] for seed in stability]),
        )


def _exhaustive(encoder: Encoder, seed: int) -> Exhaustive:
    checkpoint = encoder.checkpoint
    settings = load_profile("standard").sticky
    entries = [asdict(entry) for entry in read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)]
    source = str(REAL_PAIRS) if REAL_PAIRS.is_file() else "sample"
    texts = [side for pair in load_corpus("sts", source).pairs for side in (pair.first, pair.second)]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    sample = sample_pairs(sentences, encoder.encode_texts(sentences), 15, 250, seed)
    chosen = choose_tokens(entries, settings, TOKENS, seed)
    scan = prepare_scan(encoder, sample.scoring, U, 8, seed)
    scanned = scan_tokens(encoder, scan, chosen.token_ids, range(len(scan.draws)))
    validation = prepare_validation(encoder, sample.validation, U, 8, seed, rotate_operators=False)
    controls = choose_controls(entries, chosen.token_ids, CONTROLS, seed).tolist()
    return Exhaustive(encoder, chosen.token_ids, scan, scanned, validation, seed, {}, controls)


def _search(data: Exhaustive, settings: StickySettings) -> Outcome:
    """What a search with these settings finds, and what it spends; controls are the same few for all."""
    encodes, shortlists = _shortlists(data, settings)
    candidates = np.array(sorted({token for listed in shortlists.values() for token in listed}))
    tokens = np.union1d(candidates, data.controls)
    whole = data.after(tokens)
    points = np.arange(len(data.validation.points))
    if settings.rotate_operators:
        points = points[[index % 3 == pair % 3 for index, (pair, _) in enumerate(data.validation.points)]]
    if settings.validation_pairs < len(data.validation.pairs):
        spread = np.linspace(0, len(points) - 1, settings.validation_pairs).round().astype(int)
        points = points[spread]
    inputs, after = data.validation.at(points), whole[:, points]
    common = np.arange(len(points))
    if settings.search == "sequential" and settings.common_pairs < len(points):
        common = common_points(inputs, settings.common_pairs)
    weights = resample_clusters(inputs.at(common).clusters, 500, data.seed)
    further: set[int] = set()
    if len(common) < len(points):
        further = set(undecided_tokens(inputs.at(common), tokens, after[:, common], shortlists, data.controls, weights))
    encodes += len(tokens) * len(common) + len(further | set(data.controls)) * (len(points) - len(common))
    return _judge(data, inputs, after, tokens, common, further, shortlists, encodes)


def _judge(
    data: Exhaustive,
    inputs: ValidationInputs,
    after: np.ndarray,
    tokens: np.ndarray,
    common: np.ndarray,
    further: set[int],
    shortlists: Shortlists,
    encodes: int,
) -> Outcome:
    on_common = inputs.at(common)
    is_control, goes_on = np.isin(tokens, data.controls), np.isin(tokens, sorted(further))
    few, many = retention(on_common.before, after[:, common]).slope, retention(inputs.before, after).slope
    losses = np.where(goes_on, 1 - many / np.median(many[is_control]), 1 - few / np.median(few[is_control]))
    sticky: dict[Protocol, set[int]] = {}
    for protocol, listed in shortlists.items():
        places = np.searchsorted(tokens, sorted(listed))
        if protocol == "definition":
            first, last = pull(on_common.before, after[:, common], inputs.u), pull(inputs.before, after, inputs.u)
            threshold = adaptive_threshold(first[places], above=True)
            beyond = np.where(goes_on, last, first) > (np.inf if threshold is None else threshold)
        else:
            threshold = adaptive_threshold(few[places], above=False)
            beyond = np.where(goes_on, many, few) < (-np.inf if threshold is None else threshold)
        sticky[protocol] = set(tokens[beyond & ~is_control].tolist())
    severe = set(tokens[(losses >= 0.25) & ~is_control].tolist())
    return Outcome(encodes, shortlists, sticky, severe)


def _shortlists(data: Exhaustive, settings: StickySettings) -> tuple[int, dict[Protocol, list[int]]]:
    every = list(range(len(data.scan.draws)))
    full = score_tokens(data.scan, every, data.scanned)
    count = len(data.token_ids)
    if settings.search == "exhaustive":
        return count * len(every), choose_shortlists(data.token_ids, full, count, settings)
    pilot = np.zeros(count, dtype=bool)
    chosen = np.random.default_rng(data.seed).choice(
        count, size=int(np.ceil(settings.pilot_share * count)), replace=False
    )
    pilot[chosen] = True
    order = order_draws(data.scan, data.scanned[pilot])
    left, done, encodes = np.flatnonzero(~pilot), 0, int(pilot.sum()) * len(every)
    for until, share in rungs_of(settings, len(every)):
        encodes += len(left) * (until - done)
        done = until
        keep = len(left) if share is None else tokens_kept(settings, share, count)
        if keep < len(left):
            draws = order[:until]
            left = left[keep_worst(score_tokens(data.scan, draws, data.scanned[left][:, draws]), keep)[0]]
    held = np.union1d(left, np.flatnonzero(pilot))
    scores = ScanScores(full.pull[held], full.slope[held])
    return encodes, choose_shortlists(data.token_ids[held], scores, count, settings)


def _flagged_under_bootstrap(data: Exhaustive, whole: Outcome) -> dict[Protocol, float]:
    found: dict[Protocol, float] = {}
    generator = np.random.default_rng(0)
    pair_of = np.array([pair for pair, _ in data.validation.points])
    for protocol, listed in whole.shortlists.items():
        tokens = np.array(sorted(listed))
        after, agreements = data.after(tokens), []
        for _ in range(40):
            drawn = generator.integers(0, len(data.validation.pairs), len(data.validation.pairs))
            points = np.concatenate([np.flatnonzero(pair_of == pair) for pair in drawn])
            before = data.validation.before[points]
            if protocol == "definition":
                values = -pull(before, after[:, points], U)
            else:
                values = retention(before, after[:, points]).slope
            threshold = adaptive_threshold(values, above=False)
            agreements.append(_jaccard(whole.sticky[protocol], set(tokens[values < threshold].tolist())))
        found[protocol] = float(np.mean(agreements))
    return found


def _recall_of_one_draw(data: Exhaustive, protocol: Protocol) -> tuple[float, float]:
    """(least, most) over the draws."""

    def worst_first(draws: list[int]) -> np.ndarray:
        scores = score_tokens(data.scan, draws, data.scanned[:, draws])
        return np.argsort(scores.slope if protocol == "retention" else -scores.pull)

    count = len(data.token_ids)
    worst = set(worst_first(list(range(len(data.scan.draws))))[: count // 50].tolist())
    found = [
        len(worst & set(worst_first([draw])[: count // 10].tolist())) / len(worst)
        for draw in range(len(data.scan.draws))
    ]
    return min(found), max(found)


def _agreement_of_rotation(data: Exhaustive, whole: Outcome, protocol: Protocol) -> float:
    after = data.after(np.array(sorted(whole.shortlists[protocol])))
    turns = np.array([index % 3 == pair % 3 for index, (pair, _) in enumerate(data.validation.points)])

    def values(points: np.ndarray) -> np.ndarray:
        before = data.validation.before[points]
        return (
            retention(before, after[:, points]).slope if protocol == "retention" else pull(before, after[:, points], U)
        )

    return float(np.corrcoef(values(turns), values(np.ones_like(turns)))[0, 1])


def _recall(whole: Shortlists, part: Shortlists, protocol: Protocol) -> float:
    """Of the whole search's shortlist; where the part's is shorter, of as many."""
    return len(set(whole[protocol]) & set(part[protocol])) / min(len(whole[protocol]), len(part[protocol]))


def _jaccard(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def _spread(values: list[float]) -> str:
    return f"{np.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"
