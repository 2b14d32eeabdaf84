"""Audits from Python: what ``embaudit.audit``, ``embaudit.open`` and ``AuditCallback`` give (docs/python.md)."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit
from small_audits import Audited
from tiny import tiny_bert

import embaudit as library
from embaudit.words.errors import CheckFailed, CheckpointError, UsageError, WarehouseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import TrainerCallback, TrainerState

DOCS = (Path(__file__).parents[2] / "docs/python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
HEAVY = {"torch", "transformers", "prefect", "pandas", "numpy", "duckdb", "pydantic", "click"}
ATTACK = '<script>alert(1)</script>"><img src=x onerror=alert(1)>{{ 7 * 7 }}</style>'


def run_block(words: str, given: dict[str, Any], here: dict[str, str]) -> dict[str, Any]:
    """Run the block of the docs that has these words; returns its names.

    Args:
        here: what stands for some of its strings in this test, as code.
    """
    (code,) = (block for block in BLOCKS if words in block)
    for name, instead in here.items():
        assert f'"{name}"' in code
        code = code.replace(f'"{name}"', instead)
    exec(code, given)
    return given


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as sentence-transformers saves it, in which every weight has its file."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("saved")
    model = sentence_transformers.SentenceTransformer(str(tiny_bert(folder / "tiny")), device="cpu")
    model.save_pretrained(str(folder / "saved"))
    return folder / "saved"


@pytest.fixture
def model(saved_model: Path) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(saved_model), device="cpu", local_files_only=True)


class SmallTrainer:
    """The part of a trainer that callbacks see: real states and the real handler, one saved step.

    (transformers' own Trainer needs accelerate, which embaudit does not.)
    """

    def __init__(self, model: SentenceTransformer, output_dir: Path) -> None:
        from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

        self.model, self.output_dir = model, str(output_dir)
        self.state, self.control = TrainerState(), TrainerControl()
        self.handler = CallbackHandler([], model, None, None, None)

    def add_callback(self, callback: TrainerCallback) -> None:
        self.handler.add_callback(callback)

    def train(self) -> TrainerState:
        self.state.global_step = 7
        self.handler.on_evaluate(self, self.state, self.control, {"eval_loss": 1.0})
        self.model.save_pretrained(str(Path(self.output_dir) / "checkpoint-7"))
        self.handler.on_save(self, self.state, self.control)
        return self.state


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import embaudit, sys; dir(embaudit); print(*sorted({name.split('.')[0] for name in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "embaudit" in modules
    assert not HEAVY & set(modules)
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        _ = library.audits  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_first_example_of_the_docs(audited: Audited, audited_home: Path, tmp_path: Path) -> None:
    question = audited.question
    # All that was asked there, so that every measure is found as done.
    more = f"{question['profile']!r}, corpora={question['corpora']!r}, device='cpu'"
    here = {"packaged:all-MiniLM-L6-v2": repr(question["checkpoint"]), "quick": more}
    audit = run_block("minilm.html", {}, {**here, "minilm.html": repr(str(tmp_path / "page.html"))})["audit"]
    assert isinstance(audit, library.Audit)
    assert audit.audit_id == audited.outcome.audit_id
    assert audit.checkpoint_id == audited.outcome.checkpoint_id
    assert audit.warnings == tuple(audited.outcome.warnings)
    assert [found.sentence for found in audit.findings] == [row["sentence"] for row in audited.outcome.findings]
    assert audit.figures["problems"] == sum(found.level == "problem" for found in audit.findings)
    assert len(audit.figures) > 2
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert audit.report() == audited_home / "reports" / f"{audit.audit_id}.html"
    assert audit.audit_id in repr(audit)
    html = audit._repr_html_()
    assert html.index(audit.findings[0].level) < html.index(audit.audit_id)
    assert "<html" not in html


def test_a_warehouse_answers_in_data_frames(audited: Audited, audited_home: Path) -> None:
    reader = run_block("embaudit.open()", {"embaudit": library}, {})["warehouse"]
    assert list(reader.audits()["audit_id"]) == [audited.outcome.audit_id]
    assert reader.query("SELECT 7 AS seven")["seven"].tolist() == [7]
    audit = reader.audit(audited.outcome.audit_id[:6])
    # Of some of its 90.
    for table in ("socm_pair", "sticky_validation", "finding"):
        assert len(audit.table(table)) == audited.outcome.rows[table], table
    assert len(audit.table("checkpoint")) == 1  # it has no audit_id
    with pytest.raises(UsageError, match="Did you mean sticky_token"):
        audit.table("sticky_tokens")
    with pytest.raises(UsageError, match="no audit"):
        reader.audit("f00")
    with pytest.raises(UsageError, match="read-only"):
        reader.query("DROP TABLE audit")
    # No connection is left open: a writer gets the file.
    import duckdb

    duckdb.connect(str(reader.warehouse)).close()


@pytest.mark.usefixtures("new_home")
def test_what_is_not_there_is_said_in_an_error_of_the_project(home: Path, tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="embaudit audit"):
        library.open(tmp_path / "none.duckdb")
    with pytest.raises(UsageError, match="settings are invalid"):
        library.audit("packaged:all-MiniLM-L6-v2", sede=1)
    with pytest.raises(CheckpointError, match="Did you mean"):
        library.audit("packaged:all-MiniLM-L6-v3")
    with pytest.raises(UsageError, match="not a dict"):
        library.audit({})  # type: ignore[arg-type]
    assert not home.exists()


def test_an_audit_that_is_not_published_is_refused(empty_warehouse: Path) -> None:
    put_audit(empty_warehouse, audit_record(status="failed", reason="a check failed"), {}, [], [])
    with pytest.raises(CheckFailed, match="a check failed"):
        library.open(empty_warehouse).audit("a1")


def test_text_from_strangers_stays_text_in_a_notebook(empty_warehouse: Path) -> None:
    rows = plausible_rows(source=f"owner/{ATTACK}")
    for finding in rows["finding"]:
        finding.update(sentence=f"A {ATTACK} \x1b[31m", meaning=ATTACK, advice=ATTACK)
    put_audit(empty_warehouse, audit_record(), rows, measure_runs(), [expectation()])
    html = library.open(empty_warehouse).audit("a1")._repr_html_()
    assert "&lt;script&gt;" in html
    assert "\\x1b[31m" in html
    assert not re.search("<script|<img|</style>.*</style>|\x1b", html, re.DOTALL)
    assert "{{ 7 * 7 }}" in html


@pytest.mark.slow
def test_a_model_in_memory_is_the_checkpoint_of_its_folder(
    model: SentenceTransformer, saved_model: Path, tiny_profile: Path, home: Path
) -> None:
    async def in_a_notebook() -> library.Audit:
        # Jupyter runs a cell in a running loop.
        return library.audit(model, tiny_profile, measures=["integrity"], device="cpu", warehouse=home / "own.duckdb")

    audit = asyncio.run(in_a_notebook())
    of_folder = library.audit(
        saved_model, tiny_profile, measures=["integrity"], device="cpu", warehouse=home / "own.duckdb"
    )
    assert audit.checkpoint_id == of_folder.checkpoint_id
    assert audit.audit_id == of_folder.audit_id
    assert [path.name for path in (home / "models").iterdir()] == [audit.checkpoint_id]
    assert audit.warehouse == home / "own.duckdb"


@pytest.mark.slow
def test_the_callback_example_of_the_docs(
    model: SentenceTransformer, saved_model: Path, tiny_profile: Path, home: Path, tmp_path: Path
) -> None:
    from embaudit.api.audit import close_event_connection

    trainer = SmallTrainer(model, tmp_path / "out")
    close_event_connection()  # of an earlier test: it may draw from ``random`` at any time
    before = random.getstate()
    report = tmp_path / "last.html"
    here = {"quick": repr(str(tiny_profile)), "last-checkpoint.html": repr(str(report))}
    names = run_block("AuditCallback(on", {"trainer": trainer}, here)
    assert random.getstate() == before
    for thread in threading.enumerate():
        if "EventsWorker" in thread.name:
            thread.join(timeout=30)
            assert not thread.is_alive(), "an open connection draws from ``random`` with each ping"
    (step, audit), *others = names["callback"].audits.items()
    assert step == 7
    assert not others
    assert audit.source == str(tmp_path / "out/checkpoint-7")
    (logged,) = trainer.state.log_history
    assert logged == {"step": 7, **{f"embaudit/{name}": value for name, value in audit.figures.items()}}
    assert report.is_file()
    assert not (home / "models").exists()  # the trainer's own folder was audited


@pytest.mark.slow
def test_a_callback_audits_what_is_evaluated_in_the_first_process_alone(
    model: SentenceTransformer, tiny_profile: Path, home: Path, tmp_path: Path
) -> None:
    logged: list[dict[str, float]] = []
    callback = library.AuditCallback(
        "evaluate", logged.append, profile=tiny_profile, measures=["integrity"], device="cpu"
    )
    trainer = SmallTrainer(model, tmp_path / "out")
    trainer.add_callback(callback)
    trainer.state.is_world_process_zero = False
    trainer.train()
    assert not callback.audits
    trainer.state.is_world_process_zero = True
    trainer.train()
    assert logged == [{f"embaudit/{name}": value for name, value in callback.audits[7].figures.items()}]
    assert callback.audits[7].source.startswith(str(home / "models"))
    assert not trainer.state.log_history


@pytest.mark.slow
def test_a_process_has_one_temporary_server_and_its_settings_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings

    from embaudit_flows.server.settings import defaults_for_call, server_for_call
    from embaudit_flows.server.temporary import temporary_server

    monkeypatch.delenv("PREFECT_API_REQUEST_TIMEOUT", raising=False)
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path))
    before = dict(os.environ)
    urls, patience = [], []
    with temporary_settings({PREFECT_API_URL: None}):
        for _ in range(2):
            with defaults_for_call(), server_for_call():
                urls.append(PREFECT_API_URL.value())
                patience.append(get_current_settings().api.request_timeout)
            assert dict(os.environ) == before
            assert PREFECT_API_URL.value() is None
        temporary_server(tmp_path).stop()
        with defaults_for_call(), server_for_call():
            urls.append(PREFECT_API_URL.value())
        temporary_server(tmp_path).stop()
    assert urls[0] == urls[1] != urls[2]
    assert patience == [120, 120]
