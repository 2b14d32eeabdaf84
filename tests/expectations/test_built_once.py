"""Configurations that are built once say what configurations that are built anew each time say."""

from __future__ import annotations

from contextlib import nullcontext

import great_expectations.expectations as gxe
import pytest
from broken_rows import check, frame_of, generated

from embaudit.warehouse.expectations.built_once import configurations_built_once


@pytest.mark.slow
def test_results_are_the_same_as_without(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = frame_of("length_bin", [*generated("length_bin")])
    quick = check("length_bin", frame, planned=len(frame))
    monkeypatch.setattr("embaudit.warehouse.expectations.built_once.configurations_built_once", nullcontext)
    assert quick == check("length_bin", frame, planned=len(frame))
    assert not all(result.success for result in quick)


def test_a_configuration_is_kept_within_alone() -> None:
    expectation = gxe.ExpectColumnValuesToNotBeNull(column="a")
    assert expectation.configuration is not expectation.configuration
    with configurations_built_once():
        assert expectation.configuration is expectation.configuration
    expectation.column = "b"
    assert expectation.configuration.kwargs == {"column": "b"}
