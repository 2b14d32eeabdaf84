"""Weights that stay in their files while a network runs give the vectors of one that is loaded as a whole."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_audits import home_at
from some_rows import mostly_slow

import embaudit
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint, memory, model
from embaudit.checkpoint.memory import bytes_in_memory
from embaudit.checkpoint.model import forget_models
from embaudit.checkpoint.streamed import is_in_files, units_of
from embaudit.steps import results
from embaudit.words.errors import TooLittleMemory

sys.path.append(str(Path(__file__).resolve().parent.parent))
from commands import run_here
from tiny import tiny_bert
from tiny_models import FAMILIES

TEXTS = ["the old river", "a town by the water that is long enough to be padded beside the others", "gold"]


def in_half(folder: Path, dtype: torch.dtype = torch.bfloat16) -> Path:
    for file in folder.rglob("*.safetensors"):
        tensors = {
            name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in load_file(file).items()
        }
        save_file(tensors, file, metadata={"format": "pt"})
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
# Of when, where and how long; and the weights of a pooler that no file has, which transformers draws anew for each precision.
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
