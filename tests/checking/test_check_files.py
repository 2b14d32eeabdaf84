"""``embaudit check --files``: what is told without running the network is told as in a whole check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from commands import run_here
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from some_rows import mostly_slow
from tiny import tiny_bert
from tiny_models import build, change_tensors, declare, dense, layer_norm, pooling, to_pickle

import embaudit
from embaudit.checkpoint import LoadOptions, load_checkpoint
from embaudit.checkpoint import model as loading
from embaudit.checkpoint import streamed as mapping
from embaudit.checkpoint.load import load_from_files
from embaudit.checkpoint.streamed import clean_mappings, giving_back, giving_back_meanwhile, was_read
from embaudit.declared.rule import Finding
from embaudit.measures.integrity.integrity import integrity_findings
from embaudit.questions.check.check import check_files
from embaudit.questions.check.verdict import FILES_ONLY, verdict_of
from embaudit.words.errors import UsageError

Tensors = dict[str, torch.Tensor]
LAYER = "encoder.layer.1.output.dense.weight"
WEIGHTS = "model.safetensors"


def bert(folder: Path, change: Callable[[Tensors], Tensors]) -> Path:
    change_tensors(tiny_bert(folder) / WEIGHTS, change)
    return folder


def in_two(folder: Path) -> Path:
    """The same weights in two shards."""
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, some in shards.items():
        save_file({name: tensors[name] for name in some}, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file, some in shards.items() for name in some}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index), encoding="utf-8")
    (folder / WEIGHTS).unlink()
    return folder


def with_modules(folder: Path) -> Path:
    folder.mkdir()
    return declare(build("bert", folder), pooling("mean"), dense(), layer_norm(16), ("Normalize", {}))


def of_family(family: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        folder.mkdir()
        return declare(build(family, folder), pooling("mean"))

    return make


def in_precision(*precisions: torch.dtype) -> Callable[[Tensors], Tensors]:
    """The tensors in these precisions by turns."""
    return lambda tensors: {
        name: tensor.to(precisions[place % len(precisions)]) for place, (name, tensor) in enumerate(tensors.items())
    }


CHECKPOINTS: dict[str, Callable[[Path], Path]] = {
    "float32": tiny_bert,
    "bfloat16": lambda folder: bert(folder, in_precision(torch.bfloat16)),
    "float16": lambda folder: bert(folder, in_precision(torch.float16)),
    "two precisions": lambda folder: bert(folder, in_precision(torch.float32, torch.bfloat16)),
    "shards": lambda folder: in_two(bert(folder, in_precision(torch.bfloat16))),
    "a pickle": lambda folder: to_pickle(tiny_bert(folder)),
    "modules": with_modules,
    "a decoder": of_family("qwen2"),
    "an encoder of two": of_family("t5"),
    "a layer of zeros": lambda folder: bert(folder, lambda tensors: tensors | {LAYER: tensors[LAYER] * 0}),
    "equal layers": lambda folder: bert(
        folder,
        lambda tensors: {name: tensors[name.replace("layer.1", "layer.0")].clone() for name in tensors},
    ),
    "an outlier": lambda folder: bert(folder, lambda tensors: tensors | {LAYER: _set(tensors[LAYER], 9e3)}),
    "values out of range": lambda folder: bert(folder, lambda tensors: tensors | {LAYER: _set(tensors[LAYER], 1e20)}),
    "tensors that nothing reads": lambda folder: bert(
        folder, lambda tensors: tensors | {"encoder.layer.7.output.dense.weight": torch.ones(32, 64)}
    ),
}


def _set(tensor: torch.Tensor, value: float) -> torch.Tensor:
    changed = tensor.clone()
    changed[3, 2] = value
    return changed


@pytest.mark.parametrize("name", mostly_slow(CHECKPOINTS, 2))
def test_files_alone_tell_what_a_whole_check_tells_of_them(name: str, tmp_path: Path) -> None:
    folder = CHECKPOINTS[name](tmp_path / "m")
    options = LoadOptions(device="cpu", allow_pickle=name == "a pickle")
    whole = integrity_findings(load_checkpoint(str(folder), options))
    report = check_files(str(folder), options)
    assert [finding for finding in report.findings if finding.name != FILES_ONLY.name] == whole
    assert report.verdict in ("files only", "do not serve")
    assert any("scores" in sentence for sentence in report.summary.unmeasured)
    assert report.checkpoint_id == load_checkpoint(str(folder), options).checkpoint_id


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: {name: one for name, one in tensors.items() if name != LAYER}, "lack 1 tensor"),
        (lambda tensors: tensors | {LAYER: tensors[LAYER][:, :16].contiguous()}, "do not match its config.json"),
        (lambda tensors: tensors | {LAYER: _set(tensors[LAYER], float("nan"))}, "NaN or infinity"),
        (lambda tensors: tensors | {LAYER: _set(tensors[LAYER], float("-inf"))}, "NaN or infinity"),
        (lambda tensors: {f"module.{name}": one for name, one in tensors.items()}, "begin with 'module.'"),
    ],
    ids=["a tensor is missing", "another shape", "NaN", "infinity", "a prefix"],
)
def test_a_broken_certificate_is_found(change: Callable[[Tensors], Tensors], words: str, tmp_path: Path) -> None:
    report = check_files(str(bert(tmp_path / "m", change)))
    assert report.verdict == "do not serve"
    assert words in report.line
    assert report.exit_code == 1


def test_code_that_changes_weights_is_found(tmp_path: Path) -> None:
    """Its pages are no longer the file's, and are not given back."""
    checkpoint = load_from_files(str(tiny_bert(tmp_path / "m")), LoadOptions())
    with torch.no_grad():
        checkpoint.model.get_parameter(LAYER).mul_(2)
    with giving_back([tmp_path / "m" / WEIGHTS]):
        found = {finding.name: finding.level for finding in integrity_findings(checkpoint)}
    assert found["weights_from_file"] == "problem"


@pytest.mark.parametrize(("looks", "words"), [(0, "nothing found wrong"), (1, "1 thing to"), (2, "2 things to")])
def test_the_verdict_never_says_that_it_may_be_served(looks: int, words: str) -> None:
    findings = [
        Finding("not measured", "Not run.", name=FILES_ONLY.name),
        *([Finding("look", "See.", name="x")] * looks),
    ]
    verdict = verdict_of(findings)
    assert verdict.kind == "files only"
    assert verdict.line.startswith("Only files were looked at")
    assert words in verdict.line
    assert "fit to be served" not in verdict.so_far
    assert verdict_of([*findings, Finding("problem", "Broken.", name="y")]).kind == "do not serve"
    assert verdict_of([*findings, Finding("not measured", "?", name="tokenizer_could_not_run")]).kind == (
        "could not be checked"
    )


def embaudit_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_here(arguments, {**os.environ, "HF_HUB_OFFLINE": "1"}, Path.cwd())


def test_the_command_and_python_say_the_same(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    result = embaudit_here("check", str(folder), "--files", "--json")
    said = json.loads(result.stdout)
    assert said["verdict"] == "do not serve"
    assert said["not_measured"][-1].startswith("The network was not run.")
    assert result.returncode == 1
    assert said["line"] in result.stderr
    assert said["measured"] == {}
    report = embaudit.check(folder, files_only=True)
    assert (report.line, report.exit_code) == (said["line"], 1)


@pytest.mark.parametrize("option", ["--base", "--pairs", "--data", "an address"])
def test_what_would_have_to_be_run_is_refused(option: str, tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    given = ("http://localhost:9",) if option == "an address" else (str(folder), option, str(folder))
    result = embaudit_here("check", *given, "--files")
    assert result.returncode == 2
    assert "Leave out --files" in result.stderr
    with pytest.raises(UsageError, match="files"):
        embaudit.check(given[0], files_only=True, **({option[2:]: [folder]} if len(given) > 1 else {}))  # type: ignore[arg-type]


def in_memory(file: Path) -> int:
    """Bytes of this file's mappings that are in this process's memory."""
    total, is_ours = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            is_ours = line.endswith(str(file.resolve()))
        elif is_ours and words[0] == "Rss:":
            total += int(words[1]) << 10
    return total


def mapped(folder: Path) -> tuple[Path, torch.Tensor]:
    """Eight megabytes of numbers that stay in their file, 0, 1, 2 …"""
    file = folder / WEIGHTS
    save_file({"x": torch.arange(1 << 21, dtype=torch.float32)}, file)
    with safe_open(file, framework="pt") as opened:
        return file, opened.get_tensor("x")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_that_were_read_are_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody has written to them: they are no longer the file's. And by nobody but the thread that reads."""
    monkeypatch.setattr(mapping, "KEPT", 1 << 20)
    file, tensor = mapped(tmp_path)
    names = {str(file.resolve())}
    threads = threading.active_count()
    with giving_back([file]):
        assert threading.active_count() == threads
        total = float(tensor.double().sum())
        was_read()
        assert in_memory(file) < 1 << 20
        # Read again from the file.
        assert float(tensor.double().sum()) == total
        tensor[5] = -1
        assert not list(clean_mappings(names))
        was_read()
        assert float(tensor[5]) == -1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_are_given_back_while_a_library_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody looks any more once it has, when what is mapped may be written to."""
    monkeypatch.setattr(mapping, "KEPT", 1 << 20)
    file, tensor = mapped(tmp_path)
    with giving_back_meanwhile([file]):
        assert float(tensor[:100].sum()) == 4950
        tensor.double()
        end = time.monotonic() + 30
        while in_memory(file) >= 1 << 20 and time.monotonic() < end:
            threading.Event().wait(0.01)
        assert in_memory(file) < 1 << 20
    assert "pages of weight files" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("stored", "asked", "is_trusted", "is_watched"),
    [
        ("bfloat16", "float32", False, True),
        ("float32", "float32", False, False),
        # Some tensors stay mapped, and so may be written to between a look and what is done about it.
        ("both", "float32", False, False),
        ("bfloat16", "float32", True, False),
    ],
)
def test_pages_are_given_back_meanwhile_only_where_all_is_copied(
    stored: str, asked: str, is_trusted: bool, is_watched: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored_as(tensors: Tensors) -> Tensors:
        names = set(tensors) if stored == "bfloat16" else {LAYER} if stored == "both" else set()
        return {name: tensor.bfloat16() if name in names else tensor for name, tensor in tensors.items()}

    folder, watched = bert(tmp_path / "m", stored_as), list[Path]()

    def kept(files: Collection[Path]) -> AbstractContextManager[None]:
        watched.extend(files)
        return giving_back_meanwhile(files)

    monkeypatch.setattr(loading, "giving_back_meanwhile", kept)
    loading.load_model(folder, "weights", "config", "cpu", asked, False, is_trusted)
    assert bool(watched) == is_watched
