"""Folders that cannot be audited: each ends in one paragraph that names the file and says what to type."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import wordpiece_vocabulary
from tiny_models import change_json, change_tensor, change_tensors, load, to_pickle, to_shards, with_dense, write_json

from embaudit.checkpoint import Encoder, LoadOptions, resolve
from embaudit.checkpoint.load import describe
from embaudit.words.errors import CheckpointError, EmbauditError, MeasureError, UsageError

Change = Callable[[Path], object]


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def broken(bert: Path, change: Change, **options: Any) -> EmbauditError:
    """The error that a changed checkpoint ends in: one paragraph, with a next step."""
    change(bert)
    with pytest.raises(EmbauditError) as caught:
        load(bert, **options)
    assert "\n" not in str(caught.value)
    # However long the name of its folder is.
    assert len(str(caught.value).replace(str(bert), "")) < 550
    assert caught.value.next_step
    return caught.value


def bare_sentencepiece(folder: Path) -> None:
    """transformers 5 would load a tokenizer of five special tokens, to which every word is [UNK]; 4 refuses."""
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    (folder / "spiece.model").write_bytes(b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02")


def vocabulary_alone(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(wordpiece_vocabulary()))


def own_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink(missing_ok=True)
    change_json(folder / "tokenizer_config.json", tokenizer_class="MyTokenizer")


def index_of_nothing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    write_json(folder / "model.safetensors.index.json", {"metadata": {}})


def special_without_embedding(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary["[SEP]"], size = len(vocabulary), len(vocabulary)
    for token in tokenizer["added_tokens"]:
        if token["content"] == "[SEP]":
            token["id"] = size
    tokenizer["post_processor"]["sep"][1] = size
    write_json(folder / "tokenizer.json", tokenizer)


def another_model(model: str, config: str, **sizes: Any) -> Change:
    """Weights of another kind of model beside BERT's tokenizer."""

    def change(folder: Path) -> None:
        import transformers

        for name in ("model.safetensors", "modules.json"):
            (folder / name).unlink()
        settings = getattr(transformers, config)(vocab_size=len(wordpiece_vocabulary()), **sizes)
        getattr(transformers, model)(settings).save_pretrained(folder)

    return change


def without(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def with_text(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text(text)


def with_config(**changes: object) -> Change:
    return lambda folder: change_json(folder / "config.json", **changes)


def with_value(tensor: str, value: float) -> Change:
    return lambda folder: change_tensor(folder / "model.safetensors", tensor, value)


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
UDOP = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4, "decoder_start_token_id": 0}
WORDS, LAYER_0 = "embeddings.word_embeddings.weight", "encoder.layer.0.output.dense.weight"
BIAS_1 = "encoder.layer.1.output.dense.bias"
# What happened to the folder: the change, what the error must say, and what it must tell to do.
BROKEN: dict[str, tuple[Change, str, str]] = {
    "empty folder": (emptied, "is an empty folder", "config.json"),
    "no config": (without("config.json"), "has no config.json", "config.json"),
    "no tokenizer": (without("tokenizer.json"), "has no tokenizer", "save_pretrained"),
    "no weights": (without("model.safetensors"), "has no weights", "download"),
    "pickle": (to_pickle, r"only as a pickle \(pytorch_model.bin\)", "--allow-pickle"),
    "truncated weights": (lambda f: cut_short(f / "model.safetensors"), "cannot load", "truncated"),
    "empty weights": (with_text("model.safetensors", ""), "model.safetensors in .* is empty", "Download it again"),
    "broken config": (with_text("config.json", "{"), "config.json cannot be read as JSON", "complete"),
    "list as config": (with_text("config.json", "[]"), "should contain a JSON object", "complete"),
    "no model type": (with_text("config.json", "{}"), "model_type|shapes of its weights", "Check that"),
    "unknown model type": (with_config(model_type="nobody"), "nobody", "complete"),
    "wrong type in config": (with_config(num_hidden_layers="two"), "num_hidden_layers|'str' object", "complete"),
    "other sizes": (with_config(hidden_size=64), "shapes of its weights", "config.json"),
    "a layer missing": (with_config(num_hidden_layers=3), r"lack 16 tensors .*layer\.2.* random", "config.json"),
    "a tensor missing": (
        lambda f: change_tensors(f / "model.safetensors", lambda found: found.pop(BIAS_1) is None),
        f"lack 1 tensor that .*{BIAS_1}",
        "config.json",
    ),
    "nan": (with_value(WORDS, float("nan")), f"NaN or infinity in 1 tensor, {WORDS}", "diverged"),
    "infinity": (with_value(LAYER_0, float("inf")), f"NaN or infinity in 1 tensor, {LAYER_0}", "diverged"),
    "broken tokenizer": (with_text("tokenizer.json", "{"), "cannot load the tokenizer", "complete"),
    "truncated tokenizer": (lambda f: cut_short(f / "tokenizer.json"), "cannot load the tokenizer", "complete"),
    "broken modules": (with_text("modules.json", "[{"), "modules.json cannot be read", "complete"),
    "no pooling config": (without("1_Pooling/config.json"), "1_Pooling/config.json is missing", "--pooling"),
    "not utf-8": (lambda f: (f / "modules.json").write_bytes(b"\xff\xfe"), "cannot be read as JSON", "complete"),
    "a missing shard": (lambda f: to_shards(f)[1].unlink(), r"lacks 1 of the \d+ weight files .*model-00002", ""),
    "an index of nothing": (index_of_nothing, "names no weight files", ""),
    "bare sentencepiece": (
        bare_sentencepiece,
        "has 5 tokens, but the model has embeddings for|comes without a tokenizer.json",
        "",
    ),
    "a tokenizer of its own kind": (own_tokenizer, "tokenizer", ""),
    "the same with a vocabulary": (lambda f: (vocabulary_alone(f), own_tokenizer(f)), "tokenizer", ""),
    "special tokens without embeddings": (special_without_embedding, r"gives token \d+", ""),
    "images": (another_model("ViTModel", "ViTConfig", **SMALL, image_size=32), "ViTModel", ""),
    "more than text": (
        another_model("UdopModel", "UdopConfig", **UDOP),
        "needs a processor of texts and other inputs",
        "",
    ),
    "no vector per token": (
        another_model("DPRQuestionEncoder", "DPRConfig", **SMALL),
        r"cannot be run as a text encoder \(DPRQuestionEncoder, pooling mean\)",
        "",
    ),
}


@pytest.mark.parametrize(("change", "happened", "next_step"), BROKEN.values(), ids=BROKEN)
def test_one_paragraph_that_says_what_is_wrong(change: Change, happened: str, next_step: str, bert: Path) -> None:
    error = broken(bert, change)
    assert isinstance(error, CheckpointError)
    assert re.search(happened, error.happened), error.happened
    assert next_step in error.next_step


def ungathered(folder: Path, is_empty: Callable[[Any], bool], prefix: str = "") -> None:
    """Weights as ZeRO-3 leaves them: of those that it keeps in pieces, nothing."""
    import torch

    change_tensors(
        folder / "model.safetensors",
        lambda found: {prefix + name: torch.empty(0) if is_empty(one) else one for name, one in found.items()},
    )


def ungathered_shards(folder: Path) -> None:
    to_shards(folder)
    first = min(folder.glob("model-*.safetensors"))
    first.rename(folder / "model.safetensors")
    ungathered(folder, lambda tensor: True)
    (folder / "model.safetensors").rename(first)


def ungathered_dense(folder: Path) -> None:
    """The last module's weights only."""
    import torch
    from safetensors.torch import save_file

    with_dense(folder, {"in_features": 32, "out_features": 8})
    save_file({"linear.weight": torch.empty(0), "linear.bias": torch.zeros(8)}, folder / "3_Dense/model.safetensors")


UNGATHERED: dict[str, tuple[Change, str]] = {
    "every tensor": (lambda folder: ungathered(folder, lambda tensor: True), "of"),
    "those that are large": (lambda folder: ungathered(folder, lambda tensor: tensor.ndim > 1), "of"),
    "one": (lambda folder: ungathered(folder, lambda tensor: tensor.shape[0] > 200), "^1 of"),
    "a pickle": (lambda folder: (ungathered(folder, lambda tensor: tensor.ndim > 1), to_pickle(folder)), "of"),
    "one of several files": (ungathered_shards, "of"),
    "under other names": (lambda folder: ungathered(folder, lambda tensor: True, "module."), r"module\."),
    "of a module behind": (ungathered_dense, "3_Dense"),
}


@pytest.mark.parametrize("name", UNGATHERED)
def test_weights_that_were_not_gathered(name: str, bert: Path) -> None:
    change, said = UNGATHERED[name]
    error = broken(bert, change, allow_pickle=name == "a pickle")
    assert re.search(said, str(error))
    assert "ZeRO-3" in str(error)
    assert f"zero_to_fp32 {bert}" in str(error.next_step)


def test_a_folder_that_is_gone() -> None:
    from embaudit.checkpoint import CheckpointRef

    gone = resolve(CheckpointRef("local", "/nowhere/at/all"))
    with pytest.raises(CheckpointError, match="is not a directory"):
        describe(gone, LoadOptions())


def test_what_can_be_seen_without_loading_is_said_before_loading(bert: Path) -> None:
    to_pickle(bert)
    with pytest.raises(CheckpointError, match="--allow-pickle"):
        describe(resolve(str(bert)), LoadOptions())


def test_a_pickle_loads_where_it_is_allowed(bert: Path) -> None:
    texts = ["the river", "gold and iron"]
    expected = Encoder(load(bert)).encode_texts(texts)
    to_pickle(bert)
    checkpoint = load(bert, allow_pickle=True)
    assert (Encoder(checkpoint).encode_texts(texts) == expected).all()


def test_safetensors_are_preferred_to_a_pickle_beside_them(bert: Path) -> None:
    (bert / "pytorch_model.bin").write_bytes(b"not read at all")
    assert load(bert, allow_pickle=True).checkpoint_id == load(bert).checkpoint_id


def test_sharded_weights(bert: Path) -> None:
    texts = ["the river", "gold and iron"]
    whole = load(bert)
    expected = Encoder(whole).encode_texts(texts)
    shards = to_shards(bert)
    assert len(shards) > 1
    sharded = load(bert)
    assert (Encoder(sharded).encode_texts(texts) == expected).all()
    before = sharded.checkpoint_id
    from safetensors.torch import load_file

    name = next(name for name, tensor in load_file(shards[-1]).items() if tensor.dim() == 2)
    change_tensor(shards[-1], name, 5.0)
    assert load(bert).checkpoint_id != before


@pytest.mark.parametrize("declared", [None, "XLMRobertaTokenizer", "T5Tokenizer", "LlamaTokenizer"])
def test_a_bare_sentencepiece_file_says_what_to_install(declared: str | None, bert: Path, shared: Path) -> None:
    import importlib.util

    if importlib.util.find_spec("sentencepiece"):
        pytest.skip("says nothing of the sort where sentencepiece is installed, as it is here")
    (bert / "tokenizer.json").unlink()
    (bert / "tokenizer_config.json").unlink()
    if declared:
        write_json(bert / "tokenizer_config.json", {"tokenizer_class": declared})
    name = {"XLMRobertaTokenizer": "sentencepiece.bpe.model", "LlamaTokenizer": "tokenizer.model"}
    shutil.copy(
        shared / "data" / "tokenizers" / "albert" / "spiece.model", bert / name.get(declared or "", "spiece.model")
    )
    error = broken(bert, lambda _: None)
    assert "pip install sentencepiece" in error.next_step
    assert "tiktoken" not in str(error)


def test_a_vocabulary_file_alone_is_a_tokenizer(bert: Path) -> None:
    texts = ["the river", "gold and iron"]
    expected = Encoder(load(bert)).encode_texts(texts)
    vocabulary_alone(bert)
    (bert / "tokenizer_config.json").unlink()
    assert (Encoder(load(bert)).encode_texts(texts) == expected).all()


def test_a_tokenizer_with_more_tokens_than_the_model_has_embeddings(bert: Path) -> None:
    tokenizer = json.loads((bert / "tokenizer.json").read_text())
    size = len(tokenizer["model"]["vocab"])
    tokenizer["model"]["vocab"]["unheard"] = size
    (bert / "tokenizer.json").write_text(json.dumps(tokenizer))
    encoder = Encoder(load(bert))
    assert encoder.encode_texts(["the river"]).shape == (1, 32)
    with pytest.raises(MeasureError, match=f"token {size}") as caught:
        encoder.encode_texts(["the unheard river"])
    assert "belong together" in caught.value.next_step


@pytest.mark.parametrize(
    ("device", "dtype"), [("gpu", "auto"), ("cuda:99", "auto"), ("cpu", "float8"), ("cpu", "half")]
)
def test_devices_and_dtypes_that_do_not_exist(device: str, dtype: str, bert: Path) -> None:
    from embaudit.checkpoint import load_checkpoint

    with pytest.raises(UsageError, match=device if dtype == "auto" else dtype) as caught:
        load_checkpoint(str(bert), LoadOptions(device=device, dtype=dtype))
    assert "auto" in caught.value.next_step
