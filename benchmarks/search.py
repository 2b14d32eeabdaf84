"""The search for sticky tokens against the exhaustive one, and both against sentences that neither has seen.

Every eligible token of all-MiniLM-L6-v2 gets all draws once, in the precision that an audit would scan in here; what
`quick` and `standard` would have done is then played through from the same sums, with other pilots. The truth is told
by fresh draws and anchors of another part of STS Benchmark, where it lies beside the checkout, else by the rest of the
embedded sample.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.measured import Measured, as_scanned
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.corpora.load import load_corpus
from embaudit.measures.listed import load_profile
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.baseline import input_embeddings
from embaudit.measures.sticky.insertion import SentenceSet, distinct_sentences, split_sentences
from embaudit.measures.sticky.moments import PROTOCOLS, Moments, Scores, insert_tokens, score
from embaudit.measures.sticky.plan import (
    SearchedTokens,
    choose_shortlists,
    choose_tokens,
    is_ordinary,
    rank,
    shortlist_length,
)
from embaudit.measures.sticky.points import SCORING_GROUPS, Points, every_against_every
from embaudit.measures.sticky.search import RankAgreement, Stage, agreement, halves, keep_worst, predict, reliability
from embaudit.measures.sticky.tables import Protocol, StickySeverityRow
from embaudit.measures.sticky.verdicts import MeasuredLosses, losses, noise, prevalence
from embaudit.statistics import spearman

STSB = Path(__file__).resolve().parents[2] / "shared/data/sts/stsb"
CHECKPOINT = "packaged:all-MiniLM-L6-v2"
U = 0.19985
DRAWS, FRESH_DRAWS, ANCHORS = 16, 10, 500
RANDOM_TOKENS, HALVED_TOKENS = 300, 3_000
SEEDS = (0, 1, 2)
RESAMPLES = 200
# From here on a token is measured on the fresh sentences too: what loses less is not moderate by noise alone.
SUSPECTED_LOSS = 0.12
MODERATE = 0.25
BUDGETS = (12_000, 20_000, 30_000, 40_000, 60_000, 100_000)
LISTED, LIST = 100, Path(__file__).with_name("exhaustive-all-MiniLM-L6-v2.csv")
PUBLISHED = STSB.parents[2] / "golden/std_reference_all_minilm_l6_v2.json"


@dataclass(frozen=True)
class Exhaustive:
    """Every eligible token with all draws."""

    entries: list[dict[str, object]]
    token_ids: np.ndarray
    ordinary: np.ndarray
    embeddings: np.ndarray
    points: Points
    moments: Moments
    seconds: float

    @property
    def draws(self) -> int:
        return len(self.points.draws)

    def scores(self, places: np.ndarray, draws: int) -> Scores:
        kept = range(draws)
        return score(self.points.at(kept), self.moments.at(places, kept))


def run() -> Iterator[Measured]:
    exact = Encoder(load_checkpoint(CHECKPOINT))
    scan = as_scanned(exact)
    every = measure_every_token(exact, scan)
    count = len(every.token_ids)
    yield Measured(
        f"exhaustive search in {str(scan.checkpoint.model.dtype).removeprefix('torch.')}: {count:,} tokens × {DRAWS} "
        f"draws × {len(every.points.anchors)} anchors",
        f"{every.seconds / 60:.1f} min, {count * DRAWS / every.seconds:,.0f} encodes/s",
        "≤ 12 min",
    )
    sample = np.sort(np.random.default_rng(1).choice(count, min(HALVED_TOKENS, count), replace=False))
    split = halves(every.points, every.moments.at(sample, range(DRAWS)), 0)
    for name, found in reliability(split).items():
        yield Measured(
            f"reliability, {name}: halves share neither draws nor anchors, 8 draws each", _said(found), "≥ .85"
        )
    fresh, random, truth = _fresh(exact, every)
    whole = every.scores(np.arange(count), DRAWS)
    yield from _lists(every, whole, exact is scan)
    severe = np.zeros(count, dtype=bool)
    # The suspected ones would move the median.
    severe[fresh] = losses(truth.slope, np.isin(fresh, random[every.ordinary[random]])) >= MODERATE
    yield Measured(f"tokens with a loss of {MODERATE} and more on fresh draws and anchors", f"{severe.sum():,}")
    of_random = np.searchsorted(fresh, random)
    for name in PROTOCOLS:
        rhos = [
            spearman(every.scores(random, draws).of(name), truth.of(name)[of_random]) or np.nan
            for draws in (2, 4, 8, 16)
        ]
        yield Measured(
            f"{name}: Spearman of 2, 4, 8, 16 draws with {FRESH_DRAWS} fresh ones × fresh anchors, random tokens",
            ", ".join(f"{rho:.2f}" for rho in rhos),
            "`quick` ≥ .7 (slope), ≥ .6 (pull)",
        )
    for budget in BUDGETS:
        searches = [play(every, choose_tokens(every.entries, budget, DRAWS, None, seed), seed) for seed in SEEDS]
        shares = [float(np.isin(np.flatnonzero(severe), played.finalists).mean()) for played in searches]
        yield Measured(
            f"severe tokens that {budget:,} encodes give all draws, three pilots",
            ", ".join(f"{share:.2f}" for share in shares),
            "",
        )
    for profile in ("quick", "standard"):
        yield from _profile(every, load_profile(profile).of(StickySettings), profile, whole, severe)


def _lists(every: Exhaustive, whole: Scores, is_exact: bool) -> Iterator[Measured]:
    """The worst by each protocol, written beside this module where they are exact, and what they have in common."""
    lost = losses(whole.slope, every.ordinary)
    ranks: dict[str, np.ndarray] = {
        name: rank(np.zeros(len(lost)), badness)
        for name, badness in (("retention", -whole.slope), ("definition", whole.pull))
    }
    listed = {name: found <= LISTED for name, found in ranks.items()}
    if is_exact:
        _write_list(every, whole, lost, ranks, listed["retention"] | listed["definition"])
    else:
        with LIST.open(encoding="utf-8", newline="") as file:
            kept = [row for row in csv.DictReader(file) if int(row["slope_rank"]) <= LISTED]
        same = set(every.token_ids[listed["retention"]].tolist()) & {int(row["token_id"]) for row in kept}
        yield Measured(f"of the worst {LISTED} by retention in float32 among them", f"{len(same)}", "")
    yield Measured("tokens with a loss of 0.25; 0.5 and more", f"{(lost >= 0.25).sum()}; {(lost >= 0.5).sum()}", "")
    for name, worst in listed.items():
        latin = sum(every.entries[token]["script"] == "Latin" for token in every.token_ids[worst])
        yield Measured(
            f"the worst {LISTED} by {name}: median loss; median pull; of Latin script",
            f"{np.median(lost[worst]):.2f}; {np.median(whole.pull[worst]):.2f}; {latin}",
            "",
        )
    both = (listed["retention"] & listed["definition"]).sum()
    yield Measured("on both lists; Spearman of slope and pull", f"{both}; {spearman(whole.slope, whole.pull):.2f}", "")
    if PUBLISHED.is_file():
        published = [one["id"] for one in json.loads(PUBLISHED.read_text())["validation_value"]["tokens"]]
        places = np.flatnonzero(np.isin(every.token_ids, published))
        medians = ", ".join(f"{name} {np.median(found[places]):,.0f}" for name, found in ranks.items())
        yield Measured(f"median rank of {len(places)} tokens with published validation values", medians, "")


def _write_list(
    every: Exhaustive, whole: Scores, lost: np.ndarray, ranks: dict[str, np.ndarray], listed: np.ndarray
) -> None:
    """The list that later searches are compared with: in float32, whatever is scanned elsewhere."""
    rows = sorted(np.flatnonzero(listed), key=lambda place: ranks["retention"][place])
    with LIST.open("w", encoding="utf-8", newline="") as file:
        written = csv.writer(file, lineterminator="\n")
        written.writerow(("token_id", "token", "origin", "script", "slope", "slope_rank", "loss", "pull", "pull_rank"))
        for place in rows:
            entry = every.entries[every.token_ids[place]]
            written.writerow(
                (
                    *(entry[name] for name in ("token_id", "token", "origin", "script")),
                    *(f"{whole.slope[place]:.4f}", ranks["retention"][place], f"{lost[place]:.4f}"),
                    *(f"{whole.pull[place]:.4f}", ranks["definition"][place]),
                )
            )


def _profile(
    every: Exhaustive, settings: StickySettings, profile: str, whole: Scores, severe: np.ndarray
) -> Iterator[Measured]:
    """What a profile's search finds of what there is to be found, over seeds."""
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        chosen = choose_tokens(every.entries, settings.scan_encodes, DRAWS, None, seed)
        played = play(every, chosen, seed)
        length = shortlist_length(settings, len(whole.slope))
        shortlists = choose_shortlists(every.token_ids[played.finalists], whole.at(played.finalists), length)
        worst: dict[Protocol, np.ndarray] = {
            "definition": np.argsort(-whole.pull)[:length],
            "retention": np.argsort(whole.slope)[:length],
        }
        for name in PROTOCOLS:
            listed = np.isin(every.token_ids[worst[name]], shortlists[name])
            found.setdefault(f"recall of the exhaustive shortlist, {name}", []).append(float(listed.mean()))
            found.setdefault(f"prediction from input embeddings, {name}", []).append(
                played.prediction[name].rho or np.nan
            )
        got_all = np.isin(np.flatnonzero(severe), played.finalists)
        found.setdefault("severe tokens that got all draws", []).append(float(got_all.mean()))
        candidates = np.union1d(*shortlists.values())
        worst_severe = np.flatnonzero(severe)[np.argsort(whole.slope[severe])][:length]
        found.setdefault(
            f"the worst of the severe tokens, as many as a shortlist holds ({length}), that are validated", []
        ).append(float(np.isin(every.token_ids[worst_severe], candidates).mean()))
        severe_tokens = count_severe(every, played, whole, seed)
        for end, number in (
            ("", severe_tokens.estimated),
            (", low", severe_tokens.estimated_low),
            (", high", severe_tokens.estimated_high),
        ):
            found.setdefault(f"estimated number of severe tokens{end}", []).append(number or 0.0)
    for what, values in found.items():
        form = ",.0f" if "number" in what else ".2f"
        yield Measured(f"`{profile}`, three pilots: {what}", ", ".join(format(value, form) for value in values), "")


def count_severe(
    every: Exhaustive, played: Played, whole: Scores, seed: int, *, by_pilot: bool = False
) -> StickySeverityRow:
    """The estimated number of severe tokens; by the pilot alone if that is wanted."""
    pilot = played.pilot
    error = noise(halves(every.points, every.moments.at(pilot, range(every.draws)), seed), every.ordinary[pilot])
    lost = losses(whole.slope, np.isin(np.arange(len(whole.slope)), pilot[every.ordinary[pilot]]))
    kept = np.empty(0, dtype=np.int64) if by_pilot else np.setdiff1d(played.finalists, played.dropped)
    sampled = pilot if by_pilot else played.dropped
    measured = MeasuredLosses(lost[kept], lost[sampled], len(lost) - len(kept), error)
    return prevalence(measured, [], RESAMPLES, seed)[1]


@dataclass(frozen=True)
class Played:
    """Places of the tokens that got all draws, of the pilot, and of those of it that the cuts would have dropped.

    Attributes:
        prediction: how well embeddings predicted the pilot.
    """

    finalists: np.ndarray
    pilot: np.ndarray
    dropped: np.ndarray
    prediction: dict[Protocol, RankAgreement]


def play(every: Exhaustive, chosen: SearchedTokens, seed: int) -> Played:
    """The flow's search, on sums that are there already."""
    pilot = np.searchsorted(every.token_ids, chosen.pilot)
    known = every.scores(pilot, every.draws)
    predicted = predict(every.embeddings, pilot, known, seed)
    rest, done = np.setdiff1d(np.arange(len(every.token_ids)), pilot), 0
    survives = np.ones(len(pilot), dtype=bool)
    for until, count in chosen.stages:
        if count < len(rest):
            drawn = every.scores(pilot, done) if done else None
            stage = Stage(predicted.at(pilot), drawn, known)
            expected = stage.judge(predicted.at(rest), every.scores(rest, done) if done else None)
            kept, cut = keep_worst(expected, count)
            survives &= cut.survivors(stage.of_pilot())
            rest = rest[kept]
        done = until
    prediction = {name: agreement(predicted.of(name)[pilot], known.of(name)) for name in PROTOCOLS}
    return Played(np.union1d(pilot, rest), pilot, pilot[~survives], prediction)


def measure_every_token(encoder: Encoder, scan: Encoder, draws: int = DRAWS, limit: int | None = None) -> Exhaustive:
    """All draws of every eligible token, or of as many as the limit at random."""
    checkpoint = encoder.checkpoint
    entries = [asdict(entry) for entry in read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)]
    token_ids = choose_tokens(entries, None, draws, limit, 0).token_ids
    chosen = sentence_set("stsb-en-test.csv", draws, 0)
    points = every_against_every(encoder, chosen.draws, chosen.anchors, U, 8, 0, SCORING_GROUPS)
    since = time.perf_counter()
    moments = insert_tokens(scan, points, token_ids, range(draws))
    seconds = time.perf_counter() - since
    ordinary = np.array([is_ordinary(entries[token]) for token in token_ids])
    return Exhaustive(entries, token_ids, ordinary, input_embeddings(encoder)[token_ids], points, moments, seconds)


def _fresh(encoder: Encoder, every: Exhaustive) -> tuple[np.ndarray, np.ndarray, Scores]:
    """Places of random and of suspected tokens, those of the random ones, and the scores of all on fresh sentences."""
    chosen = sentence_set("stsb-en-dev.csv", FRESH_DRAWS, 1)
    points = every_against_every(encoder, chosen.draws, chosen.anchors, U, 8, 1, SCORING_GROUPS)
    count = len(every.token_ids)
    random = np.sort(np.random.default_rng(2).choice(count, min(RANDOM_TOKENS, count), replace=False))
    slopes = every.scores(np.arange(count), DRAWS).slope
    places = np.union1d(random, np.flatnonzero(losses(slopes, every.ordinary) >= SUSPECTED_LOSS))
    moments = insert_tokens(encoder, points, every.token_ids[places], range(FRESH_DRAWS))
    return places, random, score(points, moments)


def sentence_set(part: str, draws: int, seed: int) -> SentenceSet:
    source = str(STSB / part) if STSB.is_dir() else "sample"
    texts = [side for pair in load_corpus("sts", source).pairs for side in (pair.first, pair.second)]
    # Fewer than that in the sample; the halves of one deal share no sentence.
    sentences = distinct_sentences(texts, 2 * (draws + ANCHORS), 0)
    return split_sentences(sentences, draws, draws, 0)[seed % 2]


def _said(found: RankAgreement) -> str:
    between = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.rho:.2f}{between}"
