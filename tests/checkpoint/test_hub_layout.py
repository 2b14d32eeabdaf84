"""Checkpoints from the hub: its cache layout on disk, pinned commits, downloads, and every way it can be away."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fake_hub import COMMIT, FakeHub, point_to
from tiny_models import TEXTS, load, to_pickle

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint, resolve
from embaudit.system import hub as hub_module
from embaudit.words.errors import CheckpointError

NAME = "org/tiny-bert"
OTHER_COMMIT = "f" * 40
CPU = LoadOptions(device="cpu")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache in place of the user's."""
    from huggingface_hub import constants

    folder = tmp_path / "hub-cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def cached(cache: Path, bert: Path) -> Path:
    """A snapshot in the hub's own layout: files as links into blobs, a ref that names the commit."""
    repository = cache / "models--org--tiny-bert"
    snapshot = repository / "snapshots" / COMMIT
    (repository / "blobs").mkdir(parents=True)
    for number, path in enumerate(sorted(path for path in bert.rglob("*") if path.is_file())):
        blob = repository / "blobs" / f"{number:040x}"
        shutil.copy(path, blob)
        link = snapshot / path.relative_to(bert)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    return snapshot


@pytest.fixture
def hub(hub: FakeHub, bert: Path) -> FakeHub:
    """A hub on localhost that has the tiny checkpoint."""
    hub.repositories[NAME] = bert
    return hub


@pytest.fixture(params=["refuses connections", "drops them", "is silent", 500, 503])
def away(request: pytest.FixtureRequest, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub that does not answer, and in the end has answered to nobody; whoever tries again does not wait long."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(hub_module, "ANSWER_SECONDS", 0.5)
    hub.is_silent = request.param == "is silent"
    hub.status = request.param if isinstance(request.param, int) else 200
    with socket.create_server(("127.0.0.1", 0)) as other:
        if request.param == "drops them":
            threading.Thread(target=drop, args=(other,), daemon=True).start()
        if request.param in ("drops them", "refuses connections"):
            point_to(f"http://127.0.0.1:{other.getsockname()[1]}", monkeypatch)
        if request.param == "refuses connections":
            other.close()
        yield
    assert sum(pauses) < 5
    assert not hub.answered or hub.status != 200


def drop(server: socket.socket) -> None:
    with suppress(OSError):  # the test is over
        while True:
            server.accept()[0].close()


@pytest.mark.parametrize("reference", [NAME, f"{NAME}@main", f"{NAME}@{COMMIT}"])
def test_a_cached_snapshot_needs_no_network(reference: str, cached: Path, bert: Path) -> None:
    resolved = resolve(reference)
    assert (resolved.folder, resolved.revision) == (cached, COMMIT)
    assert str(resolved.ref) == reference
    checkpoint = load_checkpoint(reference, CPU)
    assert checkpoint.checkpoint_id == load(bert).checkpoint_id  # links into blobs or files: the same content
    assert Encoder(checkpoint).encode_texts(TEXTS).shape == (len(TEXTS), 32)


@pytest.mark.usefixtures("away")
def test_a_cached_snapshot_serves_while_the_hub_is_away(cached: Path) -> None:
    assert resolve(NAME).folder == cached
    assert resolve(f"{NAME}@{COMMIT}").revision == COMMIT


@pytest.mark.usefixtures("away")
def test_a_hub_that_is_away_is_named_where_nothing_is_cached() -> None:
    with pytest.raises(CheckpointError, match="hub cannot be reached") as caught:
        resolve(NAME)
    assert "\n" not in str(caught.value)


def test_a_pinned_commit_is_never_replaced_by_another(cached: Path) -> None:
    with pytest.raises(CheckpointError, match=OTHER_COMMIT):
        resolve(f"{NAME}@{OTHER_COMMIT}")


def test_what_main_meant_then_can_be_pinned(cached: Path) -> None:
    first = resolve(NAME)
    newer = cached.parent / OTHER_COMMIT
    shutil.copytree(cached, newer)
    (cached.parents[1] / "refs" / "main").write_text(OTHER_COMMIT)
    assert resolve(NAME).revision == OTHER_COMMIT
    assert resolve(f"{NAME}@{first.revision}").folder == cached


def test_offline_and_not_cached(cache: Path) -> None:
    with pytest.raises(
        CheckpointError, match="hub cannot be reached for checkpoint org/other@v2: HF_HUB_OFFLINE is set"
    ) as caught:
        resolve("org/other@v2")
    assert "packaged:all-MiniLM-L6-v2" in caught.value.next_step


def test_a_download_is_pinned_and_then_cached(hub: FakeHub, bert: Path, cache: Path) -> None:
    resolved = resolve(NAME)
    assert resolved.revision == COMMIT
    assert resolved.folder == cache / "models--org--tiny-bert" / "snapshots" / COMMIT
    checkpoint = load_checkpoint(f"{NAME}@{COMMIT}", CPU)
    assert checkpoint.checkpoint_id == load(bert).checkpoint_id
    hub.status = 503
    # main was remembered as well, for the day when the hub is away.
    assert resolve(NAME) == resolved


def test_only_what_a_checkpoint_needs_is_downloaded(hub: FakeHub, bert: Path) -> None:
    (bert / "onnx").mkdir()
    for name in ("pytorch_model.bin", "onnx/model.onnx", "tf_model.h5", "modeling_own.py", "train.log"):
        (bert / name).write_bytes(b"not wanted")
    folder = resolve(NAME).folder
    fetched = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert "1_Pooling/config.json" in fetched
    assert "model.safetensors" in fetched
    assert not fetched & {"pytorch_model.bin", "onnx/model.onnx", "tf_model.h5", "modeling_own.py", "train.log"}
    more = resolve(NAME, allow_pickle=True, trust_remote_code=True).folder
    assert (more / "pytorch_model.bin").is_file()
    assert (more / "modeling_own.py").is_file()


def test_a_pickle_only_repository(hub: FakeHub, bert: Path) -> None:
    to_pickle(bert)
    with pytest.raises(CheckpointError, match=r"only as a pickle \(pytorch_model.bin\).*--allow-pickle"):
        load_checkpoint(NAME, CPU)
    allowed = load_checkpoint(NAME, LoadOptions(device="cpu", allow_pickle=True))
    assert allowed.resolved.revision == COMMIT


def test_an_incomplete_cache_is_no_checkpoint(cached: Path) -> None:
    (cached / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="has no weights") as caught:
        load_checkpoint(NAME, CPU)
    assert "download" in caught.value.next_step


def test_an_incomplete_cache_is_completed_where_the_hub_answers(cached: Path, hub: FakeHub) -> None:
    (cached / "model.safetensors").unlink()
    assert load_checkpoint(NAME, CPU).resolved.folder == cached


@pytest.mark.parametrize(
    ("reference", "said", "next_step"),
    [
        ("org/tiny-bart", "The hub has no checkpoint org/tiny-bart", "hf auth login"),
        (f"{NAME}@v9", "no revision 'v9'", f"{NAME}@main"),
        *(
            (name, "not a valid hub id", "owner/name")
            for name in ("owner/na:me", "owner/--name", "owner/name.git", "owner/" + "x" * 200)
        ),
    ],
)
def test_what_the_hub_does_not_have(reference: str, said: str, next_step: str, hub: FakeHub) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        resolve(reference)
    assert next_step in caught.value.next_step
    assert resolve(f"{NAME}@v1").revision == COMMIT


def test_a_cache_that_cannot_be_written(hub: FakeHub, cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("a file where the cache folder should be")
    with pytest.raises(CheckpointError) as caught:
        resolve(NAME)
    assert "HF_HOME" in caught.value.next_step
