"""A search by tenant: the one whose rows are not found is named, whatever the mean over all says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stores.test_langchain_faiss import build as langchain_folder

import embaudit
from embaudit.words.errors import UsageError
from tests.planted_indexes import built, clustered, written

ROWS = 600


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """LangChain looks for what a filter keeps among the first ``fetch_k`` alone: a small tenant gets little."""
    vectors = clustered(ROWS, 16)
    titles = ["small" if n % 40 == 0 else "large" if n % 3 else "middle" for n in range(ROWS)]
    ids = [f"row-{n}" for n in range(ROWS)]
    return langchain_folder(tmp_path_factory.mktemp("shop"), vectors, [f"text {n}" for n in range(ROWS)], ids, titles)


def test_the_worst_tenant_is_named(store: str) -> None:
    report = embaudit.search(store, count=40, where_each="metadata.title")
    (found,) = [one for one in report.findings if one.name == "tenants"]
    assert found.level == "problem"
    assert "(3 values)" in found.sentence
    assert "least for 'small'" in found.sentence
    assert "of its 15 rows" in found.sentence
    assert "get fewer than ten results for 'small', which has 15 rows" in found.sentence
    by_value = {tenant.value: tenant for tenant in report.tenants}
    assert {name: tenant.rows for name, tenant in by_value.items()} == {"small": 15, "large": 390, "middle": 195}
    small, large = by_value["small"].recall, by_value["large"].recall
    assert small is not None
    assert large is not None
    assert (found.value, found.low, found.high) == (small.value, small.low, small.high)
    assert large.known > small.known + 0.3
    # Without a filter, all is well.
    assert report.recall is not None
    assert report.recall.known == 1
    (section,) = [section for section in report.page().sections if section.title == "By tenant"]
    (table,) = section.parts
    assert next(row["value"] for row in table.records()) == "small"  # type: ignore[union-attr]
    figures = {(one.figure, one.item): one.value for one in report.answer_figures()}
    assert figures["recall_at_10", "for small"] == small.value
    assert report.as_json()["tenants"][0]["value"] == "large", "the most frequent first"


def test_with_a_wider_search_every_tenant_finds(store: str) -> None:
    report = embaudit.search(store, count=40, where_each="metadata.title", query_settings={"fetch_k": ROWS})
    (found,) = [one for one in report.findings if one.name == "tenants"]
    assert found.level == "ok"
    assert all(tenant.recall is not None and tenant.recall.known == 1 for tenant in report.tenants)


def test_a_field_that_no_row_has_is_named(store: str) -> None:
    with pytest.raises(UsageError, match="no field 'tenant'") as raised:
        embaudit.search(store, where_each="tenant")
    assert "metadata.title" in (raised.value.next_step or "")


def test_a_search_that_takes_no_filter_measures_no_tenant(tmp_path: Path) -> None:
    index = built("Flat", np.asarray(clustered(200, 16), np.float32))
    report = embaudit.search(written(index, tmp_path / "rows.faiss"), count=20, where_each="id")
    (found,) = [one for one in report.findings if one.name == "tenants"]
    assert found.level == "not measured"
