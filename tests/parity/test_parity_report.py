"""What parity says of servers: faithful ones, and ones that do each thing wrong."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_here
from compared_functions import compared
from some_rows import mostly_slow

import embaudit
from benchmarks.serving.command import outcome_of
from benchmarks.serving.faults import FAULTS, HARMLESS, Serving, each, faithful, padded, states_of, unit
from benchmarks.serving.server import Refusal, Served, serving
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.measures.quality.material import Material, sample_material
from embaudit.pages.text import print_page
from embaudit.questions.parity.compare import KindDifference
from embaudit.questions.parity.findings import findings_of
from embaudit.questions.parity.page import parity_page
from embaudit.words.errors import UsageError


def pooled_as(checkpoint: Checkpoint, mode: str) -> Checkpoint:
    return replace(checkpoint, recipe=replace(checkpoint.recipe, pooling=(mode,)))


def test_a_faithful_server_is_the_same_function(served_checkpoint: Checkpoint) -> None:
    material = sample_material()
    few = Material(tuple(some.first(40) for some in material.pairs), material.collections)
    report = compared(served_checkpoint, Served(faithful(served_checkpoint)), few)
    assert (report.verdict, report.line) == ("the same function", "The same function.")
    assert max(kind.worst for kind in report.kinds) <= 1e-5
    assert {one.how.split(",")[0] for one in report.asked} == {
        "in a batch of mixed length",
        "in a batch of equal length",
        "a second time",
        "while 7 others are",
        "for base64",
        "with 255 others in a request",
        "beside an empty text",
    }
    assert [corpus.change.value for corpus in report.corpora] == [0.0, 0.0]
    assert [corpus.overlap for corpus in report.corpora] == [None, 1.0]
    assert report.explanation is None
    json.dumps(report.as_json(), allow_nan=False)


def causal_states(checkpoint: Checkpoint, ids: list[int]) -> np.ndarray:
    """(n, d) last states where each token sees those before it: each is the last of a text that ends there."""
    import torch

    config = copy.deepcopy(checkpoint.model.config)
    config.is_decoder = True
    decoder = type(checkpoint.model)(config)
    decoder.load_state_dict(checkpoint.model.state_dict())
    with torch.inference_mode():
        found = decoder.eval()(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).last_hidden_state
    return np.asarray(found[0].numpy(), dtype=np.float64)


WRONG = {
    "cls pooling": (lambda c: faithful(pooled_as(c, "cls")), "takes cls instead of mean pooling"),
    "a declared prompt": (lambda c: lambda texts: faithful(c)([f"find: {t}" for t in texts]), "puts 'find: ' before"),
    "two things at once": (
        lambda c: lambda texts: faithful(pooled_as(c, "max"))([f"find: {t}" for t in texts]),
        "puts 'find: ' before texts; it takes max instead of mean pooling",
    ),
    "cut short": (
        lambda c: faithful(replace(c, limits=dict.fromkeys(c.limits, 32))),
        "reads 32 tokens",
    ),
    "cut at no usual limit": (lambda c: faithful(replace(c, limits=dict.fromkeys(c.limits, 41))), "reads 41 tokens"),
    "cut at no usual limit, and pooled otherwise": (
        lambda c: faithful(pooled_as(replace(c, limits=dict.fromkeys(c.limits, 53)), "max")),
        "reads 53 tokens; it takes max instead of mean pooling",
    ),
    "cut after characters": (lambda c: lambda texts: faithful(c)([t[:137] for t in texts]), "reads 137 characters"),
    "a causal mask": (
        lambda c: lambda texts: np.array([unit(causal_states(c, c.tokenize([t])[0]).mean(0)) for t in texts]),
        "lets tokens see only those before them",
    ),
    "unnormalised": (
        each(lambda c, text: states_of(c, c.tokenize([text])[0]).mean(0)),
        "skips Normalize",
    ),
    "without special tokens": (
        each(lambda c, text: unit(states_of(c, c.own_ids([text])[0][:126] or [c.suffix_ids[0]]).mean(0))),
        "adds no special tokens",
    ),
    "half the dimensions": (lambda c: lambda texts: faithful(c)(texts)[:, :16], "keeps the first 16 of 32 dimensions"),
    "noise": (
        lambda c: lambda texts: np.random.default_rng(len(texts[0])).normal(size=(len(texts), c.dimension)),
        "No way to use the checkpoint|Closest|a second time",
    ),
    "padding": (padded(False), "It counts padding in the mean"),
}

# Many other ways are tried before these.
QUICK = ("padding",)


@pytest.mark.parametrize("name", mostly_slow(WRONG, QUICK))
def test_what_a_server_does_otherwise_is_found_and_named(served_checkpoint: Checkpoint, name: str) -> None:
    make, said = WRONG[name]
    if name == "padding":
        served_checkpoint = replace(served_checkpoint, limits=dict.fromkeys(served_checkpoint.limits, 128))
    report = compared(served_checkpoint, Served(make(served_checkpoint)))  # type: ignore[operator]
    assert report.verdict == "another function"
    assert re.search(said, " ".join(finding.sentence for finding in report.findings)), report.line
    print_page(parity_page(report))
    json.dumps(report.as_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("encode", "verdict", "said"),
    mostly_slow(
        [
            ("refuses empty texts", "the same function", "1 of 1 texts of the kind “empty” get no vector"),
            pytest.param(
                "fails on capitals", "another function", "of the kind “capitals” get no vector", marks=pytest.mark.slow
            ),
            ("NaN for digits", "another function", "“digits” get NaN"),
            ("nothing at all", "another function", "get NaN"),
        ],
        1,
    ),
)
def test_texts_without_a_vector(served_checkpoint: Checkpoint, encode: str, verdict: str, said: str) -> None:
    good = faithful(served_checkpoint)

    def answer(texts: list[str]) -> np.ndarray:
        found = good(texts)
        for place, text in enumerate(texts):
            if encode == "refuses empty texts" and not text:
                raise Refusal(400, "input cannot be empty")
            if encode == "fails on capitals" and text == "HEART AND BRAIN":
                raise Refusal(500, "no such token")
            if encode == "NaN for digits" and "3.14159" in text:
                found[place] = np.nan
            if encode == "nothing at all":
                found[place] = np.nan
        return found

    report = compared(served_checkpoint, Served(answer))
    assert report.verdict == verdict
    assert said in report.line + " ".join(finding.sentence for finding in report.findings)


@pytest.mark.parametrize(
    ("numbers", "said"), mostly_slow([("<f8", "It encodes float64"), ("<f2", "It encodes float16")], 1)
)
def test_other_numbers_in_base64_are_named(served_checkpoint: Checkpoint, numbers: str, said: str) -> None:
    """Read as float32, they are other numbers, of another count."""
    served = Served(faithful(served_checkpoint), as_bytes=lambda row: row.astype(numbers).tobytes())
    report = compared(served_checkpoint, served)
    assert report.verdict == "another function"
    assert said in report.line


def test_nan_in_a_batch_alone_never_passes(served_checkpoint: Checkpoint) -> None:
    good = faithful(served_checkpoint)

    def answer(texts: list[str]) -> np.ndarray:
        found = good(texts)
        if len(texts) > 1:
            # One text is lost in a batch, and another gets some other vector.
            found[0], found[1] = np.nan, found[1][::-1]
        return found

    report = compared(served_checkpoint, Served(answer))
    assert report.verdict == "another function"
    said = [finding.sentence for finding in report.findings if "in a batch" in finding.sentence]
    assert len(said) == 2
    assert all("NaN or a vector of zeros" in sentence for sentence in said)


def difference(kind: str, distances: list[float]) -> KindDifference:
    count = len(distances)
    return KindDifference(kind, ("x",) * count, np.array(distances), np.ones(count), np.ones(count, dtype=bool), {})


@pytest.mark.parametrize(
    ("kinds", "level"),
    [
        ({"plain": [1e-7, 2e-7], "digits": [1e-6]}, "ok"),
        # As half precision differs: a little, everywhere.
        ({"plain": [2e-5, 3e-5], "digits": [1e-4], "scripts": [5e-4, 1e-5]}, "look"),
        # As a defect of one kind differs, however little.
        ({"plain": [1e-9, 1e-9], "digits": [1e-9], "scripts": [1e-3, 1e-3]}, "problem"),
        ({"plain": [2e-5], "digits": [5e-3], "scripts": [5e-4]}, "problem"),
    ],
)
def test_rounding_is_told_from_another_function(kinds: dict[str, list[float]], level: str) -> None:
    found = list(findings_of([difference(*item) for item in kinds.items()], (8, 8), None, ()))
    assert [finding.level for finding in found] == [level]


def test_two_checkpoints_are_compared_as_an_endpoint_is(tiny_folder: Path, tmp_path: Path) -> None:
    from tiny import tiny_bert

    same = embaudit.parity(tiny_folder, tiny_folder, dtype="bfloat16")
    assert same.verdict == "the same function"
    other = embaudit.parity(tiny_folder, tiny_bert(tmp_path / "other", seed=1), with_explanation=False)
    assert other.verdict == "another function"
    assert other.explanation is None


@pytest.mark.parametrize(
    ("way", "said"),
    [
        pytest.param({"kept_dimensions": 16}, "It keeps the first 16 of 32 dimensions", marks=pytest.mark.slow),
        ({"stored": "int8"}, "It gives whole numbers (int8 vectors) in place of fractions"),
        pytest.param(
            {"stored": "binary"}, "It gives signs (binary vectors) in place of numbers", marks=pytest.mark.slow
        ),
        ({"stored": "binary", "kept_dimensions": 16}, "keeps the first 16 of 32 dimensions"),
    ],
)
def test_vectors_as_an_index_stores_them(tiny_folder: Path, way: dict[str, Any], said: str) -> None:
    report = embaudit.parity(tiny_folder, tiny_folder, **way)
    assert report.verdict == "another function"
    assert said in report.line
    assert report.explanation is not None
    assert report.explanation.is_complete
    # What is lost by it is said on pairs and queries.
    assert [corpus.change.value is not None for corpus in report.corpora] == [True, True]


def test_what_cannot_be_had_of_the_other_is_refused(tiny_folder: Path) -> None:
    with pytest.raises(UsageError, match="There are 32 dimensions"):
        embaudit.parity(tiny_folder, tiny_folder, kept_dimensions=64)
    with pytest.raises(UsageError, match="asked as they are"):
        embaudit.parity(tiny_folder, "http://127.0.0.1:9", dtype="bfloat16")
    if importlib.util.find_spec("optimum") is None:
        with pytest.raises(UsageError, match="openvino is not installed"):
            embaudit.parity(tiny_folder, tiny_folder, backend="openvino")


def test_settings_are_those_of_the_first_checkpoint(tiny_folder: Path) -> None:
    report = embaudit.parity(tiny_folder, tiny_folder, pooling="cls", with_explanation=True)
    assert report.verdict == "another function"
    assert "takes mean instead of cls pooling" in report.line


def parity_command(*arguments: str) -> tuple[int, str, str]:
    done = run_here(("parity", *arguments), {**os.environ, "HF_HUB_OFFLINE": "1"}, Path.cwd())
    return done.returncode, done.stdout, done.stderr


def test_the_command_says_where_texts_go_and_ends_with_its_verdict(
    tiny_folder: Path, served_checkpoint: Checkpoint, tmp_path: Path
) -> None:
    page = tmp_path / "parity.html"
    with serving(Served(faithful(served_checkpoint))) as address:
        code, said, told = parity_command(str(tiny_folder), "--with", address, "--out", str(page))
    assert code == 0, said + told
    assert "The same function" in said
    assert f"Texts are sent to {address}" in told
    assert "The same function" in page.read_text(encoding="utf-8")
    with serving(Served(faithful(pooled_as(served_checkpoint, "cls")), api="tei")) as address:
        code, said, _ = parity_command(str(tiny_folder), "--with", address, "--json")
    assert code == 1
    assert json.loads(said)["explanation"]["differs"] == ["takes cls instead of mean pooling"]


def test_the_command_sends_nothing_to_another_machine_unasked(tiny_folder: Path) -> None:
    code, _, told = parity_command(str(tiny_folder), "--with", "http://203.0.113.1:8080")
    assert code == 2
    assert "Nothing was sent" in told
    assert "--yes" in told
    code, _, told = parity_command(str(tiny_folder), "--with", "http://127.0.0.1:9")
    assert code == 2
    assert "Nothing answers at http://127.0.0.1:9" in told


@pytest.mark.slow
@pytest.mark.parametrize("way", [*FAULTS, *HARMLESS], ids=lambda way: way.name)
def test_every_way_to_serve_the_packaged_checkpoint(minilm: Checkpoint, way: Serving) -> None:
    checkpoint = load_checkpoint("packaged:all-MiniLM-L6-v2", LoadOptions(device="cpu"))
    outcome = outcome_of(way, checkpoint, Material())
    assert outcome.judged == "right", outcome.report.line
