"""What can happen at night, row by row of the table in docs/watch.md: red, called, kept, and open until mended."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from commands import run_here
from index_library import Library, named, texts_of
from some_rows import mostly_slow
from test_watch_flow import PROFILE, SETTINGS, Put
from webhook import Listener, Webhook

from benchmarks.serving.faults import faithful
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.warehouse.query import run_query
from embaudit.watch.happening import HAPPENINGS, as_markdown, in_order
from embaudit_flows.watch import watch

INTEGRITY = SETTINGS.replace('["socm"]', '["integrity"]')


@dataclass
class Night:
    """A watch list, what is on it, and how it is broken and mended."""

    folder: Path
    home: Path
    put: Put
    library: Library
    stack: ExitStack
    subject: str = ""
    served: Served | None = None
    entries: str = ""
    settings: str = SETTINGS
    mend: Callable[[], object] | None = None
    accepts: bool = True
    also: list[str] = field(default_factory=list)

    @property
    def list(self) -> Path:
        path = self.folder / "watch.toml"
        path.write_text(self.settings + self.entries)
        return path

    def run(self, block: str) -> Any:
        return watch(str(self.list), retry_delays=[], notify=block, return_state=True)

    def model(self, seed: int) -> Path:
        folder = self.put(self.folder / "model", seed)
        self.subject, self.entries = str(folder), '[[folder]]\npath = "model"\n'
        return folder

    def index(self, more: str = "", rows: int = 30) -> Library:
        library = self.library
        library.write(named(0, rows))
        self.subject = str(library.path)
        self.entries = f'[[index]]\nstore = "{library.path}"\nfunction = "{library.function}"\n{more}\n'
        return library

    def endpoint(self) -> Served:
        right = load_checkpoint(str(self.put(self.folder / "model", 0)), LoadOptions(device="cpu"))
        served = Served(faithful(right))
        self.subject = self.stack.enter_context(serving(served))
        self.entries = f'[[endpoint]]\naddress = "{self.subject}"\ncheckpoint = "model"\n'
        return served


# Each makes what is watched, healthy where it can be; the breaking follows after the first night.
def broken(night: Night) -> Callable[[], object]:
    night.index()

    def breaks() -> None:
        # Nobody has trained it.
        night.model(0)
        night.settings = INTEGRITY

    return breaks


def index_gone(night: Night) -> Callable[[], object]:
    path = night.index().path
    night.accepts, night.mend = False, lambda: shutil.copy(night.folder / "kept", path)
    return lambda: shutil.move(path, night.folder / "kept")


def index_empty(night: Night) -> Callable[[], object]:
    library = night.index()
    night.accepts, night.mend = False, lambda: library.write(named(0, 30))
    return lambda: library.remove(named(0, 30))


def rows_wrong(night: Night) -> Callable[[], object]:
    library = night.index()
    night.mend = lambda: library.write(named(30, 34))
    return lambda: library.write(named(30, 34), revision=1)


def rows_gone(night: Night) -> Callable[[], object]:
    library = night.index()
    night.mend = lambda: library.write(named(0, 30))
    return lambda: library.remove(named(0, 3))


def recall_fell(night: Night) -> Callable[[], object]:
    import faiss
    import numpy as np

    path, graph = night.folder / "graph.faiss", faiss.IndexHNSWFlat(24, 16)
    graph.add(np.random.default_rng(0).normal(size=(2_000, 24)).astype(np.float32))
    night.subject = str(path)
    night.entries = '[[search]]\nstore = "graph.faiss"\ncount = 100\nrows = 100\nrecall = 0.3\n'

    def write(effort: int) -> None:
        graph.hnsw.efSearch = effort
        faiss.write_index(graph, str(path))

    write(300)
    night.mend = lambda: write(300)
    return lambda: write(10)


def not_found(night: Night) -> Callable[[], object]:
    (query,) = texts_of(["doc-3"])
    (night.folder / "golden.csv").write_text(f"query,expect\n{query},doc-3\n")
    library = night.index(f'golden = "{night.folder / "golden.csv"}"\nk = 3')
    night.mend = lambda: library.write(["doc-3"])
    return lambda: library.remove(["doc-3"])


def problem_found(night: Night) -> Callable[[], object]:
    old, new = (night.put(night.folder / name, 0) for name in ("old", "new"))
    night.subject, night.entries = str(old), '[[switch]]\nold = "old"\nnew = "new"\n'
    night.mend = lambda: night.put(new, 0)
    return lambda: night.put(new, 1)


def served_otherwise(night: Night) -> Callable[[], object]:
    served = night.endpoint()
    right = served.encode
    night.mend = lambda: setattr(served, "encode", right)
    other = faithful(load_checkpoint(str(night.put(night.folder / "other", 1)), LoadOptions(device="cpu")))
    return lambda: setattr(served, "encode", other)


def tripped(night: Night) -> Callable[[], object]:
    night.model(0)
    policy = night.folder / "release.toml"
    rule = '[[limit]]\nname = "strict"\nsummary = "socm_summary"\nmeasure = "socm_mean"\nmax = {}\n'
    policy.write_text(rule.format(2.0))
    night.settings = SETTINGS + 'policy = "release.toml"\n'
    night.mend = lambda: policy.write_text(rule.format(2.0))
    return lambda: policy.write_text(rule.format(0.0))


def worse(night: Night) -> Callable[[], object]:
    folder = night.model(1)
    night.mend = lambda: night.put(folder, 1)
    return lambda: night.put(folder, 0)


def audit_failed(night: Night) -> Callable[[], object]:
    night.model(0)
    texts = night.folder / "texts.txt"
    texts.write_text("\n".join(f"The river {word}." for word in ["flows", "rises", "falls", "dries"]))
    night.settings = SETTINGS + 'corpora = { wikipedia = "texts.txt" }\n'
    night.accepts, night.mend = False, lambda: shutil.copy(night.folder / "kept", texts)

    def breaks() -> None:
        shutil.move(texts, night.folder / "kept")
        night.put(night.folder / "model", 1)

    return breaks


def checkpoint_gone(night: Night) -> Callable[[], object]:
    folder = night.model(0)
    night.mend = lambda: night.put(folder, 0)
    return lambda: shutil.rmtree(folder)


def checkpoint_unreadable(night: Night) -> Callable[[], object]:
    folder = night.model(0)
    night.mend = lambda: night.put(folder, 0)
    return lambda: (folder / "tokenizer.json").unlink()


def not_answered(night: Night) -> Callable[[], object]:
    path = night.index().path
    content = path.read_bytes()
    night.accepts, night.mend = False, lambda: path.write_bytes(content)
    return lambda: path.write_bytes(content[:3_000])


def endpoint_silent(night: Night) -> Callable[[], object]:
    from benchmarks.serving.server import Refusal

    served = night.endpoint()
    right = served.encode

    def refuses(texts: list[str]) -> Any:
        raise Refusal(503)

    night.accepts, night.mend = False, lambda: setattr(served, "encode", right)
    return lambda: setattr(served, "encode", refuses)


def hub_silent(night: Night) -> Callable[[], object]:
    night.model(0)
    healthy, night.accepts = night.entries, False

    def breaks() -> None:
        # Nothing is online in tests.
        night.subject, night.entries = "owner/name", f'{healthy}[[hub]]\nname = "owner/name"\n'

    night.mend = lambda: setattr(night, "entries", healthy)
    return breaks


SCENARIOS = (
    *(broken, index_gone, index_empty, rows_gone, rows_wrong, recall_fell, not_found, problem_found, served_otherwise),
    *(tripped, worse, audit_failed, checkpoint_gone, checkpoint_unreadable, not_answered, endpoint_silent, hub_silent),
)


@pytest.fixture
def night(tmp_path: Path, home: Path, put: Put, library: Library) -> Iterator[Night]:
    (tmp_path / "profile.toml").write_text(PROFILE)
    with ExitStack() as stack:
        yield Night(tmp_path, home, put, library, stack)


def test_every_happening_has_a_night() -> None:
    assert [scenario.__name__ for scenario in SCENARIOS] == list(HAPPENINGS)


def test_the_table_in_the_docs_is_the_one_in_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    assert as_markdown() in page, "write it anew: python -m embaudit.watch.happening"


@pytest.mark.parametrize("scenario", mostly_slow(SCENARIOS, [rows_gone]), ids=lambda one: one.__name__)
def test_a_night(
    scenario: Callable[[Night], Callable[[], object]],
    night: Night,
    webhook: Webhook,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    name = scenario.__name__
    happening = HAPPENINGS[name]
    hook, block = webhook("ops")
    breaks = scenario(night)
    good = night.run(block)
    assert (good.name, good.type.value) == ("Completed", "COMPLETED"), good.message
    assert good.message == good.result().summary, "a green night has a message, too"
    assert hook.posts == []

    breaks()
    with caplog.at_level(logging.WARNING, "prefect.flow_runs"):
        red = night.run(block)
    require_red(red, name, night, hook, caplog)
    hook.posts.clear()
    again = night.run(block)
    require_red(again, name, night, hook, None)

    if night.accepts:
        environment = {**os.environ, "EMBAUDIT_HOME": str(night.home)}
        done = run_here(("accept", night.subject, "--reason", "known", "--by", "me"), environment, tmp_path)
        assert done.returncode == 0, done.stderr
        hook.posts.clear()
        accepted = night.run(block)
        assert accepted.name == "Completed", accepted.message
        assert hook.posts == []
        # What it is accepted as is no state of things to come.
        assert night.run(block).name == "Completed"
    if night.mend is not None:
        night.mend()
        mended = night.run(block)
        assert mended.name == "Completed", mended.message
    nights = run_query(night.home / "warehouse.duckdb", "SELECT state, problem_count FROM watch_run ORDER BY started")
    assert [row[0] for row in nights.rows][:3] == ["Completed", happening.state, happening.state]


def require_red(state: Any, name: str, night: Night, hook: Listener, caplog: pytest.LogCaptureFixture | None) -> None:
    """By its name and colour, message, exit code, a warning, a call, the artifact and the table."""
    from prefect.artifacts import Artifact

    happening, error = HAPPENINGS[name], state.result(raise_on_failure=False)
    assert (state.name, state.type.value) == (happening.state, "FAILED"), state.message
    problems = [problem for problem in error.outcome.problems if problem.name == name]
    assert [problem.subject for problem in problems] == [night.subject]
    assert in_order(error.outcome.problems) == error.outcome.problems
    (problem,) = problems
    assert problem.said in state.message
    assert error.exit_code == max(one.happening.exit_code or 0 for one in error.outcome.problems)
    if caplog is not None:
        warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert [line for line in warned if line == str(problem)] == [str(problem)]
    ((_, post),) = hook.posts
    assert post["title"].endswith(happening.state.lower())
    assert night.subject in post["text"]
    artifact = Artifact.get("watch")
    assert artifact is not None
    first = json.loads(str(artifact.data))[0]
    assert (first["what"], first["of"], first["reason"]) == (happening.state, night.subject, problem.said)
    for table in happening.kept_in.split(", "):
        counted = run_query(night.home / "warehouse.duckdb", f"SELECT count(*) FROM {table}").rows
        assert counted[0][0] > 0, table


def test_a_night_that_cannot_begin_is_red_and_called(night: Night, webhook: Webhook) -> None:
    hook, block = webhook("ops")
    state = watch(str(night.folder / "none.toml"), notify=block, return_state=True)
    assert (state.name, state.type.value) == ("Watch failed", "FAILED")
    assert "There is no watch list" in state.message
    ((_, post),) = hook.posts
    assert post["title"].endswith("failed")
    assert "There is no watch list" in post["text"]
