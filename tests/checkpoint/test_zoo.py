"""The zoo against sentence-transformers: every folder is read the same, or refused with words that name the cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from older import sentence_transformers_6
from rare_zoo import RARE_ZOO
from tiny_models import load
from zoo import ZOO, Entry

from embaudit.checkpoint.agreement import compare_readings
from embaudit.words.errors import CheckpointError

EVERYTHING = ZOO | RARE_ZOO
# One of each kind of reading, for `make test`; the rest takes a minute and more.
QUICK = (
    *("family: xlnet", "limits: truncated on the left, with prompts", "settings: processor_kwargs"),
    *("settings: no special tokens", "layouts: version 6: saved with prompts"),
)
READ = [
    pytest.param(entry, id=name, marks=() if name in QUICK else pytest.mark.slow)
    for name, entry in EVERYTHING.items()
    if not entry.refused
]
REFUSED = [pytest.param(entry, id=name) for name, entry in EVERYTHING.items() if entry.refused]


def test_the_zoo_is_large_enough() -> None:
    assert len(READ) + len(REFUSED) >= 60
    assert set(QUICK) <= EVERYTHING.keys()


@pytest.mark.parametrize("entry", READ)
def test_what_is_read_is_read_the_same(entry: Entry, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="compares with sentence-transformers")
    folder = entry.make(tmp_path / "model")
    if any("query_length" in path.read_text() for path in folder.rglob("sentence_bert_config.json")):
        sentence_transformers_6("lengths of queries and documents")
    rows = list(compare_readings(load(folder)))
    assert {row.method for row in rows} == {"encode", "encode_query", "encode_document"}
    assert [row for row in rows if not row.is_same] == []
    # Refused texts (without a single token) do not count as read the same: most kinds must be compared.
    assert sum(row.difference is not None for row in rows) > len(rows) / 3


@pytest.mark.parametrize("entry", REFUSED)
def test_what_is_not_read_is_refused_by_name(entry: Entry, tmp_path: Path) -> None:
    folder = entry.make(tmp_path / "model")
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    assert re.search(entry.refused, caught.value.happened)
    assert caught.value.next_step
    assert "\n" not in str(caught.value)
