"""A pickle in a checkpoint is not opened without --allow-pickle, and what it would run is never run."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import Touch, bare_pickle, torch_archive

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.words.errors import CheckpointError

FORMS: dict[str, Callable[[Path], bytes]] = {"bare pickle": bare_pickle, "torch archive": torch_archive}
# What transformers, sentence-transformers, peft, accelerate or a training script keeps as a pickle beside the weights.
BYSTANDERS = (
    *("pytorch_model.bin", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth", "model.pkl"),
    *("adapter_model.bin", "vocab.pkl", "tokenizer.pkl", "1_Pooling/pytorch_model.bin", "2_Normalize/model.pt"),
    *("tf_model.h5", "flax_model.msgpack", "model.ckpt.index", "vocab-cache.bin"),
)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "code-was-run"


def load(folder: Path, **options: bool) -> None:
    # All the way: loaded, and a text encoded.
    Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu", **options))).encode_texts(["the river"])


def test_the_traps_do_spring(marker: Path) -> None:
    """A test of the tests: read the wrong way, each form makes the marker."""
    pickle.loads(bare_pickle(marker))
    assert marker.exists()
    marker.unlink()
    import io

    import torch

    try:
        torch.load(io.BytesIO(torch_archive(marker)), weights_only=False)
    except Exception as error:
        raise AssertionError("the archive is no trap") from error
    assert marker.exists()


@pytest.mark.parametrize("allow_pickle", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_weights_that_run_code(victim: Path, marker: Path, form: str, allow_pickle: bool) -> None:
    (victim / "model.safetensors").unlink()
    (victim / "pytorch_model.bin").write_bytes(FORMS[form](marker))
    with pytest.raises(CheckpointError) as caught:
        load(victim, allow_pickle=allow_pickle)
    # Even where pickles are allowed, only tensors are taken from them.
    assert ("--allow-pickle" in caught.value.next_step) is not allow_pickle
    assert not marker.exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_shard_that_runs_code_behind_an_index_of_safetensors(victim: Path, marker: Path, form: str) -> None:
    (victim / "model.safetensors").rename(victim / "model-1.safetensors")
    (victim / "model-2.bin").write_bytes(FORMS[form](marker))
    index = {"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.bin"}}
    (victim / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"pickle \(model-2.bin\)"):
        load(victim)
    assert not marker.exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_pickle_that_calls_itself_safetensors(victim: Path, marker: Path, form: str) -> None:
    (victim / "model.safetensors").write_bytes(FORMS[form](marker))
    with pytest.raises(CheckpointError):
        load(victim)
    assert not marker.exists()


@pytest.mark.parametrize("outside", ["../other/model.safetensors", "/etc/hostname"])
def test_an_index_reaches_no_file_outside_of_the_checkpoint(victim: Path, outside: str) -> None:
    (victim / "model.safetensors").unlink()
    (victim / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": outside}}))
    with pytest.raises(CheckpointError, match="outside the checkpoint"):
        load(victim)


@pytest.mark.parametrize("form", FORMS)
def test_a_dense_module_that_runs_code(victim: Path, marker: Path, form: str) -> None:
    modules = json.loads((victim / "modules.json").read_text())
    modules.append({"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"})
    (victim / "modules.json").write_text(json.dumps(modules))
    (victim / "3_Dense").mkdir()
    (victim / "3_Dense" / "config.json").write_text(json.dumps({"in_features": 32, "out_features": 8}))
    (victim / "3_Dense" / "pytorch_model.bin").write_bytes(FORMS[form](marker))
    for allow_pickle in (False, True):
        with pytest.raises(CheckpointError, match="3_Dense"):
            load(victim, allow_pickle=allow_pickle)
    assert not marker.exists()


@pytest.mark.parametrize("allow_pickle", [False, True])
def test_pickles_that_lie_about_are_not_read(victim: Path, marker: Path, allow_pickle: bool) -> None:
    for name in BYSTANDERS:
        (victim / name).write_bytes(pickle.dumps(Touch(marker), protocol=2))
    load(victim, allow_pickle=allow_pickle)
    assert not marker.exists()


@pytest.mark.parametrize("allow_pickle", [False, True])
def test_an_adapter_is_refused_before_its_pickle_is_read(victim: Path, marker: Path, allow_pickle: bool) -> None:
    (victim / "adapter_model.bin").write_bytes(pickle.dumps(Touch(marker), protocol=2))
    (victim / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "a/b"}))
    with pytest.raises(CheckpointError, match="LoRA adapter"):
        load(victim, allow_pickle=allow_pickle)
    assert not marker.exists()
