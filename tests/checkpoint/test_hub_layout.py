"""Checkpoints from the hub: its cache layout on disk, pinned commits, downloads, and every way it can be away."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_hub import COMMIT, ModelHub, point_to, serving
from tiny_models import TEXTS, load

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
def hub(cache: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    """A hub on localhost that has the tiny checkpoint."""
    with serving(ModelHub({NAME: bert})) as running:
        point_to(running.endpoint, monkeypatch)
        yield running


@pytest.fixture
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that refuses connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    point_to(f"http://127.0.0.1:{port}", monkeypatch)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long whoever tries again would have slept, and does not."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.parametrize("reference", [NAME, f"{NAME}@main", f"{NAME}@{COMMIT}"])
def test_a_cached_snapshot_needs_no_network(reference: str, cached: Path, bert: Path) -> None:
    resolved = resolve(reference)
    assert (resolved.folder, resolved.revision) == (cached, COMMIT)
    assert str(resolved.ref) == reference
    checkpoint = load_checkpoint(reference, CPU)
    assert checkpoint.checkpoint_id == load(bert).checkpoint_id  # links into blobs or files: the same content
    assert Encoder(checkpoint).encode_texts(TEXTS).shape == (len(TEXTS), 32)


@pytest.mark.usefixtures("nobody_listens")
def test_a_cached_snapshot_serves_while_the_hub_is_away(cached: Path, pauses: list[float]) -> None:
    assert resolve(NAME).folder == cached
    assert resolve(f"{NAME}@{COMMIT}").revision == COMMIT
    assert sum(pauses) < 5


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


@pytest.mark.usefixtures("nobody_listens", "cache")
def test_unreachable_and_not_cached_is_said_within_seconds(pauses: list[float]) -> None:
    with pytest.raises(CheckpointError, match="hub cannot be reached") as caught:
        resolve(NAME)
    assert sum(pauses) < 5
    assert "\n" not in str(caught.value)


def test_a_hub_that_takes_the_connection_and_says_nothing(hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "ANSWER_SECONDS", 0.5)
    hub.is_silent = True
    with pytest.raises(CheckpointError, match="hub cannot be reached"):
        resolve(NAME)
    assert not hub.answered


def test_a_silent_hub_does_not_hold_up_what_is_cached(
    cached: Path, hub: ModelHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "ANSWER_SECONDS", 0.5)
    hub.is_silent = True
    assert resolve(NAME).folder == cached
    assert not hub.answered


def test_a_connection_that_is_dropped(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    with socket.create_server(("127.0.0.1", 0)) as server:

        def drop() -> None:
            try:
                while True:
                    server.accept()[0].close()
            except OSError:  # the test is over
                pass

        threading.Thread(target=drop, daemon=True).start()
        point_to(f"http://127.0.0.1:{server.getsockname()[1]}", monkeypatch)
        with pytest.raises(CheckpointError, match="hub cannot be reached"):
            resolve(NAME)


@pytest.mark.parametrize("status", [500, 503])
def test_a_hub_that_is_ill(status: int, hub: ModelHub) -> None:
    hub.status = status
    with pytest.raises(CheckpointError, match="hub cannot be reached"):
        resolve(NAME)


def test_a_download_is_pinned_and_then_cached(hub: ModelHub, bert: Path, cache: Path) -> None:
    resolved = resolve(NAME)
    assert resolved.revision == COMMIT
    assert resolved.folder == cache / "models--org--tiny-bert" / "snapshots" / COMMIT
    checkpoint = load_checkpoint(f"{NAME}@{COMMIT}", CPU)
    assert checkpoint.checkpoint_id == load(bert).checkpoint_id
    hub.status = 503
    # main was remembered as well, for the day when the hub is away.
    assert resolve(NAME) == resolved


def test_only_what_a_checkpoint_needs_is_downloaded(hub: ModelHub, bert: Path) -> None:
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


def test_a_pickle_only_repository(hub: ModelHub, bert: Path) -> None:
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(bert / "model.safetensors"), bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"only as a pickle \(pytorch_model.bin\).*--allow-pickle"):
        load_checkpoint(NAME, CPU)
    allowed = load_checkpoint(NAME, LoadOptions(device="cpu", allow_pickle=True))
    assert allowed.resolved.revision == COMMIT


def test_an_incomplete_cache_is_no_checkpoint(cached: Path) -> None:
    (cached / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="has no weights") as caught:
        load_checkpoint(NAME, CPU)
    assert "download" in caught.value.next_step


def test_an_incomplete_cache_is_completed_where_the_hub_answers(cached: Path, hub: ModelHub) -> None:
    (cached / "model.safetensors").unlink()
    assert load_checkpoint(NAME, CPU).resolved.folder == cached


def test_a_repository_that_does_not_exist(hub: ModelHub) -> None:
    with pytest.raises(CheckpointError, match="The hub has no checkpoint org/tiny-bart") as caught:
        resolve("org/tiny-bart")
    assert "hf auth login" in caught.value.next_step


def test_a_revision_that_does_not_exist(hub: ModelHub) -> None:
    with pytest.raises(CheckpointError, match="no revision 'v9'") as caught:
        resolve(f"{NAME}@v9")
    assert f"{NAME}@main" in caught.value.next_step
    assert resolve(f"{NAME}@v1").revision == COMMIT


@pytest.mark.parametrize("name", ["owner/na:me", "owner/--name", "owner/name.git", "owner/" + "x" * 200])
def test_names_that_no_hub_repository_can_have(name: str) -> None:
    with pytest.raises(CheckpointError, match="not a valid hub id") as caught:
        resolve(name)
    assert "owner/name" in caught.value.next_step


def test_a_cache_that_cannot_be_written(hub: ModelHub, cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("a file where the cache folder should be")
    with pytest.raises(CheckpointError) as caught:
        resolve(NAME)
    assert "HF_HOME" in caught.value.next_step
