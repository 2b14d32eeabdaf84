"""Weights that do not fit into memory are refused before they are loaded, and by what there is in fact."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from embaudit.checkpoint import LoadOptions, load_checkpoint, memory
from embaudit.checkpoint.memory import bytes_in_memory, free_memory
from embaudit.words.errors import EXIT_USAGE, TooLittleMemory

sys.path.append(str(Path(__file__).resolve().parent.parent))
from commands import run_here
from tiny import tiny_bert

MB = 1 << 20
OWN, GROUPS = "proc/self/cgroup", "sys/fs/cgroup"
MEMINFO = "MemTotal: 99 kB\nMemAvailable: 1024 kB\nSwapFree: 2048 kB\nHugePages_Total: 0\n"


def group(path: str, most: str, held: int, pages: int = 0) -> dict[str, str]:
    return {
        f"{GROUPS}/{path}memory.max": most,
        f"{GROUPS}/{path}memory.current": str(held),
        f"{GROUPS}/{path}memory.stat": f"anon 5\ninactive_file {pages}\nactive_file 0\n",
    }


FREE: dict[str, tuple[Mapping[str, str], int | None]] = {
    "nobody says": ({}, None),
    "the system": ({"proc/meminfo": MEMINFO}, 3 * MB),
    "a system without that line": ({"proc/meminfo": "MemTotal: 99 kB\n"}, None),
    "a group without a limit": ({"proc/meminfo": MEMINFO, OWN: "0::/\n", **group("", "max", 7)}, 3 * MB),
    "a group": ({OWN: "0::/\n", **group("", str(9 * MB), 4 * MB)}, 5 * MB),
    "pages of files": ({OWN: "0::/\n", **group("", str(9 * MB), 8 * MB, 2 * MB)}, 3 * MB),
    "swap of a group": (
        {OWN: "0::/\n", **group("", str(9 * MB), 8 * MB), f"{GROUPS}/memory.swap.max": str(MB)},
        2 * MB,
    ),
    "the group around it": (
        {OWN: "0::/a/b\n", **group("a/b/", "max", 0), **group("a/", str(2 * MB), MB)},
        MB,
    ),
    "less than is held": ({OWN: "0::/\n", **group("", str(MB), 2 * MB)}, 0),
    "the system has less": ({"proc/meminfo": MEMINFO, OWN: "0::/\n", **group("", str(9 * MB), 0)}, 3 * MB),
    "version 1": (
        {
            OWN: "4:memory:/x\n",
            f"{GROUPS}/memory/x/memory.limit_in_bytes": str(3 * MB),
            f"{GROUPS}/memory/x/memory.usage_in_bytes": str(2 * MB),
            f"{GROUPS}/memory/x/memory.stat": "total_inactive_file 1\n",
        },
        MB + 1,
    ),
}


def written(files: Mapping[str, str], root: Path) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
    return root


@pytest.mark.parametrize("case", FREE)
def test_what_can_be_had(case: str, tmp_path: Path) -> None:
    files, free = FREE[case]
    assert free_memory(written(files, tmp_path)) == free


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2), ("float16", 2)])
def test_weights_are_counted_as_they_are_computed(stored: torch.dtype, dtype: str, size: int, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(3, 5, dtype=stored), "b": torch.ones(2, dtype=torch.int64)}, file)
    assert bytes_in_memory([file], dtype) == 15 * size + 16


def bert(folder: Path, dtype: torch.dtype) -> Path:
    tiny_bert(folder)
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_too_little_is_said_before_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROOT", written({"proc/meminfo": "MemAvailable: 20 kB\n"}, tmp_path))
    folder = bert(tmp_path / "m", torch.bfloat16)
    with pytest.raises(TooLittleMemory, match="MB in float32") as raised:
        load_checkpoint(str(folder), LoadOptions(device="cpu"))
    assert "--files" in raised.value.next_step
    # What stays in its file needs none; nor do its files alone.
    load_checkpoint(str(folder), LoadOptions(device="cpu", dtype="bfloat16"))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    refused = run_here(("check", str(folder)), environment, tmp_path)
    assert refused.returncode == EXIT_USAGE
    assert "--files" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert run_here(("check", str(folder), "--files"), environment, tmp_path).returncode == 1
