"""A checkpoint is its content: what changes its id, and what does not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from opened_files import opened_files
from tiny import tiny_bert
from tiny_models import change_json, change_tensor, declare, dense, json_file, layer_norm, load, pooling, to_shards

from embaudit.checkpoint import LoadOptions, resolve
from embaudit.checkpoint.card import describe_row
from embaudit.checkpoint.files import TOKENIZER_SETTINGS, VOCABULARIES
from embaudit.checkpoint.load import describe
from embaudit.words.errors import CheckpointError, UsageError


def identity(folder: Path, **options: object) -> dict[str, str]:
    """All hashes and the id, without loading the model."""
    found = describe(resolve(str(folder)), LoadOptions(**options))[1]  # type: ignore[arg-type]
    return {**vars(found), "checkpoint_id": found.checkpoint_id}


def changed(folder: Path, change: Callable[[Path], object]) -> set[str]:
    """Which hashes a change of the folder changes."""
    before = identity(folder)
    change(folder)
    after = identity(folder)
    return {name for name in before if before[name] != after[name]}


def test_the_same_bytes_elsewhere_are_the_same_checkpoint(bert: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "far" / "away"
    shutil.copytree(bert, elsewhere)
    for path in elsewhere.rglob("*"):
        os.utime(path, (1, 1))
    assert identity(bert) == identity(elsewhere)
    assert load(bert).checkpoint_id == load(elsewhere).checkpoint_id == identity(bert)["checkpoint_id"]


def test_the_id_is_sixteen_hex_digits_and_the_weights_hash_is_the_files(bert: Path) -> None:
    found = identity(bert)
    assert len(found["checkpoint_id"]) == 16
    assert int(found["checkpoint_id"], 16) >= 0
    assert found["weights_sha256"] == hashlib.sha256((bert / "model.safetensors").read_bytes()).hexdigest()
    assert found["config_sha256"] == hashlib.sha256((bert / "config.json").read_bytes()).hexdigest()


def test_the_same_seed_writes_the_same_checkpoint(bert: Path, tmp_path: Path) -> None:
    assert identity(tiny_bert(tmp_path / "again")) == identity(bert)
    assert identity(tiny_bert(tmp_path / "other", seed=1))["weights_sha256"] != identity(bert)["weights_sha256"]


def _one_weight(folder: Path) -> None:
    change_tensor(folder / "model.safetensors", "embeddings.word_embeddings.weight", 0.123)


def _one_token(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace('"gold"', '"GOLD"'))


def _pooling(folder: Path) -> None:
    change_json(folder / "1_Pooling" / "config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)


TRANSFORMER = "sentence_bert_config.json"
HONOURED: dict[str, Any] = {
    "max_seq_length": 32,
    "do_lower_case": True,
    "query_length": 8,
    "document_length": 8,
    "config_kwargs": {"num_hidden_layers": 1},
    "tokenizer_args": {"truncation_side": "left"},
    "model_args": {"attn_implementation": "eager"},
    "processing_kwargs": {"text": {"add_special_tokens": False}},
}


@pytest.mark.parametrize(
    ("change", "hash_of"),
    [
        (_one_weight, "weights"),
        (_one_token, "tokenizer"),
        (json_file("tokenizer_config.json", model_max_length=100), "tokenizer"),
        (json_file("special_tokens_map.json"), "tokenizer"),
        (json_file("added_tokens.json"), "tokenizer"),
        (lambda folder: (folder / "spm.model").write_bytes(b"x"), "tokenizer"),
        (json_file("config.json", layer_norm_eps=1e-6), "config"),
        (json_file("config.json", hidden_act="relu"), "config"),
        (_pooling, "modules"),
        (json_file("modules.json", lambda modules: modules[:-1]), "modules"),
        (json_file("config_sentence_transformers.json", truncate_dim=8), "modules"),
        *((json_file(TRANSFORMER, **{name: value}), "modules") for name, value in HONOURED.items()),
    ],
)
def test_what_makes_another_checkpoint(change: Callable[[Path], object], hash_of: str, bert: Path) -> None:
    assert changed(bert, change) == {f"{hash_of}_sha256", "checkpoint_id"}


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "training_args.bin",
        "optimizer.pt",
        "model_fp16.safetensors",
        "onnx/model.onnx",
        "a.py",
        "notes.txt",
        "openvino/openvino_model.bin",
        "pytorch_model.bin",
        ".gitattributes",
    ],
)
def test_files_that_are_never_read_do_not_count(name: str, bert: Path) -> None:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"whatever this is")

    assert changed(bert, write) == set()


def test_how_a_tokenizer_was_loaded_before_it_was_saved_does_not_count(bert: Path) -> None:
    path = bert / "tokenizer_config.json"
    declared = json.loads(path.read_text())
    ids = set()
    for loaded, length in ((True, 128), (False, 128), (False, 127)):
        ours = {"is_local": loaded, "local_files_only": not loaded, "model_max_length": length}
        path.write_text(json.dumps(declared | ours))
        ids.add((length, identity(bert)["tokenizer_sha256"]))
    assert len(ids) == 2
    assert len({sha256 for _, sha256 in ids}) == 2


def test_notation_does_not_count_only_what_is_declared(bert: Path) -> None:
    def rename(folder: Path) -> None:
        path = folder / "modules.json"
        path.write_text(path.read_text().replace("2_Normalize", "7_Norm"))
        (folder / "2_Normalize").rename(folder / "7_Norm")
        change_json(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=False)

    assert changed(bert, rename) == set()


@pytest.mark.parametrize(("kind", "tensor"), [("Dense", "linear.weight"), ("LayerNorm", "norm.weight")])
def test_weights_after_pooling_count(kind: str, tensor: str, plain: Callable[..., Path]) -> None:
    folder = declare(plain(), pooling("mean"), dense() if kind == "Dense" else layer_norm())
    weights = folder / f"2_{kind}" / "model.safetensors"
    index = (1, 1) if kind == "Dense" else (1,)
    assert changed(folder, lambda _: change_tensor(weights, tensor, 9.0, index)) == {"weights_sha256", "checkpoint_id"}


def test_an_activation_counts(plain: Callable[..., Path]) -> None:
    folder = declare(plain(), pooling("mean"), dense())
    config = folder / "2_Dense" / "config.json"
    hashes = changed(folder, lambda _: change_json(config, activation_function="torch.nn.ReLU"))
    assert hashes == {"modules_sha256", "checkpoint_id"}


def test_code_of_its_own_counts_where_the_config_asks_for_it(bert: Path) -> None:
    change_json(bert / "config.json", auto_map={"AutoModel": "modeling_own.OwnModel"})
    hashes = changed(bert, lambda folder: (folder / "modeling_own.py").write_text("x = 1"))
    assert hashes == {"config_sha256", "checkpoint_id"}


def test_max_length_override(bert: Path) -> None:
    declared = identity(bert)
    assert identity(bert, max_length=64) == declared  # which is what the checkpoint declares
    shorter = identity(bert, max_length=16)
    assert shorter["checkpoint_id"] != declared["checkpoint_id"]
    assert shorter["weights_sha256"] == declared["weights_sha256"]
    assert load(bert, max_length=16).max_length == 16
    assert len(load(bert, max_length=16).content_ids("gold " * 50)) == 14


@pytest.mark.parametrize("length", [0, -1, 129])
def test_a_max_length_that_cannot_be(length: int, bert: Path) -> None:
    with pytest.raises(UsageError, match=str(length)):
        load(bert, max_length=length)


def test_a_max_length_without_room_for_text(bert: Path) -> None:
    with pytest.raises(CheckpointError, match="no room for text besides 2 special tokens") as caught:
        load(bert, max_length=2)
    assert "--max-length" in caught.value.next_step


def test_a_rewritten_file_is_hashed_and_loaded_again(bert: Path) -> None:
    before = load(bert)
    _one_weight(bert)
    after = load(bert)
    assert after.checkpoint_id != before.checkpoint_id
    assert float(after.model.get_input_embeddings().weight[1, 1].detach()) == pytest.approx(0.123)


def test_a_changed_config_is_loaded_again_although_the_weights_are_the_same(bert: Path) -> None:
    assert load(bert).model.config.hidden_act == "gelu"
    change_json(bert / "config.json", hidden_act="relu")
    assert load(bert).model.config.hidden_act == "relu"


def test_the_row_of_facts(plain: Callable[..., Path]) -> None:
    folder = declare(plain(), pooling("cls", "mean"), ("Normalize", {}))
    checkpoint = load(folder)
    row = describe_row(checkpoint)
    assert row["checkpoint_id"] == checkpoint.checkpoint_id
    assert (row["source"], row["revision"]) == (str(folder), None)
    assert (row["architecture"], row["hidden_size"], row["layers"], row["heads"]) == ("BertModel", 32, 2, 4)
    assert (row["pooling"], row["pooling_is_mean"], row["modules"]) == ("cls+mean", False, "Normalize")
    assert row["max_length"] == 48
    assert row["vocabulary_size"] == len(checkpoint.tokenizer)
    assert row["parameters"] > 10_000


@pytest.mark.parametrize("family", ["distilbert", "mpnet", "albert", "t5", "qwen2"])
def test_the_row_of_facts_of_other_families(family: str, plain: Callable[..., Path]) -> None:
    row = describe_row(load(plain(family)))
    assert (row["hidden_size"], row["layers"], row["heads"], row["pooling_is_mean"]) == (32, 2, 4, True)


def _vocabulary_file_only(folder: Path) -> None:
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
    (folder / "tokenizer.json").unlink()
    change_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")


def _own_code(folder: Path) -> None:
    change_json(
        folder / "config.json",
        model_type="own",
        auto_map={"AutoConfig": "own_config.OwnConfig", "AutoModel": "own_model.OwnModel"},
    )
    (folder / "own_config.py").write_text(
        "from transformers import BertConfig\n\n\nclass OwnConfig(BertConfig):\n    model_type = 'own'\n"
    )
    (folder / "own_model.py").write_text(
        "from transformers import BertModel\n\nfrom .own_config import OwnConfig\nfrom .own_parts import *\n\n\n"
        "class OwnModel(BertModel):\n    config_class = OwnConfig\n"
    )
    (folder / "own_parts.py").write_text("SCALE = 2\n")


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda folder: declare(folder, pooling("mean"), dense(), layer_norm(16)), {}),
        (lambda folder: (folder / "chat_template.jinja").write_text("{{ messages }}"), {}),
        (json_file("generation_config.json"), {}),
        (json_file("special_tokens_map.json"), {}),
        (json_file(TRANSFORMER, config_kwargs={"num_hidden_layers": 1}), {}),
        (to_shards, {}),
        (_vocabulary_file_only, {}),
        (_own_code, {"trust_remote_code": True}),
    ],
    ids=["modules", "template", "generation", "special tokens", "settings", "shards", "vocabulary", "code"],
)
def test_the_id_covers_every_file_that_loading_opens(
    change: Callable[[Path], object],
    options: dict[str, bool],
    bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    change(bert)
    with opened_files(bert) as hashed:
        identity(bert, **options)
    with opened_files(bert) as read:
        load(bert, **options)
    assert "config.json" in read
    # A chat template is not applied where there is a modules.json; generation is not used.
    assert read - hashed <= {"chat_template.jinja", "generation_config.json"}


@pytest.mark.slow
def test_the_id_covers_the_vocabulary_files_of_every_tokenizer() -> None:
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

    classes = {tokenizer_class_from_name(name) for name in TOKENIZER_MAPPING_NAMES.values() if name} - {None}
    # What needs a package that is not here is a dummy, known by its name only.
    kinds = [kind for kind in classes if kind.__module__.startswith("transformers.models.")]
    names = {name for kind in kinds for name in (getattr(kind, "vocab_files_names", None) or {}).values()}
    assert len(names) > 10
    patterns = (*VOCABULARIES, *TOKENIZER_SETTINGS)
    assert [name for name in sorted(names) if not any(fnmatch(name, pattern) for pattern in patterns)] == []
