"""``embaudit check URL``: what is told of a served model from its vectors alone."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from commands import run_here
from compared_functions import endpoint_of
from some_rows import mostly_slow

import embaudit
from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Refusal, Served, serving
from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.measures.quality.material import Collection, Material, ScoredPairs, sample_material
from embaudit.pages.text import print_page
from embaudit.questions.blackbox.limit import LONGEST, find_cut
from embaudit.questions.blackbox.quality import (
    DOCUMENTS,
    FAMILIES,
    FIRST_DOCUMENTS,
    FIRST_QUERIES,
    QUERIES,
    CallerPrompts,
    served_quality,
)
from embaudit.questions.check.check import CheckReport
from embaudit.questions.check.page import check_page
from embaudit.questions.check.served import check_served
from embaudit.words.errors import UsageError

Encode = Callable[[list[str]], np.ndarray]
DIMENSION = 48


@functools.cache
def word_vector(word: str) -> np.ndarray:
    return np.random.default_rng(list(word.encode())).normal(size=DIMENSION)


def bag(text: str, words: slice = slice(None)) -> np.ndarray:
    """The mean of random vectors of some of a text's words, of length 1: word overlap, and nothing more."""
    rows = [word_vector(word) for word in re.split(r"\s", text.lower())[words]]
    found = np.mean(rows, axis=0)
    return found / np.linalg.norm(found)


def each(of_text: Callable[[str], np.ndarray]) -> Encode:
    return lambda texts: np.array([of_text(text) for text in texts])


def refusing(is_refused: Callable[[str], bool]) -> Encode:
    def encode(texts: list[str]) -> np.ndarray:
        if any(is_refused(text) for text in texts):
            raise Refusal(400, "not that")
        return np.array([bag(text) for text in texts])

    return encode


def checked(encode: Encode, material: Material | None = None, asking: CallerPrompts | None = None) -> CheckReport:
    with endpoint_of(Served(encode)) as endpoint:
        return check_served(endpoint, Material() if material is None else material, asking)


def found(report: CheckReport, name: str) -> Finding:
    return next(finding for finding in report.findings if finding.name == name)


NOISE = np.random.default_rng(1)
# (what is served, the rule, its level, least and most of its value)
CASES: dict[str, tuple[Encode, str, str, float, float]] = {
    "reads all": (each(bag), "tail", "ok", LONGEST, LONGEST),
    "reads the first 61 words": (each(lambda text: bag(text, slice(61))), "tail", "look", 56, 61),
    "reads the last 200 words": (each(lambda text: bag(text, slice(-200, None))), "tail", "look", 190, 200),
    "reads the first 200 words": (each(lambda text: bag(text, slice(200))), "tail", "ok", 190, 200),
    "refuses more than 150 words": (refusing(lambda text: len(text.split()) > 150), "tail", "look", 140, 150),
    "refuses empty texts": (refusing(lambda text: not text), "no_vector", "look", 1, 1),
    "refuses emoji": (refusing(lambda text: "👍" in text), "not_finite", "problem", 1, 1),
    "NaN for digits": (
        each(lambda text: bag(text) * (np.nan if "3.14159" in text else 1)),
        "not_finite",
        "problem",
        1,
        1,
    ),
    "zeros for digits": (each(lambda text: bag(text) * ("3.14159" not in text)), "not_finite", "problem", 1, 1),
    "another length": (each(lambda text: bag(text) * 3), "norm", "look", 2.9, 3.1),
    "lengths of its own": (each(lambda text: bag(text) * (1 + len(text) % 5)), "norm", "look", 4.9, 5.1),
    "unit length": (each(bag), "norm", "ok", 0.999, 1.001),
    "whole numbers": (each(lambda text: np.round(bag(text) * 127)), "norm", "look", 100, 150),
    "one vector for all": (each(lambda text: word_vector("gold")), "same_vector", "problem", 10, 1e6),
    "another vector each time": (
        each(lambda text: bag(text) + NOISE.normal(size=DIMENSION) / 20),
        "unsteady",
        "problem",
        1e-3,
        2,
    ),
    "one function": (each(bag), "one_function", "ok", 0, 1e-9),
}


@pytest.mark.parametrize("name", mostly_slow(CASES, 6))
def test_what_a_served_model_does_is_told_from_its_vectors(name: str) -> None:
    encode, rule, level, least, most = CASES[name]
    report = checked(encode)
    finding = found(report, rule)
    assert finding.level == level, finding.sentence
    assert finding.value is not None
    assert least <= finding.value <= most, finding.sentence
    assert (report.verdict == "do not serve") == (level == "problem")
    json.dumps(report.as_json(), allow_nan=False)
    print_page(check_page(report))


def paraphrases(count: int = 120) -> ScoredPairs:
    """Pairs that share no word; those that match share their number."""
    firsts = [f"one{place} two{place}" for place in range(count)]
    seconds = [f"three{place if place % 2 else place + 1} four{place}" for place in range(count)]
    return ScoredPairs("pairs", tuple(firsts), tuple(seconds), tuple(float(place % 2) for place in range(count)))


def knowing(text: str) -> np.ndarray:
    """A vector of a text's numbers, whatever its words are."""
    return bag(" ".join(re.findall(r"\d+", text)) or text)


def test_scores_are_held_against_word_overlap() -> None:
    material = Material((paraphrases(),))
    good = checked(each(knowing), material)
    assert found(good, "no_better_than_words").level == "ok"
    assert found(good, "score_scale").value is not None
    assert good.figures["data"][0]["score"]["value"] > 0.6
    only_words = checked(each(bag), sample_material())
    assert only_words.verdict == "do not serve"
    assert found(only_words, "no_better_than_words").level == "problem"


def needing_prompts(collection: Collection) -> Callable[[str], np.ndarray]:
    relevant = {collection.documents[place]: query for query, one in enumerate(collection.relevant) for place in one}

    def vector(text: str) -> np.ndarray:
        """Finds the relevant document only if the texts have the prompts that it was trained with."""
        for prompt in ("query: ", "passage: "):
            if text.startswith(prompt):
                own = text.removeprefix(prompt)
                place = collection.queries.index(own) if own in collection.queries else relevant.get(own)
                return bag(f"number{place}") if place is not None else bag(own)
        return bag(text)

    return vector


@pytest.mark.slow
def test_a_prompt_that_is_left_out_is_noticed() -> None:
    (collection,) = sample_material().collections
    encode = needing_prompts(collection)
    report = checked(each(encode), Material((), (collection,)))
    finding = found(report, "better_prompts")
    assert finding.level == "look"
    assert "E5" in finding.sentence
    asked_right = checked(each(encode), Material((), (collection,)), CallerPrompts("query: ", "passage: "))
    assert "better_prompts" not in {one.name for one in asked_right.findings}
    assert asked_right.figures["data"][0]["score"]["value"] > 0.95


@pytest.mark.parametrize("needs", [True, False])
def test_prompts_that_gain_nothing_on_half_of_the_queries_are_tried_no_further(needs: bool) -> None:
    (collection,) = sample_material().collections
    of_text = needing_prompts(collection) if needs else bag
    sent: set[str] = set()

    def encode(texts: Sequence[str], role: str) -> np.ndarray:
        sent.update(texts)
        return np.array([of_text(text) for text in texts])

    report = served_quality(encode, Material((), (collection,)), CallerPrompts())
    assert [one["name"] for one in report.figures["alternatives"]] == ["lower-cased text", *FAMILIES]
    for prompt, all_of_them, first in (("query: ", QUERIES, FIRST_QUERIES), ("passage: ", DOCUMENTS, FIRST_DOCUMENTS)):
        assert sum(text.startswith(prompt) for text in sent) == (all_of_them if needs else first), prompt


@pytest.mark.slow
def test_the_packaged_checkpoint_served_passes(minilm: Checkpoint) -> None:
    sample = sample_material()
    few = Material(tuple(some.first(100) for some in sample.pairs), (sample.collections[0].first(30, 60)[0],))
    report = checked(faithful(minilm), few)
    assert report.verdict in ("nothing found wrong", "look first"), report.summary.line
    tail = found(report, "tail").value or 0
    # 254 tokens of its own; the words of the text have 1.2 tokens each.
    assert 180 <= tail <= 254
    assert found(report, "no_better_than_words").level == "ok"


def command(*arguments: str) -> tuple[int, str, str]:
    done = run_here(("check", *arguments), {**os.environ, "HF_HUB_OFFLINE": "1"}, Path.cwd())
    return done.returncode, done.stdout, done.stderr


def test_the_command_asks_an_endpoint(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    some = paraphrases(40)
    rows = [f"{one},{two},{score}" for one, two, score in zip(some.firsts, some.seconds, some.scores, strict=True)]
    pairs.write_text("\n".join(["sentence1,sentence2,score", *rows]))
    page = tmp_path / "check.html"
    with serving(Served(each(knowing), api="tei")) as address:
        script = (
            "import sys; from embaudit.cli.main import run; code = run(); "
            "print(*sorted({'torch', 'transformers', 'sklearn'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
        )
        arguments = ["check", address, "--pairs", str(pairs), "--json", "--out", str(page)]
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
        report = embaudit.check(address, pairs=[pairs])
    assert f"Texts are sent to {address}" in done.stderr
    # Two seconds and 300 MB that a served model does not need.
    assert done.stderr.splitlines()[-1] == ""
    result = json.loads(done.stdout)
    assert (result["kind"], result["interface"]) == ("endpoint", "tei, 48 dimensions")
    assert result["verdict"] == report.verdict
    assert done.returncode == (1 if report.verdict == "do not serve" else 0)
    assert report.checkpoint.startswith(address)
    assert "Check of" in page.read_text(encoding="utf-8")


def test_what_an_endpoint_does_not_take_is_refused() -> None:
    code, _, told = command("http://203.0.113.1:8080")
    assert (code, "Nothing was sent" in told, "--yes" in told) == (2, True, True)
    code, _, told = command("http://127.0.0.1:9", "--pooling", "cls")
    assert code == 2
    assert "pooling cannot be set" in told
    code, _, told = command("http://127.0.0.1:9", "--query-prompt", "query")
    assert code == 2
    assert "names a prompt in a checkpoint's files" in told
    with pytest.raises(UsageError, match="base cannot be set"):
        embaudit.check("http://127.0.0.1:9", base="packaged:all-MiniLM-L6-v2")
    code, _, told = command("http://127.0.0.1:9")
    assert code == 2
    assert "Nothing answers at" in told


def test_a_cut_that_cannot_be_told_is_not_measured() -> None:
    finding = found(checked(each(lambda text: word_vector("gold"))), "tail")
    assert finding.level == "not measured"
    assert finding.value is None


@pytest.mark.parametrize(("often", "place"), [(4, 0), (4, 1), (5, 2), (7, 3)])
def test_a_cut_is_found_though_some_answers_are_rounded_otherwise(often: int, place: int) -> None:
    """Most answers come out bit for bit, so that one repetition shows no noise and the next one does."""
    asked = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(texts)
        rows = np.array([bag(text, slice(60)) for text in texts])
        return rows + (2e-3 * np.eye(DIMENSION)[0] if len(asked) % often == place else 0)

    with serving(Served(encode)) as address, open_endpoint(address) as endpoint:
        found = find_cut(endpoint)
    assert found is not None
    assert found.words is not None
    assert 57 <= found.words <= 60
