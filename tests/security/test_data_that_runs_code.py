"""Pickles and corpora that run code: nothing is run, wherever it hides."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import bare_pickle, code, torch_archive
from planted_calls import Calls
from tiny_models import with_dense

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.corpora.load import load_corpus
from embaudit.corpora.records import read_chosen_pairs
from embaudit.questions.audit import AuditRequest
from embaudit.stores.pickled import unpickled_value
from embaudit.words.errors import CheckpointError, CorpusError, EmbauditError, UsageError

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
    assert ("pickle is broken or contains more than tensors" in caught.value.happened) is allow_pickle
    assert "weights_only" not in str(caught.value), "torch's advice to switch the safety off"
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
    with_dense(victim, {"in_features": 32, "out_features": 8})
    (victim / "3_Dense" / "pytorch_model.bin").write_bytes(FORMS[form](marker))
    for allow_pickle in (False, True):
        with pytest.raises(CheckpointError, match="3_Dense"):
            load(victim, allow_pickle=allow_pickle)
    assert not marker.exists()


@pytest.mark.parametrize("allow_pickle", [False, True])
def test_pickles_that_lie_about_are_not_read(victim: Path, marker: Path, allow_pickle: bool) -> None:
    for name in BYSTANDERS:
        (victim / name).write_bytes(pickle.dumps(Calls(Path.touch, marker), protocol=2))
    load(victim, allow_pickle=allow_pickle)
    assert not marker.exists()


@pytest.mark.parametrize("allow_pickle", [False, True])
def test_an_adapter_is_refused_before_its_pickle_is_read(victim: Path, marker: Path, allow_pickle: bool) -> None:
    (victim / "adapter_model.bin").write_bytes(pickle.dumps(Calls(Path.touch, marker), protocol=2))
    (victim / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": "a/b"}))
    with pytest.raises(CheckpointError, match="LoRA adapter"):
        load(victim, allow_pickle=allow_pickle)
    assert not marker.exists()


# ---- corpora ----


TEXTS = ["the river runs to the sea", "the old town has a church"]


@pytest.mark.parametrize("name", ["corpus.py", "corpus.pkl", "corpus.npy", "corpus.npz", "corpus.pt", "corpus.bin"])
def test_a_format_that_can_run_code_is_no_format(tmp_path: Path, marker: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith(".py"):
        path.write_text(code(marker))
    elif name.endswith(".npy"):
        np.save(path, np.array([Calls(Path.touch, marker)], dtype=object), allow_pickle=True)
    elif name.endswith(".npz"):
        np.savez(path, text=np.array([Calls(Path.touch, marker)], dtype=object))
    else:
        path.write_bytes(bare_pickle(marker))
    for corpus in ("wikipedia", "sts"):
        with pytest.raises(CorpusError):
            load_corpus(corpus, str(path))
    with pytest.raises(EmbauditError):
        read_chosen_pairs(path)
    assert not marker.exists()


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".jsonl", ".json", ".parquet"])
def test_a_pickle_under_another_name_is_a_broken_file(tmp_path: Path, marker: Path, suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(pickle.dumps(Calls(Path.touch, marker)))
    with suppress(CorpusError):
        load_corpus("wikipedia", str(path))
    assert not marker.exists()


def test_a_script_beside_the_data_is_not_run(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``datasets`` library once ran FOLDER/FOLDER.py to load a folder."""
    folder = tmp_path / "passages"
    folder.mkdir()
    for name in ("passages.py", "dataset.py", "__init__.py", "conftest.py"):
        (folder / name).write_text(code(marker))
    (folder / "corpus.jsonl").write_text("".join(json.dumps({"_id": "1", "text": text}) + "\n" for text in TEXTS))
    monkeypatch.chdir(folder)
    assert [text.text for text in load_corpus("msmarco", str(folder)).texts] == TEXTS
    assert not marker.exists()


def test_parquet_with_a_pickled_arrow_type(tmp_path: Path, marker: Path) -> None:
    """CVE-2023-47248: older pyarrow unpickled the type of a column when it read the file."""
    metadata = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": bare_pickle(marker)}
    text = pa.field("text", pa.string(), metadata=metadata)
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(TEXTS)], schema=pa.schema([text])), path)
    assert [one.text for one in load_corpus("wikipedia", str(path)).texts] == TEXTS
    assert not marker.exists()


def test_parquet_with_pickled_objects(tmp_path: Path, marker: Path) -> None:
    """Bytes stay bytes, and pandas' own notes on a column are not followed."""
    notes = {"columns": [{"name": "text", "pandas_type": "object", "numpy_type": "object", "metadata": None}]}
    schema = pa.schema([pa.field("text", pa.binary())], metadata={b"pandas": json.dumps(notes).encode()})
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([bare_pickle(marker)])], schema=schema), path)
    with suppress(CorpusError):
        load_corpus("wikipedia", str(path))
    assert not marker.exists()


@pytest.mark.parametrize("source", ["https://evil.example/corpus.csv", "file:///etc/passwd", "s3://bucket/corpus.csv"])
def test_an_address_is_no_source(source: str) -> None:
    """pyarrow, pandas and DuckDB would fetch these; a corpus comes from a file or from the hub."""
    with pytest.raises(CorpusError, match="no file or folder"):
        load_corpus("wikipedia", source)


def test_an_address_with_a_password_is_refused_before_a_flow_knows_it() -> None:
    with pytest.raises(UsageError, match="password") as caught:
        AuditRequest.of(checkpoint="m", corpora={"wikipedia": "https://user:canary-password@example.com/corpus.csv"})
    assert "canary-password" not in str(caught.value)


ARRAYS = {
    **{
        kind: np.arange(6).reshape(2, 3).astype(kind) for kind in ("f4", ">f4", "f2", "f8", "i4", "u1", "?", "U3", "S3")
    },
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "none": np.zeros((0, 3), np.float32),
    "objects": np.array(["a", None, 3], dtype=object),
    "rows of objects": np.array([[1, "b"], ["c", 2.5]], dtype=object),
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ARRAYS)
def test_plain_pickles_hold_what_they_held(name: str, protocol: int) -> None:
    one = ARRAYS[name]
    read = unpickled_value(pickle.dumps({"vectors": [one], "one": np.float32(1.5)}, protocol))
    (found,) = read["vectors"]
    assert (found.dtype, found.shape, read["one"]) == (one.dtype, one.shape, 1.5)
    assert found.tolist() == one.tolist()


class Lying:
    """An array of Python's objects, whose pointers would be these bytes."""

    def __reduce__(self) -> tuple[object, ...]:
        return np.ndarray, ((1,), np.dtype(object), b"A" * 8)


def test_a_pickle_cannot_say_where_an_array_has_its_pointers() -> None:
    assert not len(unpickled_value(pickle.dumps(Lying())))
    with pytest.raises(pickle.UnpicklingError, match="no kind of numbers or texts"):
        unpickled_value(pickle.dumps(np.zeros(2, dtype=[("a", "f4")])))
