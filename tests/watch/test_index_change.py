"""What a watch says of an index when a source has a new revision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import Canary, Passport, as_base64
from embaudit.watch.history import compare_passports, switch_revisions

CPU = LoadOptions(device="cpu")


@pytest.fixture(scope="module")
def passports(weights: Callable[[int], Path]) -> list[Passport]:
    return [make_passport(CheckpointFunction(load_checkpoint(str(weights(seed)), CPU)), CPU) for seed in (0, 1)]


def test_passports_of_one_function_are_one_index(passports: list[Passport]) -> None:
    found = compare_passports(passports[0], passports[0])
    assert found is not None
    assert (found.verdict, found.compared) == ("same index", "canaries")
    assert found.median_cosine == pytest.approx(1)


def test_passports_of_two_functions_are_not(passports: list[Passport]) -> None:
    found = compare_passports(*passports)
    assert found is not None
    vectors = [{one.text: one.numbers for one in some.canaries} for some in passports]
    cosines = [
        vectors[0][text] @ vectors[1][text] / np.linalg.norm(vectors[0][text]) / np.linalg.norm(vectors[1][text])
        for text in vectors[0].keys() & vectors[1].keys()
    ]
    assert found.verdict == "other vectors"
    assert found.median_cosine == pytest.approx(np.median(cosines), abs=1e-6)
    assert "embaudit switch" in found.line


def test_another_dimension_needs_another_index(passports: list[Passport]) -> None:
    half = passports[0].reading.dimension // 2
    shorter = passports[1].model_copy(update={"reading": passports[1].reading.model_copy(update={"dimension": half})})
    found = compare_passports(passports[0], shorter)
    assert found is not None
    assert (found.verdict, found.median_cosine) == ("rebuild", None)


def test_nothing_in_common_says_nothing(passports: list[Passport]) -> None:
    other = passports[1].model_copy(update={"canaries": ()})
    assert compare_passports(passports[0], other) is None


def test_revisions_that_can_be_loaded_are_compared_as_switch_does(weights: Callable[[int], Path]) -> None:
    found = switch_revisions(str(weights(0)), str(weights(0)), CPU)
    assert (found.verdict, found.compared) == ("same index", "texts")


def test_passports_that_differ_as_half_precision_rounds_are_one_index(passports: list[Passport]) -> None:
    """A revision that is saved in half precision, as ``embaudit switch`` says of it."""
    rng = np.random.default_rng(0)

    def rounded(one: Canary) -> Canary:
        noise = 2e-2 * np.linalg.norm(one.numbers) * rng.normal(size=len(one.numbers)) / np.sqrt(len(one.numbers))
        return one.model_copy(update={"vector": as_base64(one.numbers + noise)})

    half = passports[0].model_copy(update={"canaries": tuple(map(rounded, passports[0].canaries))})
    found = compare_passports(passports[0], half)
    assert found is not None
    assert (found.verdict, "no more than half precision rounds" in found.line) == ("same index", True)
    # A defect of one kind is none.
    moved = [rounded(one) if one.kind == "digits" else one for one in passports[0].canaries]
    other = compare_passports(passports[0], passports[0].model_copy(update={"canaries": tuple(moved)}))
    assert other is not None
    assert other.verdict == "other vectors"
