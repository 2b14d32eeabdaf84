"""Configurations that are built once say what configurations that are built anew each time say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import great_expectations.expectations as gxe
import pytest
from broken_rows import check, frame_of, generated
from great_expectations.core import id_dict
from great_expectations.expectations import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from some_rows import mostly_slow

from embaudit.warehouse.expectations.suites import configurations_built_once
from embaudit.warehouse.tables import TABLES

REPLACED = (
    (Expectation, "configuration"),
    (ExpectationConfiguration, "to_domain_obj"),
    (id_dict, "convert_to_json_serializable"),
)


@pytest.mark.parametrize("table", mostly_slow(TABLES, ("finding",)))
def test_results_are_the_same_as_without(monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    frame = frame_of(table, [*generated(table)])
    quick = check(table, frame, planned=len(frame))
    monkeypatch.setattr("embaudit.warehouse.expectations.suites.configurations_built_once", nullcontext)
    assert quick == check(table, frame, planned=len(frame))
    assert not all(result.success for result in quick)


def test_a_configuration_is_kept_within_alone() -> None:
    expectation = gxe.ExpectColumnValuesToNotBeNull(column="a")
    assert expectation.configuration is not expectation.configuration
    with configurations_built_once(), ThreadPoolExecutor(1) as another:
        assert expectation.configuration is expectation.configuration
        assert another.submit(lambda: expectation.configuration is not expectation.configuration).result()
    expectation.column = "b"
    assert expectation.configuration.kwargs == {"column": "b"}


@pytest.mark.parametrize(("owner", "name"), REPLACED, ids=[name for _, name in REPLACED])
def test_great_expectations_is_as_it_was_afterwards(owner: object, name: str) -> None:
    before = vars(owner)[name]
    with configurations_built_once(), configurations_built_once():
        assert vars(owner)[name] is not before
    assert vars(owner)[name] is before
    with pytest.raises(KeyError), configurations_built_once():
        raise KeyError
    assert vars(owner)[name] is before
