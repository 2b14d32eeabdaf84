"""``embaudit filter``: which audit and which tokens, the file and its readers, and the example of the docs."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from plausible import audit_record, measure_runs, plausible_rows
from plausible_sticky import CONTROL_SLOPE, SLOPES
from ready_warehouses import put_audit

from embaudit.cli.main import cli
from embaudit.remedies.screening import read_token_list
from embaudit.remedies.screening.density import (
    CHARACTERS_PER_BATCH,
    FALSE_ALARMS,
    TEXTS_PER_BATCH,
    OrdinaryRate,
    counts_of,
    in_batches,
    is_unusual,
    log_tail,
    score,
    tokenised,
)
from embaudit.words.errors import EmbauditError, UsageError

DOCS = (Path(__file__).parents[2] / "docs/screen.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
STICKY = ("sticky_validation", "sticky_summary", "sticky_severity", "sticky_score")


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a1 of owner/one; later a2, which did not look for sticky tokens; a3 of owner/two."""
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("filter") / "warehouse.duckdb"))
    one = plausible_rows("c1", "owner/one")
    others = [run for run in measure_runs() if run.measure != "sticky"]
    for audit_id, minutes, rows, runs in (
        ("a1", 0, one, measure_runs()),
        ("a2", 1, {name: rows for name, rows in one.items() if name not in STICKY}, others),
    ):
        record = audit_record(audit_id, "c1", minutes=minutes)
        record = replace(record, settings={**record.settings, "source": "owner/one"})
        put_audit(place, record, rows, runs)
    put_audit(place, audit_record("a3", "c2", minutes=2), plausible_rows("c2", "owner/two", shift=0.2), measure_runs())
    return place


def run(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["filter", *arguments, "--warehouse", str(warehouse)])


def listed(warehouse: Path, *arguments: str) -> dict[str, Any]:
    result = run(warehouse, *arguments)
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_the_severe_tokens_of_an_audit_the_worst_first(warehouse: Path) -> None:
    found = listed(warehouse, "a1")
    assert [one["token_id"] for one in found["tokens"]] == [4, 5, 6]
    assert [one["severity"] for one in found["tokens"]] == ["strong", "moderate", "moderate"]
    worst, _, mask = found["tokens"]
    loss = 1 - SLOPES[4] / CONTROL_SLOPE
    assert (worst["token"], worst["text"], worst["is_reachable"]) == ("龸", "龸", True)
    assert [worst["loss"], worst["loss_low"], worst["loss_high"]] == pytest.approx([loss, loss - 0.1, loss + 0.1])
    assert not mask["is_reachable"]
    assert (found["checkpoint"], found["checkpoint_id"], found["audit_id"]) == ("owner/one", "c1", "a1")
    assert (found["copies"], found["validated"], found["severity"]) == (8, 3, "moderate")
    (row,) = (row for row in plausible_rows()["checkpoint"] if row["checkpoint_id"] == "c1")
    assert found["tokenizer_sha256"] == row["tokenizer_sha256"]
    assert found["max_length"] == row["max_length"]
    (estimate,) = (row for row in plausible_rows()["sticky_severity"] if row["severity"] == "moderate")
    assert [found[name] for name in ("estimated", "estimated_low", "estimated_high")] == [
        estimate[name] for name in ("estimated", "estimated_low", "estimated_high")
    ]


def test_how_severe_is_chosen_and_none_is_a_list_too(warehouse: Path) -> None:
    assert [one["token_id"] for one in listed(warehouse, "a1", "--severity", "strong")["tokens"]] == [4]
    # The slopes of a3 are .2 higher: its worst token loses .36.
    assert [one["token_id"] for one in listed(warehouse, "a3", "--severity", "strong")["tokens"]] == []
    assert [one["token_id"] for one in listed(warehouse, "a3", "--severity", "weak")["tokens"]] == [4, 5]


@pytest.mark.parametrize(("name", "audit"), [("owner/one", "a1"), ("owner/two", "a3"), ("latest", "a3"), ("a1", "a1")])
def test_a_checkpoint_stands_for_its_newest_audit_that_looked(warehouse: Path, name: str, audit: str) -> None:
    assert listed(warehouse, name)["audit_id"] == audit


def test_an_audit_that_did_not_look_says_what_to_type(warehouse: Path) -> None:
    error = run(warehouse, "a2").exception
    assert isinstance(error, UsageError)
    assert "did not look for sticky tokens" in error.happened
    assert error.next_step == "Run: embaudit audit owner/one --measures sticky"
    assert isinstance(run(warehouse, "owner/three").exception, UsageError)


def test_a_written_list_is_read_back(warehouse: Path, tmp_path: Path) -> None:
    out = tmp_path / "severe.json"
    result = run(warehouse, "a1", "--out", str(out))
    assert result.stdout == f"{out}: 3 tokens of owner/one, audit a1.\n"
    assert "龸" in out.read_text(encoding="utf-8")
    read = read_token_list(out)
    assert read.model_dump(mode="json") == json.loads(run(warehouse, "a1").stdout)
    assert [one.token for one in read.unreachable] == ["[MASK]"]
    assert read.losses == pytest.approx({4: 1 - SLOPES[4] / CONTROL_SLOPE, 5: 1 - SLOPES[5] / CONTROL_SLOPE})
    result = run(warehouse, "a1", "--out", str(out / "below"))
    assert isinstance(result.exception, EmbauditError)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a list of tokens"),
        ("[]", "is not a list of tokens"),
        ('{"version": 2}', "version"),
        ('{"version": 1, "tokens": [{"token_id": -1}]}', "checkpoint"),
    ],
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "severe.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=words) as error:
        read_token_list(path)
    assert "embaudit filter" in error.value.next_step
    with pytest.raises(UsageError, match="cannot be read"):
        read_token_list(tmp_path / "missing.json")


def test_the_example_of_the_docs_strips_and_measures(
    warehouse: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(warehouse, "a1", "--out", str(tmp_path / "severe.json")).exit_code == 0
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_checkpoint, "my-checkpoint")
    names: dict[str, Any] = {}
    exec(EXAMPLE, names)
    assert len([line for line in EXAMPLE.split("\n") if line.strip() and "import" not in line]) <= 10
    tokenizer = names["tokenizer"]
    names["severe"].clear()
    names["severe"] |= {tokenizer.token_to_id(token) for token in ("river", "##ing", "[MASK]")}
    long = "stone " * 200
    for text, stripped, share in (
        ("The river was old.", "The  was old.", 1 / 5),
        ("river river stone", "  stone", 2 / 3),
        ("working", "work", 1 / 2),
        ("stone [MASK] iron", "stone  iron", 1 / 3),
        ("Rivers of iron", "s of iron", 1 / 4),
        (long + "river", long, 1 / 201),
        ("", "", 0.0),
    ):
        assert names["strip"](text) == (stripped, pytest.approx(share)), text


# ---- batches that stream, counts, scores and tails against slow and independent ones ----


IDS = st.lists(st.integers(0, 9), min_size=1, max_size=40)


def letters(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


@given(st.lists(st.text(max_size=5), max_size=2_000))
def test_every_text_comes_back_in_order_with_its_own_ids(texts: list[str]) -> None:
    found = list(tokenised(enumerate(texts), letters))
    assert [row for row, _, _ in found] == list(range(len(texts)))
    assert [text for _, text, _ in found] == texts
    assert [ids for _, _, ids in found] == letters(texts)


@given(st.lists(st.integers(0, CHARACTERS_PER_BATCH + 10), max_size=30))
def test_no_batch_is_larger_than_the_longest_text_makes_it(sizes: list[int]) -> None:
    rows = [(place, "x" * size) for place, size in enumerate(sizes)]
    batches = list(in_batches(rows))
    assert [row for batch in batches for row in batch] == rows
    for batch in batches:
        assert len(batch) == 1 or sum(len(text) for _, text in batch) <= CHARACTERS_PER_BATCH


def test_an_endless_source_is_read_two_batches_ahead() -> None:
    read = itertools.count()

    def endless() -> Iterator[tuple[int, str]]:
        return ((row, "text") for row in read)

    found = tokenised(endless(), letters)
    assert [next(found)[0] for _ in range(3)] == [0, 1, 2]
    found.close()
    # A batch is known to be full by the row after it.
    assert next(read) <= 2 * TEXTS_PER_BATCH + 1


def test_a_tokenizer_that_fails_is_heard() -> None:
    def broken(texts: list[str]) -> list[list[int]]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        list(tokenised([(0, "text")], broken))


@given(IDS, st.sets(st.integers(0, 9)), st.dictionaries(st.integers(0, 9), st.floats(0, 1)))
def test_counts_and_scores_are_what_a_loop_finds(ids: list[int], wanted: set[int], losses: dict[int, float]) -> None:
    by_hand: dict[int, int] = {}
    for token_id in ids:
        if token_id in wanted:
            by_hand[token_id] = by_hand.get(token_id, 0) + 1
    counts = counts_of(ids, wanted)
    assert counts == by_hand
    known = dict.fromkeys(range(10), 0.0) | losses
    slow = sum(known[token_id] for token_id in ids if token_id in wanted) / len(ids)
    assert score(counts, known, len(ids)) == pytest.approx(slow)
    # Copies of the whole text change no density.
    assert score(counts_of(ids * 3, wanted), known, 3 * len(ids)) == pytest.approx(slow)


@given(st.integers(0, 300), st.integers(1, 300), st.floats(1e-6, 0.9))
def test_the_tail_is_at_least_the_exact_one_and_near_it_where_it_counts(k: int, n: int, rate: float) -> None:
    k = min(k, n)
    exact = float(scipy.stats.binom.logsf(k - 1, n, rate)) if k else 0.0
    found = log_tail(k, n, rate)
    assert found <= 0
    if math.isfinite(exact):
        assert found >= exact - 1e-9
    if k > 2 * n * rate and math.isfinite(exact):
        assert found - exact < math.log(2.5)


@given(st.integers(1, 200), st.integers(1, 200), st.floats(1e-6, 0.5), st.floats(1.0, 2.0))
def test_more_severe_tokens_are_more_unusual_and_a_higher_rate_is_less(
    k: int, n: int, rate: float, more: float
) -> None:
    k = min(k, n)
    assert log_tail(min(k + 1, n), n, rate) <= log_tail(k, n, rate) + 1e-9
    assert log_tail(k, n, min(rate * more, 1.0)) >= log_tail(k, n, rate) - 1e-9


def test_tails_have_no_bottom() -> None:
    assert log_tail(500, 500, 1e-6) == pytest.approx(500 * math.log(1e-6))
    assert log_tail(1, 10, 0.0) == -math.inf
    assert log_tail(3, 3, 1.0) == 0.0


def test_a_text_is_unusual_among_so_many() -> None:
    assert is_unusual(math.log(FALSE_ALARMS / 1_000), 1_000)
    assert not is_unusual(math.log(FALSE_ALARMS / 1_000), 1_001)


def test_a_rate_that_was_never_seen_is_bounded_by_how_far_one_looked() -> None:
    assert OrdinaryRate(1_000, 0).most == pytest.approx(1 - 0.025 ** (1 / 1_000))
    assert OrdinaryRate(1_000, 10).most > 0.01
    assert OrdinaryRate(100_000, 0).most < OrdinaryRate(1_000, 0).most
    assert OrdinaryRate(5, 5).most == 1.0


def test_ordinary_texts_are_flagged_in_one_file_of_a_hundred() -> None:
    """4 000 files of 300 texts whose severe tokens come one by one, at the rate that the screen takes for ordinary."""
    import numpy as np

    rate, n, texts, files = 0.01, 25, 300, 4_000
    most = np.random.default_rng(0).binomial(n, rate, size=(files, texts)).max(axis=1)
    alarms = sum(is_unusual(log_tail(int(k), n, rate), texts) for k in most)
    assert 0 < alarms <= FALSE_ALARMS * files
