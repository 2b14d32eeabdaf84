"""How a text is read beside the base: tokens, declarations."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from change_copies import (
    LAYER,
    WORDS,
    FolderChange,
    Tensors,
    compared,
    copy_of,
    in_file,
    jittered,
    permuted,
    small_sample,
    with_more_tokens,
)
from some_rows import mostly_slow
from tiny_models import build, declare, dense, json_file, load, pooling

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.agreement import KINDS
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.integrity.letter_case import words
from embaudit.measures.quality.material import Material, ScoredPairs
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.measures.quality.passes import SERVED, Pass
from embaudit.measures.quality.scores import PairScorer
from embaudit.questions.change.declared import compare_configs, compare_declared, declared_findings
from embaudit.questions.change.gains import (
    BaseComparison,
    cut_off_findings,
    gain_findings,
    measure_beside,
    measure_cut_off,
    measure_tuned,
)
from embaudit.questions.change.tokens import compare_tokens, token_findings
from embaudit.questions.change.vectors import compare_neighbours, compare_vectors, hard_vectors, overlap
from embaudit.questions.parity.parity import compare_with


def case_kept(content: dict[str, Any]) -> None:
    content["normalizer"]["lowercase"] = False


def replaced(content: dict[str, Any]) -> None:
    """A new word in the place of a rare token."""
    vocabulary = content["model"]["vocab"]
    vocabulary["zebra"] = vocabulary.pop("&")


TOKENS: dict[str, tuple[tuple[FolderChange, ...], str, str]] = {
    "the same": ((), "ok", "the same tokens as by the base."),
    "case kept": ((json_file("tokenizer.json", case_kept),), "look", "as other tokens than the base"),
    "permuted with its rows": ((permuted(with_rows=True),), "ok", "the same tokens as by the base."),
    "permuted without them": ((permuted(with_rows=False),), "problem", "still those of other tokens"),
    "a word added": ((with_more_tokens("zebra"),), "ok", "1 were added (zebra)"),
    "a word in place of another": ((json_file("tokenizer.json", replaced),), "look", "1 were added (zebra)"),
}


@pytest.mark.parametrize("name", mostly_slow(TOKENS, 3))
def test_what_is_said_of_each_tokenizer(name: str, base: Path, tmp_path: Path) -> None:
    changes, level, said = TOKENS[name]
    one, two = load(copy_of(base, tmp_path / "tuned", *changes)), load(base)
    (finding,) = token_findings(compare_tokens(one, two))
    assert (finding.name, finding.level) == ("same_tokens", level)
    assert said in finding.sentence


def test_shares_are_those_of_a_loop_over_words(base: Path, tmp_path: Path) -> None:
    one, two = load(copy_of(base, tmp_path / "tuned", json_file("tokenizer.json", case_kept))), load(base)
    differing = 0
    for word in words():
        read = [
            [side.tokenizer.convert_ids_to_tokens(number) for number in side.own_ids([word.upper()])[0]]
            for side in (one, two)
        ]
        differing += read[0] != read[1]
    found = compare_tokens(one, two)
    assert found.other["upper"] == differing / len(words())
    assert found.other["small"] == 0.0


def with_prompts(folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "find: "}, "similarity_fn_name": "dot"}', encoding="utf-8"
    )


DECLARED: dict[str, tuple[FolderChange, list[str], str]] = {
    "nothing": (lambda folder: None, [], "ok"),
    "pooling": (
        lambda folder: declare(folder, pooling("cls"), ("Normalize", {})),
        ["pooling cls (base: mean)"],
        "look",
    ),
    "Normalize lost": (
        lambda folder: declare(folder, pooling("mean")),
        ["modules after pooling none (base: Normalize)"],
        "look",
    ),
    "Dense": (
        lambda folder: declare(folder, pooling("mean"), dense(), ("Normalize", {})),
        ["Dense (32 to 16) → Normalize (base: Normalize)", "dimensions 16 (base: 32)"],
        "look",
    ),
    "prompts": (
        with_prompts,
        ["prompt of queries 'find: ' (base: none)", "similarity dot (base: cosine)"],
        "look",
    ),
    "shorter": (
        json_file("sentence_bert_config.json", max_seq_length=16),
        ["limit for texts 16 tokens (base: 48 tokens)"],
        "look",
    ),
    "longer": (
        json_file("sentence_bert_config.json", max_seq_length=60),
        ["limit for texts 60 tokens (base: 48 tokens)"],
        "ok",
    ),
}


@pytest.mark.parametrize("name", DECLARED)
def test_what_is_said_of_each_declaration(name: str, base: Path, tmp_path: Path) -> None:
    change, said, level = DECLARED[name]
    one, two = load(copy_of(base, tmp_path / "tuned", change)), load(base)
    (finding,) = declared_findings(compare_declared(one, two), two)
    assert (finding.name, finding.level) == ("same_reading", level)
    for part in said:
        assert part in finding.sentence


def test_a_base_that_declares_nothing_contradicts_nothing(base: Path, tmp_path: Path) -> None:
    plain = copy_of(base, tmp_path / "plain", lambda folder: (folder / "modules.json").unlink())
    tuned = copy_of(base, tmp_path / "tuned", lambda folder: declare(folder, pooling("cls")))
    (finding,) = declared_findings(compare_declared(load(tuned), load(plain)), load(plain))
    assert finding.level == "ok"
    assert "declares nothing itself" in finding.sentence


def test_equal_weights_that_are_read_otherwise(base: Path, tmp_path: Path) -> None:
    """Nothing was tuned, and vectors differ all the same: both are said."""
    tuned = copy_of(base, tmp_path / "tuned", lambda folder: declare(folder, pooling("cls"), ("Normalize", {})))
    findings = {finding.name: finding for finding in compared(tuned, base).findings}
    assert findings["nothing_changed"].level == "problem"
    assert findings["same_reading"].level == "look"
    assert findings["vectors_moved"].value is not None
    assert findings["vectors_moved"].value > 1e-3
    assert "lost_on_sample" in findings


# ---- the configuration ----


def without(*names: str) -> FolderChange:
    def write(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({k: v for k, v in content.items() if k not in names}))

    return write


def having(**settings: Any) -> FolderChange:
    return json_file("config.json", **settings)


# (the family, what the base's config.json has, what was done to the copy's, the setting that is named)
LOST: dict[str, tuple[str, FolderChange, FolderChange, str]] = {
    "activation": ("bert", having(hidden_act="relu"), having(hidden_act="gelu"), "hidden_act"),
    "activation lost": ("bert", having(hidden_act="relu"), without("hidden_act"), "hidden_act"),
    "epsilon": ("bert", having(layer_norm_eps=0.5), without("layer_norm_eps"), "layer_norm_eps"),
    "direction": ("bert", having(is_decoder=False), having(is_decoder=True), "is_decoder"),
    "rotary base": (
        "llama",
        having(rope_theta=50.0, rope_parameters={"rope_type": "default", "rope_theta": 50.0}),
        without("rope_theta", "rope_parameters"),
        "rope_theta",
    ),
    "heads": ("bert", having(num_attention_heads=4), having(num_attention_heads=8), "num_attention_heads"),
}
# What nothing depends on.
OF_NO_MATTER: dict[str, FolderChange] = {
    "versions": having(transformers_version="9.9.9", torch_dtype="bfloat16", _name_or_path="elsewhere"),
    "training": having(hidden_dropout_prob=0.4, attention_probs_dropout_prob=0.0, initializer_range=0.5),
    "heads of classifiers": having(id2label={"0": "a", "1": "b", "2": "c"}, problem_type="regression"),
    "defaults written out": without("layer_norm_eps", "hidden_act"),
}


def base_of(family: str, folder: Path, change: FolderChange) -> Path:
    declare(build(family, folder), pooling("mean"), ("Normalize", {}))
    change(folder)
    return folder


@pytest.mark.parametrize("name", mostly_slow(LOST, 1))
def test_a_line_that_is_lost_is_the_reason(name: str, tmp_path: Path) -> None:
    family, has, change, named = LOST[name]
    base = base_of(family, tmp_path / "base", has)
    tuned = copy_of(base, tmp_path / "tuned", change)
    findings = {finding.name: finding for finding in compared(tuned, base).findings}
    assert findings["computes_otherwise"].level == "problem"
    assert named in findings["computes_otherwise"].sentence
    assert "nothing_changed" not in findings, "that no weight has changed is right"
    report = compare_with(CheckpointFunction(load(base)), CheckpointFunction(load(tuned)), Material())
    assert report.verdict == "another function"
    # What another use of the checkpoint makes up for, has that name.
    assert named in report.line or (report.explanation is not None and report.explanation.is_complete)
    assert "No way" not in report.line


@pytest.mark.parametrize("name", mostly_slow(OF_NO_MATTER, ("versions", "defaults written out")))
def test_what_no_vector_depends_on_is_no_difference(name: str, tmp_path: Path) -> None:
    base = base_of("bert", tmp_path / "base", having())
    tuned = copy_of(base, tmp_path / "tuned", OF_NO_MATTER[name])
    assert compare_configs(load(tuned), load(base)) == []
    names = {finding.name: finding.level for finding in compared(tuned, base).findings}
    assert names["nothing_changed"] == "problem"
    assert "computes_otherwise" not in names


@pytest.mark.parametrize(
    "change", [having(), having(hidden_act="relu")], ids=["as the base", "with another activation"]
)
def test_of_a_tuned_one_it_is_to_be_looked_at(change: Callable[[Path], object], tmp_path: Path) -> None:
    base = base_of("bert", tmp_path / "base", having())
    tuned = copy_of(base, tmp_path / "tuned", jittered(), change)
    found = [one.level for one in compared(tuned, base).findings if one.name == "computes_otherwise"]
    assert found in ([], ["look"])
    assert bool(found) == ("relu" in (tuned / "config.json").read_text())


# ---- vectors ----


def cosine(one: list[float], two: list[float]) -> float:
    product = sum(a * b for a, b in zip(one, two, strict=True))
    return product / math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))


def test_distances_and_neighbours_are_those_of_a_loop(base: Path, tmp_path: Path) -> None:
    one, two = load(copy_of(base, tmp_path / "tuned", jittered(size=0.3))), load(base)
    encoders = Encoder(one), Encoder(two)
    beside = measure_beside(measure_tuned(one, (), small_sample()), two, small_sample())
    moved = {each.kind: each for each in compare_vectors(*map(hard_vectors, encoders), beside)}

    texts = list(KINDS["capitals"])
    vectors = [[encoder.encode_texts([text])[0].tolist() for text in texts] for encoder in encoders]
    distances = sorted(1 - cosine(a, b) for a, b in zip(*vectors, strict=True))
    assert moved["capitals"].median == pytest.approx(distances[len(distances) // 2], abs=1e-5)
    assert moved["capitals"].most == pytest.approx(distances[-1], abs=1e-5)

    pairs = small_sample().pairs[0]
    sentences = list(dict.fromkeys([*pairs.firsts, *pairs.seconds]))
    assert moved["the sentences of the embedded sample"].texts == len(sentences)
    nearest = []
    for encoder in encoders:
        rows = [row.tolist() for row in encoder.encode_texts(sentences)]
        near = [sorted((-cosine(a, b), j) for j, b in enumerate(rows) if j != i)[:10] for i, a in enumerate(rows)]
        nearest.append([{j for _, j in some} for some in near])
    shares = [len(a & b) / 10 for a, b in zip(*nearest, strict=True)]
    (found,) = compare_neighbours(beside)
    assert found.overlap == pytest.approx(sum(shares) / len(shares), abs=0.005)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [([[1, 2, 3]], [[3, 2, 1]], 1.0), ([[1, 2]], [[3, 4]], 0.0), ([[1, 2], [1, 2]], [[1, 3], [1, 2]], 0.75)],
)
def test_overlap(first: list[list[int]], second: list[list[int]], expected: float) -> None:
    assert overlap(np.array(first), np.array(second)) == expected


def unused_row(tensors: Tensors) -> None:
    tensors[WORDS][4] += 1.0  # [MASK], which no text contains as a token


def hardly(tensors: Tensors) -> None:
    for name, tensor in tensors.items():
        if name.startswith(LAYER.format(1)) and tensor.dim() == 2:
            tensors[name] = tensor * (1 + 1e-6)


@pytest.mark.parametrize(
    ("change", "name", "level"),
    mostly_slow(
        [
            (in_file(hardly), "hardly_changed", "problem"),
            (in_file(unused_row), "hardly_changed", "look"),
            (jittered(size=0.05), "vectors_moved", "ok"),
            (lambda folder: None, "vectors_moved", "ok"),
            (jittered("pooler"), "vectors_moved", "ok"),
        ],
        2,
    ),
    ids=["too little", "a row that no text has", "enough", "nothing", "nothing that is read"],
)
def test_weights_that_change_no_vector(change: object, name: str, level: str, base: Path, tmp_path: Path) -> None:
    report = compared(copy_of(base, tmp_path / "tuned", change), base)  # type: ignore[arg-type]
    levels = {finding.name: finding.level for finding in report.findings}
    assert levels[name] == level
    if name == "hardly_changed" or "nothing_changed" in levels:
        # The same vectors have the same scores.
        assert "lost_on_sample" not in levels


def test_other_dimensions_have_neighbours_and_scores_in_common(base: Path, tmp_path: Path) -> None:
    tuned = copy_of(
        base, tmp_path / "tuned", lambda folder: declare(folder, pooling("mean"), dense(), ("Normalize", {}))
    )
    report = compared(tuned, base)
    findings = {finding.name: finding for finding in report.findings}
    assert findings["vectors_moved"].sentence.startswith("Its vectors have other dimensions than the base's.")
    assert report.figures["vectors"] == []
    assert 0 < report.figures["neighbours"][0]["overlap"] < 1
    assert "lost_on_sample" in findings


# ---- scores and scale beside the base, on pairs whose similarities are chosen: every level, and figures by a loop ----


MANY, FEW = 500, 15


def pairs_of(count: int, name: str) -> ScoredPairs:
    scores = np.random.default_rng(7).integers(0, 6, count).astype(float)
    return ScoredPairs(name, tuple(f"a{n}" for n in range(count)), tuple(f"b{n}" for n in range(count)), tuple(scores))


def measured(pairs: ScoredPairs, noise: float, *, shift: float = 0.0, seed: int = 1) -> MeasuredPairs:
    """Vectors whose cosines are the scores with noise: more noise, lower ρ."""
    drawn = np.random.default_rng(seed).normal(size=len(pairs.scores))
    cosines = np.clip(0.15 * pairs.wanted + noise * drawn + shift, -1, 1)
    ones = np.stack([np.ones_like(cosines), np.zeros_like(cosines)], axis=1)
    others = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
    return MeasuredPairs(pairs, PairScorer(pairs), Pass({SERVED: ones}), Pass({SERVED: others}), [], [], "cosine", {})


def beside(tuned: float, base: float, *, is_given: bool, count: int = MANY, name: str = "x") -> BaseComparison:
    pairs = pairs_of(count, name)
    one = measured(pairs, tuned)
    other = measured(pairs, base)
    return BaseComparison(one, replace(other, scorer=one.scorer), is_given)


# Noise by which ρ is about .99, .95, .86 and .6.
LOW, MIDDLE, HIGH, HUGE = 0.03, 0.08, 0.15, 0.3
GAIN, SAME, LOSS, LARGE_LOSS = (LOW, HIGH), (MIDDLE, MIDDLE * 1.001), (MIDDLE * 1.4, MIDDLE), (HUGE, LOW)


@pytest.mark.parametrize(
    ("given", "sample", "levels"),
    mostly_slow(
        [
            ((), (SAME,), {"lost_on_sample": "ok"}),
            ((), (LOSS,), {"lost_on_sample": "look"}),
            # A large loss on one data set alone convicts nobody.
            ((), (LARGE_LOSS,), {"lost_on_sample": "look"}),
            ((), (LARGE_LOSS, SAME), {"lost_on_sample": "look"}),
            ((), (LARGE_LOSS, LARGE_LOSS), {"lost_on_sample": "problem"}),
            # With a gain where it counts, it is a trade.
            ((GAIN,), (LARGE_LOSS, LARGE_LOSS), {"gained_on_data": "ok", "lost_on_sample": "look"}),
            ((SAME,), (LARGE_LOSS, LARGE_LOSS), {"gained_on_data": "look", "lost_on_sample": "problem"}),
            ((GAIN,), (SAME,), {"gained_on_data": "ok", "lost_on_sample": "ok"}),
            ((GAIN, LOSS), (SAME,), {"gained_on_data": "look", "lost_on_sample": "ok"}),
            ((LOSS,), (SAME,), {"gained_on_data": "look", "lost_on_sample": "ok"}),
            ((LARGE_LOSS,), (SAME,), {"gained_on_data": "problem", "lost_on_sample": "ok"}),
            ((LARGE_LOSS, SAME), (SAME,), {"gained_on_data": "look", "lost_on_sample": "ok"}),
        ],
        7,
    ),
)
def test_levels(
    given: tuple[tuple[float, float], ...], sample: tuple[tuple[float, float], ...], levels: dict[str, str]
) -> None:
    data = [beside(*noise, is_given=True, name=f"g{n}") for n, noise in enumerate(given)]
    data += [beside(*noise, is_given=False, name=f"s{n}") for n, noise in enumerate(sample)]
    assert {finding.name: finding.level for finding in gain_findings(data)} == levels


def test_too_few_pairs_tell_nothing() -> None:
    noisy = pairs_of(FEW, "few")
    one, other = measured(noisy, HIGH, seed=1), measured(noisy, HIGH, seed=2)
    (finding,) = gain_findings([BaseComparison(one, replace(other, scorer=one.scorer), is_given=True)])
    assert (finding.name, finding.level) == ("gained_on_data", "not measured")


def test_gain_is_the_difference_of_two_scores_on_the_same_resamples() -> None:
    each = beside(*GAIN, is_given=True)
    wanted = each.tuned.pairs.wanted  # type: ignore[union-attr]
    sides = [one.similarities() for one in (each.tuned, each.base)]
    by_scipy = [float(scipy.stats.spearmanr(values, wanted).statistic) for values in sides]
    assert each.gain.value == pytest.approx(by_scipy[0] - by_scipy[1], abs=1e-9)
    for row in (0, 17):
        times = each.tuned.scorer.weights[row].astype(int)  # type: ignore[union-attr]
        drawn = np.repeat(np.arange(len(wanted)), times)
        one, two = (float(scipy.stats.spearmanr(values[drawn], wanted[drawn]).statistic) for values in sides)
        assert each.gain.resampled[row] == pytest.approx(one - two, abs=1e-9)


@pytest.mark.parametrize(("shift", "level"), [(0.0, "ok"), (0.01, "ok"), (0.2, "look"), (-0.35, "look")])
def test_a_cut_off_of_the_base(shift: float, level: str) -> None:
    pairs = pairs_of(MANY, "x")
    one, two = measured(pairs, 1.05 * MIDDLE, shift=shift), measured(pairs, MIDDLE)
    found = measure_cut_off(BaseComparison(one, replace(two, scorer=one.scorer), is_given=False))
    assert found is not None
    unrelated = [place for place, score in enumerate(pairs.scores) if score <= 1]
    matching = [place for place, score in enumerate(pairs.scores) if score >= 4]
    ours, theirs = one.similarities(), two.similarities()
    cut = sorted(theirs[unrelated])[math.ceil(0.99 * len(unrelated)) - 1]
    assert found.base == pytest.approx(cut)
    assert found.through == sum(ours[place] > cut for place in unrelated) / len(unrelated)
    assert found.kept == sum(ours[place] > cut for place in matching) / len(matching)
    (finding,) = cut_off_findings([found])
    assert (finding.name, finding.level) == ("cut_off", level)


@pytest.mark.parametrize("kind", ["another similarity", "too few"])
def test_no_cut_off_where_there_is_none(kind: str) -> None:
    pairs = pairs_of(FEW if kind == "too few" else MANY, "x")
    one, two = measured(pairs, LOW), measured(pairs, LOW)
    two = replace(two, similarity="dot") if kind == "another similarity" else two
    assert measure_cut_off(BaseComparison(one, two, is_given=False)) is None
    assert cut_off_findings([]) == []
