"""Batches that do not fit: a process whose address space is limited, a GPU of which it may use a small part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import torch
from commands import run_here
from safetensors.torch import save_file
from small_audits import home_at
from some_rows import mostly_slow
from tiny import tiny_bert
from tiny_models import FAMILIES, change_tensors

import embaudit
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint, memory, model
from embaudit.checkpoint.memory import bytes_in_memory, free_memory, in_halves
from embaudit.checkpoint.model import forget_models
from embaudit.checkpoint.streamed import is_in_files, units_of
from embaudit.steps import results
from embaudit.words.errors import EXIT_USAGE, MeasureError, TooLittleMemory, is_out_of_memory

# 4 096 texts in one batch take hundreds of megabytes more than there are; 16 at a time take less.
LIMITED = """
import json, resource, sys
import numpy as np
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint

device, folder = sys.argv[1:]
checkpoint = load_checkpoint(folder, LoadOptions(device=device))
ids = [[2, *np.random.default_rng(row).integers(5, 40, 60).tolist(), 3] for row in range(4096)]
small = Encoder(checkpoint, 1024).encode_ids(ids)
if device == "cpu":
    (size,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
    limit = size * 1024 + 120 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
else:
    import torch
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 60 * 2**20) / total)
encoder = Encoder(checkpoint, 4096 * 62)
large = encoder.encode_ids(ids)
difference = float(np.abs(large - small).max())
print(json.dumps({"difference": difference, "tokens": encoder.tokens_per_batch, "texts": encoder.texts}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_batch_that_does_not_fit_is_encoded_in_halves(device: str, tmp_path: Path) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    folder = tiny_bert(tmp_path / "tiny")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, device, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["difference"] < 1e-5
    assert found["tokens"] < 4096 * 62
    # What was encoded, not what was tried.
    assert found["texts"] == 4096


class Memory:
    """A forward pass that fits as many tokens as it is told."""

    def __init__(self, tokens: int, error: Exception) -> None:
        self.tokens, self.error = tokens, error
        self.passes: list[int] = []

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if ids.numel() > self.tokens:
            raise self.error
        self.passes.append(len(ids))
        return ids * mask


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("fits", [1, 3, 64])
def test_rows_stay_in_order_and_each_is_run_once(rows: int, fits: int) -> None:
    memory, lowered = Memory(fits * 5, torch.OutOfMemoryError("CUDA out of memory.")), []
    ids = torch.arange(rows * 5).reshape(rows, 5)
    parts = list(in_halves(memory, ids, torch.ones_like(ids), lowered.append))
    assert torch.equal(torch.cat([part for _, part in parts]), ids)
    assert [row for place, _ in parts for row in range(place.start, place.stop)] == list(range(rows))
    assert sum(memory.passes) == rows
    assert bool(lowered) is (rows > fits)


def test_a_text_that_does_not_fit_is_named_by_its_length() -> None:
    ids = torch.ones((3, 512), dtype=torch.int64)
    with pytest.raises(MeasureError, match="one text of 512 tokens"):
        list(in_halves(Memory(511, torch.OutOfMemoryError("CUDA out of memory.")), ids, ids, lambda _: None))


def test_other_errors_are_left_alone() -> None:
    ids = torch.ones((4, 5), dtype=torch.int64)
    with pytest.raises(RuntimeError, match="device-side assert"):
        list(in_halves(Memory(0, RuntimeError("CUDA error: device-side assert triggered")), ids, ids, lambda _: None))


@pytest.mark.parametrize(
    ("error", "is_so"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (OSError(28, "No space left on device"), False),
    ],
)
def test_what_a_lack_of_memory_is(error: Exception, is_so: bool) -> None:
    assert is_out_of_memory(error) is is_so


# ---- weights that do not fit into memory are refused before they are loaded, and by what there is in fact ----


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
    file = tiny_bert(folder) / "model.safetensors"
    change_tensors(file, lambda found: {name: tensor.to(dtype) for name, tensor in found.items()})
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


# ---- weights that stay in their files while a network runs give the vectors of one that is loaded as a whole ----


TEXTS = ["the old river", "a town by the water that is long enough to be padded beside the others", "gold"]


def in_half(folder: Path, dtype: torch.dtype = torch.bfloat16) -> Path:
    for file in folder.rglob("*.safetensors"):
        change_tensors(
            file, lambda found: {name: one.to(dtype) if one.is_floating_point() else one for name, one in found.items()}
        )
    return folder


@pytest.fixture
def too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for a layer, and not for the whole."""
    monkeypatch.setattr(model, "fits", lambda weights: False)
    forget_models()


@pytest.mark.usefixtures("too_little")
@pytest.mark.parametrize("family", mostly_slow(FAMILIES, 3))
def test_vectors_of_every_family_are_the_same_to_the_last_bit(family: str, plain: Callable[..., Path]) -> None:
    folder = in_half(plain(family))
    options = LoadOptions(device="cpu", pooling="mean")
    streamed = load_checkpoint(str(folder), options, is_kept=False, may_stay_in_files=True)
    assert is_in_files(streamed.model)
    assert streamed.dtype == "float32"
    stored = {name: parameter.dtype for name, parameter in streamed.model.named_parameters()}
    whole = load_checkpoint(str(folder), options, is_kept=False)
    for _ in range(2):
        np.testing.assert_array_equal(Encoder(streamed).encode_texts(TEXTS), Encoder(whole).encode_texts(TEXTS))
    # Nothing stays widened, and nothing in the file has changed.
    assert {name: parameter.dtype for name, parameter in streamed.model.named_parameters()} == stored
    for (name, own), (_, other) in zip(streamed.model.named_parameters(), whole.model.named_parameters(), strict=True):
        # A pooler that is not in the file is drawn anew, and nothing depends on it.
        assert name.startswith("pooler.") or torch.equal(own.float(), other), name


def test_every_weight_is_in_memory_with_one_unit() -> None:
    def layer() -> torch.nn.Module:
        return torch.nn.ModuleDict({"experts": torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(2))})

    network = torch.nn.ModuleDict(
        {
            "table": torch.nn.Embedding(3, 2),
            "layers": torch.nn.ModuleList(layer() for _ in range(3)),
            "end": torch.nn.Sequential(torch.nn.Linear(2, 2)),
        }
    )
    # Beside modules that have weights of their own.
    network.register_parameter("scale", torch.nn.Parameter(torch.ones(2)))
    units = list(units_of(network))
    assert [unit.module for unit in units if unit.is_layer] == list(network["layers"])
    together = [id(weight) for unit in units for weight in unit.parameters()]
    assert sorted(together) == sorted(map(id, network.parameters()))


def test_a_module_that_fails_leaves_its_weights_as_they_were(too_little: None, plain: Callable[..., Path]) -> None:
    folder = in_half(plain("bert"))
    streamed = load_checkpoint(str(folder), LoadOptions(device="cpu"), is_kept=False, may_stay_in_files=True)
    layer = next(unit for unit in units_of(streamed.model) if unit.is_layer).module
    with pytest.raises(Exception, match=r".+"):
        layer("no states")
    assert {parameter.dtype for parameter in layer.parameters()} == {torch.bfloat16}


@pytest.fixture
def there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A machine with so many bytes of memory left."""
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(memory, "ROOT", tmp_path)

    def with_memory(count: float) -> None:
        (tmp_path / "proc/meminfo").write_text(f"MemAvailable: {int(count) >> 10} kB\n")

    return with_memory


def test_what_does_not_fit_stays_in_its_files_or_is_refused(there_are: Callable[[float], None], tmp_path: Path) -> None:
    """With memory for most of the weights; with less than a layer's, it is said before anything is computed."""
    folder, options = in_half(tiny_bert(tmp_path / "m")), LoadOptions(device="cpu")
    there_are(1.4 * bytes_in_memory([folder / "model.safetensors"], "float32"))
    assert is_in_files(load_checkpoint(str(folder), options, is_kept=False, may_stay_in_files=True).model)
    with pytest.raises(TooLittleMemory, match="in float32"):
        load_checkpoint(str(folder), options, is_kept=False)
    there_are(1024)
    with pytest.raises(TooLittleMemory, match="for the largest layer"):
        load_checkpoint(str(folder), options, is_kept=False, may_stay_in_files=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_does_not_fit_is_checked_all_the_same(
    dtype: torch.dtype, there_are: Callable[[float], None], tmp_path: Path
) -> None:
    folder = in_half(tiny_bert(tmp_path / "m"), dtype)
    weights = bytes_in_memory([folder / "model.safetensors"], "float32")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    there_are(2 * weights)
    whole = run_here(("check", str(folder), "--json"), environment, tmp_path)
    there_are(1.4 * weights)
    checked = run_here(("check", str(folder), "--json"), environment, tmp_path)
    assert "a layer's are in memory while it computes" in checked.stderr
    assert findings(checked.stdout) == findings(whole.stdout)


def findings(printed: str) -> list[tuple[str, str, float | None]]:
    import json

    return [(one["level"], one["name"], one["value"]) for one in json.loads(printed)["findings"]]


MEASURES = ["integrity", "quality", "sticky", "socm", "layers", "length", "geometry", "tempscale"]
# Of when, where and how long; and the weights of a pooler that no file has, drawn anew for each precision.
ELSEWHERE = {"audit_id", "source", "ingested", "seconds", "measure_key"}
UNREAD = dict.fromkeys(("audit", "audit_name", "corpus", "measure_run", "schema_migration"), "false")
UNREAD["weight"] = "status <> 'unused'"


@pytest.mark.slow
def test_an_audit_of_weights_in_their_files_has_the_same_figures(
    tmp_path: Path, prefect_api: str, tiny_profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = in_half(tiny_bert(tmp_path / "m"))
    was_in_files: list[bool] = []
    plainly = results.load_checkpoint

    def load(*given: Any, **named: Any) -> Checkpoint:
        checkpoint = plainly(*given, **named)
        was_in_files.append(is_in_files(checkpoint.model))
        return checkpoint

    monkeypatch.setattr(results, "load_checkpoint", load)
    found = []
    for fits in (True, False):
        monkeypatch.setattr(model, "fits", lambda weights, fits=fits: fits)
        forget_models()
        with home_at(tmp_path / f"home {fits}"):
            outcome = embaudit.audit(str(folder), str(tiny_profile), device="cpu", measures=MEASURES)
            found.append(rows_of(outcome.warehouse))
        # Who writes to weights has them as a whole.
        assert set(was_in_files) == ({False} if fits else {True, False})
        was_in_files.clear()
    assert sum(map(len, found[0].values())) > 5_000
    assert found[0].keys() == found[1].keys()
    differing = {table: (found[0][table] - found[1][table]).total() for table in found[0]}
    assert {table: count for table, count in differing.items() if count} == {}


def rows_of(warehouse: str) -> dict[str, Counter[tuple[Any, ...]]]:
    with duckdb.connect(warehouse, read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        rows = {}
        for (table,) in tables:
            found = connection.execute(f"SELECT * FROM {table} WHERE {UNREAD.get(table, 'true')}")
            kept = [place for place, column in enumerate(found.description or ()) if column[0] not in ELSEWHERE]
            rows[table] = Counter(tuple(str(row[place]) for place in kept) for row in found.fetchall())
        return rows
