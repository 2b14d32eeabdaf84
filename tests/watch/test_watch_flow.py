"""Watches end to end: a real Prefect server, real audits of tiny checkpoints, a real warehouse, a hub on localhost."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import comb, hypot
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_hub import FakeHub

from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.gate import GateTripped
from embaudit.warehouse.query import run_query
from embaudit.watch.happening import NightProblem
from embaudit.watch.look import BASELINE
from embaudit.watch.outcome import WatchOutcome
from embaudit.words.errors import CheckpointError
from embaudit_flows.watch import watch
from embaudit_flows.watch_record import AuditEnd, in_this_process

Put = Callable[[Path, int], Path]
A, B, C = "a" * 40, "b" * 40, "c" * 40
PROFILE = """
name = "watched"
version = 1
description = "for tests: a dozen texts"
[socm]
texts = 12
tightness_pairs = 0
corpora = ["wikipedia"]
"""
SETTINGS = """
[settings]
profile = "profile.toml"
measures = ["socm"]
device = "cpu"
"""


class Watcher:
    """A watch list in a folder, and the warehouse that its watches fill."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.list, self.warehouse = folder, folder / "watch.toml", home / "warehouse.duckdb"
        (folder / "profile.toml").write_text(PROFILE)

    def write(self, entries: str, settings: str = SETTINGS) -> None:
        self.list.write_text(settings + entries)

    def watch(self, **parameters: Any) -> WatchOutcome:
        return watch(str(self.list), retry_delays=[], **parameters)

    def red(self, state: str, **parameters: Any) -> NightProblem:
        """A watch that must end with a problem, under this name."""
        with pytest.raises(NightProblem) as caught:
            self.watch(**parameters)
        assert caught.value.state == state, str(caught.value)
        return caught.value

    def ask(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with open_reader(self.warehouse) as connection:
            return connection.execute(sql, list(parameters)).fetchall()


@pytest.fixture
def watcher(tmp_path: Path, home: Path) -> Watcher:
    return Watcher(tmp_path, home)


def outcomes(outcome: WatchOutcome) -> dict[str, str]:
    return {row.source.rpartition("/")[2]: row.outcome for row in outcome.rows}


def audits(watcher: Watcher) -> list[tuple[Any, ...]]:
    return watcher.ask("SELECT audit_id, finished FROM audit WHERE status = 'published' ORDER BY finished")


def test_what_is_new_is_audited_and_not_again(watcher: Watcher, put: Put) -> None:
    put(watcher.folder / "model", 0)
    watcher.write('[[folder]]\npath = "model"')
    (first,) = watcher.watch().rows
    assert (first.outcome, first.reason, [first.audit_id]) == ("audited", None, [row[0] for row in audits(watcher)])
    (second,) = watcher.watch().rows
    assert (second.outcome, second.audit_id) == ("seen", first.audit_id)


def tripped(audit_id: str) -> GateTripped:
    error = GateTripped("It tripped.")
    error.audit = SimpleNamespace(audit_id=audit_id)
    return error


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (tripped("a1"), AuditEnd(audit_id="a1")),
        (GateTripped("It tripped."), AuditEnd(reason="It tripped.")),
        (CheckpointError("No weights.", next_step="Put some there."), AuditEnd(reason="No weights.")),
        (ValueError("two\n lines"), AuditEnd(reason="ValueError: two lines.")),
    ],
    ids=["gate", "gate without an audit", "expected", "a bug"],
)
def test_an_error_of_an_audit_is_its_reason_on_record(
    error: Exception, end: AuditEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(request: object) -> None:
        raise error

    monkeypatch.setattr("embaudit_flows.audit.audit", fails)
    monkeypatch.setattr("embaudit_flows.watch_record._request", lambda finding, warehouse: None)
    assert list(in_this_process(None)([object()])) == [end]  # type: ignore[list-item]


@pytest.mark.slow
def test_the_life_of_a_folder(watcher: Watcher, put: Put) -> None:
    folder = put(watcher.folder / "model", 0)
    watcher.write('[[folder]]\npath = "model"')
    first = watcher.watch()
    assert outcomes(first) == {"model": "audited"}
    (published,) = audits(watcher)

    again = watcher.watch()
    assert outcomes(again) == {"model": "seen"}
    (folder / "README.md").write_text("# Better described")
    assert outcomes(watcher.watch()) == {"model": "seen"}
    assert audits(watcher) == [published], "not even asked again"

    put(folder, 1)
    (changed,) = watcher.watch().rows
    assert (changed.outcome, changed.reason) == ("audited", None)
    assert (changed.audit_id, changed.predecessor_audit_id) == (audits(watcher)[1][0], published[0])
    settings = watcher.ask("SELECT DISTINCT CAST(settings AS VARCHAR), seed, dtype FROM audit")
    assert len(settings) == 1, "with the settings of its predecessor"
    # The folder was written over: its audits' passports say that an index of the first must not be mixed.
    assert changed.index is not None
    assert changed.index.startswith("Other vectors than those in the index")
    (row,) = run_query(watcher.warehouse, "index-changes").rows
    assert row[1] == "other vectors"
    check_regressions(watcher, str(changed.audit_id), published[0])
    page = watcher.warehouse.parent / "reports" / f"{changed.audit_id}.html"
    assert "Compared with the previous audit" in page.read_text(), "the page is made again with the comparison"
    overview = page.with_name("index.html").read_text()
    assert f'href="{page.name}"' in overview

    rows = watcher.ask("SELECT revision, status, audit_id, first_seen <= last_seen FROM watched_revision")
    assert sorted(rows) == sorted(
        (row.checkpoint_id, "audited", row.audit_id, True) for row in (first.rows[0], changed)
    )
    # Back to the first weights: nothing to audit, and the way back is compared, too.
    put(folder, 0)
    worse = watcher.red("Got worse")
    assert "socm_mean of wikipedia +" in worse.happened
    (back,) = worse.outcome.rows
    assert (back.outcome, back.audit_id, back.predecessor_audit_id) == ("seen", published[0], changed.audit_id)
    assert watcher.red("Got worse").outcome.rows[0].predecessor_audit_id is None, "compared once, and open"
    assert len(audits(watcher)) == 2
    (state,) = run_query(watcher.warehouse, "watched").rows
    assert state[2] == "audited"
    assert state[4] == 2
    assert watcher.ask("SELECT predecessor_audit_id FROM audit_predecessor") == [(published[0],)]
    nights = watcher.ask("SELECT state, exit_code, audited, problem_count FROM watch_run ORDER BY started")
    assert nights == [
        *[("Completed", 0, audited, 0) for audited in (1, 0, 0, 1)],
        *[("Got worse", 1, 0, 1)] * 2,
    ]

    watcher.red("Got worse", again=True)
    (now, *_) = [finished for audit_id, finished in audits(watcher) if audit_id == published[0]]
    assert now > published[1], "asked again, on request"
    assert len(audits(watcher)) == 2


def check_regressions(watcher: Watcher, audit_id: str, before_id: str) -> None:
    """The stored rows against the pairs themselves: means one by one, and a jackknife that leaves texts out."""

    def pairs(audit: str) -> dict[str, np.ndarray]:
        rows = watcher.ask("SELECT first, second, socm, d_mu, d_sigma FROM socm_pair WHERE audit_id = ?", audit)
        return dict(zip(("first", "second", "socm", "d_mu", "d_sigma"), np.array(rows).T, strict=True))

    def half_width(found: dict[str, np.ndarray]) -> float:
        texts = np.union1d(found["first"], found["second"])
        n = len(texts)
        assert len(found["socm"]) == comb(n, 2)
        without = [found["socm"][(found["first"] != i) & (found["second"] != i)].mean() for i in texts]
        return 1.96 * float(np.sqrt((n - 1) / n * np.square(np.array(without) - np.mean(without)).sum()))

    own, before = pairs(audit_id), pairs(before_id)
    expected = {
        "socm_mean": [found["socm"].mean() for found in (own, before)],
        "socm_max": [found["socm"].max() for found in (own, before)],
        "d_mu_mean": [found["d_mu"].mean() for found in (own, before)],
        "d_sigma_mean": [found["d_sigma"].mean() for found in (own, before)],
    }
    stored = {
        measure: rest
        for measure, *rest in watcher.ask(
            "SELECT measure, value, predecessor_value, delta, relative_change, worse_when, tolerance, is_worse "
            "FROM regression WHERE audit_id = ? AND predecessor_audit_id = ? AND item = 'wikipedia'",
            audit_id,
            before_id,
        )
    }
    assert set(expected) < set(stored)
    for measure, (after, earlier) in expected.items():
        assert stored[measure][:4] == pytest.approx([after, earlier, after - earlier, (after - earlier) / earlier])
    _, _, delta, _, worse_when, tolerance, is_worse = stored["socm_mean"]
    assert worse_when == "higher"
    assert tolerance == pytest.approx(hypot(half_width(own), half_width(before)), rel=1e-6)
    assert is_worse is bool(delta > tolerance)
    assert not any(rest[-1] for measure, rest in stored.items() if measure != "socm_mean")


@pytest.mark.slow
def test_one_that_fails_stops_no_other_and_is_tried_again(watcher: Watcher, put: Put) -> None:
    for name, seed in (("a-broken", 0), ("b-refused", 1), ("c-good", 2), ("d-copy-of-c", 2)):
        put(watcher.folder / "runs" / name, seed)
    weights = watcher.folder / "runs" / "a-broken" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    entries = """
    [[folder]]
    path = "runs"
    each = true
    pattern = "[acd]-*"
    [[folder]]
    path = "runs/b-refused"
    settings = { corpora = { wikipedia = "texts.txt" } }
    """
    watcher.write(entries)
    failed = watcher.red("Audit failed")
    assert failed.exit_code == 2
    assert re.search(r"Audit failed: \S+b-refused: ", failed.happened)
    assert re.search(r"Checkpoint not read: \S+a-broken: .* is incomplete", failed.happened)
    assert outcomes(failed.outcome) == {
        "a-broken": "failed",
        "b-refused": "failed",
        "c-good": "audited",
        "d-copy-of-c": "known",
    }
    assert len(audits(watcher)) == 1, "one content, one audit"
    reasons = dict(watcher.ask("SELECT source, reason FROM watched_revision WHERE status = 'failed'"))
    assert "is incomplete" in reasons[str(weights.parent)]
    assert "texts.txt" in reasons[str(watcher.folder / "runs" / "b-refused")]

    weights.write_bytes(whole)
    (watcher.folder / "texts.txt").write_text(
        "\n".join(f"The river {word}." for word in ["flows", "rises", "falls", "dries"])
    )
    watcher.write(entries)
    assert outcomes(watcher.watch()) == {
        "a-broken": "audited",
        "b-refused": "audited",
        "c-good": "seen",
        "d-copy-of-c": "seen",
    }
    assert len(audits(watcher)) == 3


@pytest.mark.slow
def test_other_settings_are_a_new_baseline(watcher: Watcher, put: Put) -> None:
    folder = put(watcher.folder / "model", 0)
    watcher.write('[[folder]]\npath = "model"')
    watcher.watch()
    (watcher.folder / "profile.toml").write_text(PROFILE.replace("texts = 12", "texts = 10"))
    put(folder, 1)
    (row,) = watcher.watch().rows
    assert (row.outcome, row.predecessor_audit_id, row.reason) == ("audited", None, BASELINE)
    assert watcher.ask("SELECT count(*) FROM regression") == [(0,)]
    put(folder, 2)
    (row,) = watcher.watch().rows
    assert row.predecessor_audit_id is not None
    assert row.reason is None


@pytest.mark.slow
def test_the_life_of_a_repository(watcher: Watcher, put: Put, hub: FakeHub) -> None:
    folder = hub.repositories["owner/name"] = put(watcher.folder / "repository", 0)
    hub.commits["owner/name"] = A
    put(watcher.folder / "model", 3)
    watcher.write('[[hub]]\nname = "owner/name"\n[[hub]]\nname = "owner/gone"\n[[folder]]\npath = "model"')

    hub.status = 503
    down = watcher.red("Hub silent").outcome
    assert outcomes(down) == {"name": "unreachable", "gone": "unreachable", "model": "audited"}
    # It comes back after as many requests as the first of two sources made in vain.
    hub.ill_requests = len(hub.requests) // 2
    with pytest.raises(NightProblem) as caught:
        watch(str(watcher.list), retry_delays=[0.1, 0.1])
    up = caught.value.outcome
    assert outcomes(up) == {"name": "audited", "gone": "failed", "model": "seen"}, "a retry found it"
    source = watcher.ask("SELECT settings ->> '$.source' FROM audit WHERE audit_id = ?", up.rows[-1].audit_id)
    assert source == [(f"owner/name@{A}",)]

    (folder / "README.md").write_text("# Better described")
    hub.commits["owner/name"] = B
    described = watcher.red("Checkpoint not read").outcome
    assert outcomes(described)["name"] == "unchanged"
    fetched = len(hub.requests)
    watcher.red("Checkpoint not read")
    assert hub.requests[fetched:] == ["GET /api/models/owner/name", "GET /api/models/owner/gone"]

    put(folder, 1)
    hub.commits["owner/name"] = C
    changed = watcher.red("Checkpoint not read").outcome
    assert outcomes(changed)["name"] == "audited"
    assert changed.rows[-1].predecessor_audit_id == up.rows[-1].audit_id
    revisions = watcher.ask(
        "SELECT revision, status FROM watched_revision WHERE source = 'owner/name' ORDER BY first_seen, revision"
    )
    assert revisions == [("", "unreachable"), (A, "audited"), (B, "unchanged"), (C, "audited")]
    assert len(audits(watcher)) == 3


@pytest.mark.slow
def test_an_organisation_grows(watcher: Watcher, put: Put, hub: FakeHub) -> None:
    def publish(name: str, seed: int, *tags: str) -> None:
        hub.repositories[name], hub.tags[name] = put(watcher.folder / name, seed), ["sentence-transformers", *tags]

    publish("owner/one", 0)
    publish("other/else", 1)
    watcher.write('[[organisation]]\nname = "owner"')
    assert outcomes(watcher.watch()) == {"one": "audited"}
    publish("owner/two", 2)
    assert outcomes(watcher.watch()) == {"one": "seen", "two": "audited"}


def test_what_cannot_be_read_is_on_record_and_red(watcher: Watcher, put: Put) -> None:
    folder = put(watcher.folder / "model", 0)
    (folder / "tokenizer.json").unlink()
    watcher.write('[[folder]]\npath = "model"\n[[hub]]\nname = "owner/name"')
    for _ in range(2):
        # Nothing is online in tests.
        night = watcher.red("Checkpoint not read")
        assert outcomes(night.outcome) == {"model": "failed", "name": "unreachable"}
        assert night.exit_code == 2
    rows = watcher.ask(
        "SELECT revision, status, audit_id, first_seen < last_seen FROM watched_revision ORDER BY status"
    )
    assert rows == [("", "failed", None, True), ("", "unreachable", None, True)]
