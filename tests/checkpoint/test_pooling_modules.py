"""Every pooling and every module after it, against sentence-transformers on the same folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from older import sentence_transformers_6, transformers_5
from tiny_models import (
    FAMILIES,
    TEXTS,
    D,
    build,
    change_json,
    declare,
    dense,
    json_file,
    layer_norm,
    load,
    pooling,
    write_json,
)

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.encoder import require_weights, weighted_vectors
from embaudit.checkpoint.modules import POOLING_MODES
from embaudit.words.errors import CheckpointError, NotMeasurable, UsageError

Copy = Callable[..., Path]
Reference = Callable[..., np.ndarray]
NORMALIZE: tuple[str, dict[str, Any]] = ("Normalize", {})


TRANSFORMER = "sentence_bert_config.json"


def replaced(modules: object) -> Callable[[Path], None]:
    return lambda folder: write_json(folder / "modules.json", modules)


def own_normalize(folder: Path) -> None:
    path = folder / "modules.json"
    path.write_text(path.read_text().replace("sentence_transformers.models.Normalize", "custom.Normalize"))


def ours(folder: Path, texts: list[str] = TEXTS, **options: Any) -> np.ndarray:
    # A small budget makes several batches with padding in each.
    return Encoder(load(folder, **options), tokens_per_batch=100).encode_texts(texts)


@pytest.mark.parametrize(
    "modules",
    [
        *([pooling(mode)] for mode in POOLING_MODES),
        pytest.param([pooling("mean"), NORMALIZE], id="normalize"),
        pytest.param([pooling("cls", "mean", "max")], id="three-poolings-concatenated"),
        pytest.param([pooling("mean"), dense()], id="dense"),
        pytest.param([pooling("mean"), dense(bias=False)], id="dense-without-bias"),
        pytest.param([pooling("mean"), dense(activation="torch.nn.modules.linear.Identity")], id="dense-identity"),
        pytest.param([pooling("mean"), dense(activation="torch.nn.modules.activation.GELU")], id="dense-gelu"),
        pytest.param([pooling("cls"), layer_norm()], id="layer-norm"),
        pytest.param([pooling("mean"), ("Dropout", {"dropout": 0.9})], id="dropout-does-nothing"),
        pytest.param(
            [pooling("lasttoken"), layer_norm(), dense(), ("Dropout", {"dropout": 0.5}), NORMALIZE],
            id="all-of-them-in-order",
        ),
        pytest.param([pooling("mean", "max"), dense(2 * D, 8), dense(8, 24), NORMALIZE], id="two-denses"),
        pytest.param([pooling("mean"), NORMALIZE, dense(activation="torch.nn.ReLU")], id="normalize-before-dense"),
    ],
)
def test_modules_after_pooling(modules: list[Any], plain: Copy, reference: Reference) -> None:
    folder = declare(plain(), *modules)
    expected = reference(folder)
    np.testing.assert_allclose(ours(folder), expected, atol=1e-5)
    checkpoint = load(folder)
    assert checkpoint.dimension == expected.shape[1]
    assert [module.kind for module in checkpoint.recipe.modules] == [kind for kind, *_ in modules[1:]]


@pytest.mark.parametrize("outputs", [D, 16])
def test_a_dense_with_a_residual_connection(outputs: int, plain: Copy, reference: Reference) -> None:
    import torch

    sentence_transformers_6("a residual connection of Dense")
    kind, config, weights = dense(D, outputs)
    if outputs != D:
        weights["residual.weight"] = torch.randn(outputs, D, generator=torch.Generator().manual_seed(3))
    folder = declare(plain(), pooling("mean"), (kind, {**config, "use_residual": True}, weights))
    np.testing.assert_allclose(ours(folder), reference(folder), atol=1e-5)


def test_embeddings_cut_to_their_first_dimensions(plain: Copy, reference: Reference) -> None:
    folder = declare(plain(), pooling("mean"), NORMALIZE)
    whole = load(folder)
    write_json(folder / "config_sentence_transformers.json", {"truncate_dim": 8, "prompts": {}})
    cut = load(folder)
    assert (whole.dimension, cut.dimension) == (D, 8)
    assert whole.checkpoint_id != cut.checkpoint_id
    np.testing.assert_allclose(Encoder(cut).encode_texts(TEXTS), reference(folder), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["mean", "lasttoken"])
def test_each_architecture(family: str, mode: str, plain: Copy, reference: Reference) -> None:
    folder = declare(plain(family), pooling(mode), NORMALIZE)
    # sentence-transformers has no answer for a text without a single token.
    texts = [text for text in TEXTS if text or family not in ("qwen2",)]
    np.testing.assert_allclose(ours(folder, texts), reference(folder, texts), atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_plain_transformers_folders_get_mean_pooling(family: str, plain: Copy, reference: Reference) -> None:
    folder = plain(family)
    assert load(folder).recipe.pooling == ("mean",)
    np.testing.assert_allclose(ours(folder), reference(folder), atol=1e-5)


def test_a_plain_causal_language_model_gets_its_last_token(plain: Copy, reference: Reference) -> None:
    folder = plain("llama")
    change_json(folder / "config.json", architectures=["LlamaForCausalLM"])
    assert load(folder).recipe.pooling == ("lasttoken",)
    np.testing.assert_allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize(
    ("config", "modes"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, ("mean",)),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("cls",)),
        ({"pooling_mode_max_tokens": True}, ("max",)),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, ("mean_sqrt_len_tokens",)),
        ({"pooling_mode_weightedmean_tokens": True}, ("weightedmean",)),
        ({"pooling_mode_lasttoken": True}, ("lasttoken",)),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, ("cls", "mean")),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": False}, ("mean",)),
        ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, ("cls",)),
    ],
)
def test_old_pooling_flags(config: dict[str, Any], modes: tuple[str, ...], plain: Copy, reference: Reference) -> None:
    folder = declare(plain(), ("Pooling", {"word_embedding_dimension": D, **config}))
    assert load(folder).recipe.pooling == modes
    np.testing.assert_allclose(ours(folder), reference(folder), atol=1e-5)


def test_old_and_new_notation_are_one_function_with_the_same_id(plain: Copy) -> None:
    old = declare(plain(name="old"), ("Pooling", {"pooling_mode_cls_token": True}))
    new = declare(plain(name="new"), pooling("cls"))
    assert load(old).checkpoint_id == load(new).checkpoint_id


def test_a_transformer_in_a_folder_of_its_own(tmp_path: Path, reference: Reference) -> None:
    folder = tmp_path / "nested"
    build("bert", folder / "0_Transformer")
    declare(folder, pooling("mean"), transformer="0_Transformer")
    checkpoint = load(folder)
    assert checkpoint.recipe.transformer_path == "0_Transformer"
    assert checkpoint.max_length == 48
    np.testing.assert_allclose(ours(folder), reference(folder), atol=1e-5)


def test_the_newer_package_paths_of_modules(plain: Copy, reference: Reference) -> None:
    sentence_transformers_6("this place of modules")
    folder = declare(plain(), pooling("mean"), NORMALIZE, package="sentence_transformers.sentence_transformer.modules")
    modules = folder / "modules.json"
    for kind in ("Transformer", "Normalize"):
        text = modules.read_text()
        modules.write_text(text.replace(f"sentence_transformer.modules.{kind}", f"base.modules.{kind}"))
    np.testing.assert_allclose(ours(folder), reference(folder), atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_lowercasing(family: str, plain: Copy, reference: Reference) -> None:
    folder = plain(family)
    # A cased tokenizer: only do_lower_case makes "HEART" known.
    change = folder / "tokenizer.json"
    change.write_text(change.read_text().replace('"lowercase": true', '"lowercase": false'))
    mask = "[MASK]" if family == "bert" else "<mask>"
    texts = [*TEXTS, f"The {mask} of the SHIP", "ΑΣ ΤΗΣ"]
    cased = declare(folder, pooling("mean"))
    cased_vectors, cased_id = ours(cased, texts), load(cased).checkpoint_id
    lowered = declare(folder, pooling("mean"), settings={"do_lower_case": True})
    vectors = ours(lowered, texts)
    np.testing.assert_allclose(vectors, reference(lowered, texts), atol=1e-5)
    assert load(lowered).checkpoint_id != cased_id
    assert np.abs(vectors[4] - cased_vectors[4]).max() > 1e-3
    assert load(lowered).content_ids("HEART") == load(lowered).content_ids("heart")


def test_pooling_override(plain: Copy, reference: Reference) -> None:
    folder = declare(plain(), pooling("mean"))
    by_cls = declare(plain(name="cls"), pooling("cls"))
    overridden = load(folder, pooling="cls")
    assert overridden.checkpoint_id not in (load(folder).checkpoint_id,)
    assert overridden.checkpoint_id == load(by_cls).checkpoint_id
    np.testing.assert_allclose(ours(folder, pooling="cls"), reference(by_cls), atol=1e-5)
    assert load(folder, pooling="mean").checkpoint_id == load(folder).checkpoint_id


def test_an_override_replaces_a_pooling_that_is_not_known(plain: Copy) -> None:
    folder = declare(plain(), pooling("attention"))
    with pytest.raises(CheckpointError, match="attention") as caught:
        load(folder)
    assert "--pooling mean|cls" in caught.value.next_step
    assert load(folder, pooling="mean").recipe.pooling == ("mean",)


def test_an_unknown_override_names_the_known_ones() -> None:
    from embaudit.checkpoint.modules import read_recipe

    with pytest.raises(UsageError, match="'average'") as caught:
        read_recipe(Path(), pooling="average")
    assert "weightedmean" in caught.value.next_step


@pytest.mark.parametrize(
    ("modules", "names"),
    [
        ([("WeightedLayerPooling", {"a": 1}), pooling("mean")], "WeightedLayerPooling .* before pooling"),
        ([dense(), pooling("mean")], "Dense .* before pooling"),
        ([pooling("mean"), ("LSTM", {"hidden_dim": 4})], "LSTM .* after pooling"),
        ([pooling("mean"), pooling("cls")], "Pooling .* after pooling"),
        ([NORMALIZE], "Normalize .* before pooling"),
        ([], "declares no pooling"),
        ([("Pooling", {"pooling_mode_attention": True})], "pooling pooling_mode_attention"),
        ([("Pooling", {"pooling_mode": ["mean", "median"]})], "pooling median"),
        ([("Pooling", {"pooling_mode": []})], r"\(none\)"),
        ([("Pooling", {})], "1_Pooling/config.json is missing or empty"),
        ([pooling("mean"), ("Dense", {**dense()[1], "module_input_name": "token_embeddings"})], "'token_embeddings'"),
        ([pooling("mean"), ("Normalize", {"module_output_name": "other"})], "'other'"),
        ([pooling("mean"), ("Dense", {"out_features": 3})], "no in_features"),
        ([pooling("mean"), ("LayerNorm", {})], "no dimension"),
        ([pooling("mean"), dense()[:2]], "2_Dense has no model.safetensors"),
        ([pooling("mean"), dense(activation="my_code.Activation")], "my_code.Activation"),
        ([pooling("mean"), dense(activation="torch.nn.Linear")], "torch.nn.Linear"),
        ([pooling("mean"), dense(activation="torch.nn.functional.relu")], "torch.nn.functional.relu"),
        ([pooling("mean"), ("Dense", {**dense()[1], "out_features": 17}, dense()[2])], "do not match"),
        ([pooling("mean", "cls"), dense()], "cannot be run"),
    ],
)
def test_pipelines_that_cannot_be_run_are_errors_and_not_guesses(modules: list[Any], names: str, plain: Copy) -> None:
    with pytest.raises(CheckpointError, match=names) as caught:
        load(declare(plain(), *modules))
    assert "\n" not in str(caught.value)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (replaced([]), "starts with nothing"),
        (
            replaced([{"type": "sentence_transformers.models.StaticEmbedding", "path": ""}]),
            "starts with StaticEmbedding",
        ),
        (replaced([{"type": "custom_st.Transformer", "path": ""}]), "starts with custom_st.Transformer"),
        (replaced({"0": "Transformer"}), "should contain a list"),
        (replaced([{"path": ""}]), "should contain a list"),
        (replaced([{"type": "sentence_transformers.models.Transformer", "path": "../x"}]), "outside the checkpoint"),
        # A class of the checkpoint's own is not taken for a known one of its name.
        (own_normalize, r"custom\.Normalize"),
        (json_file(TRANSFORMER, transformer_task="fill-mask"), "transformer_task"),
        (json_file(TRANSFORMER, module_output_name="sentence_embedding"), "module_output_name"),
        (
            json_file(TRANSFORMER, modality_config={key: {"method": "forward"} for key in ("text", "message")}),
            "chat template",
        ),
    ],
)
def test_modules_that_make_no_sense_or_serve_something_else(change: Any, names: str, bert: Path) -> None:
    change(bert)
    with pytest.raises(CheckpointError, match=names):
        load(bert)


def test_nan_in_a_dense_is_named(plain: Copy) -> None:
    kind, config, weights = dense()
    weights["linear.weight"][2, 3] = float("nan")
    with pytest.raises(CheckpointError, match=r"2_Dense contain NaN or infinity, in linear\.weight"):
        load(declare(plain(), pooling("mean"), (kind, config, weights)))


def test_a_pickled_dense_needs_permission(plain: Copy, reference: Reference) -> None:
    import torch

    kind, config, weights = dense()
    folder = declare(plain(), pooling("mean"), (kind, config))
    torch.save(weights, folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"2_Dense .*--allow-pickle"):
        load(folder)
    np.testing.assert_allclose(ours(folder, allow_pickle=True), reference(folder), atol=1e-5)


def test_a_broken_dense_file(plain: Copy) -> None:
    folder = declare(plain(), pooling("mean"), dense())
    path = folder / "2_Dense" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(CheckpointError, match="2_Dense cannot be read"):
        load(folder)


# ---- tokens with weights ----


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "albert"])
def test_a_token_without_weight_is_not_there(family: str, tmp_path: Path) -> None:
    transformers_5("a mask of four dimensions for an encoder")
    encoder = Encoder(load_checkpoint(str(tiny_models.build(family, tmp_path / family)), LoadOptions(device="cpu")))
    require_weights(encoder)
    ids = torch.tensor(encoder.tokenize(["the river is long"]))
    positions = torch.arange(ids.shape[1])[None]
    plain = torch.nn.functional.normalize(encoder.encode_dense(ids), dim=1)
    found = weighted_vectors(encoder.checkpoint, ids, positions, torch.ones(ids.shape))
    assert torch.allclose(found, plain, atol=1e-5)
    # Twice the weight is two copies in one place.
    twice = torch.tensor([[*ids[0, :2].tolist(), *ids[0, 1:].tolist()]])
    places = torch.tensor([[0, 1, *range(1, ids.shape[1])]])
    weights = torch.ones(ids.shape)
    weights[0, 1] = 2
    copied = weighted_vectors(encoder.checkpoint, twice, places, torch.ones(twice.shape))
    assert torch.allclose(weighted_vectors(encoder.checkpoint, ids, positions, weights), copied, atol=1e-5)
    assert not torch.allclose(found, copied, atol=1e-3)


@pytest.mark.parametrize("family", ["t5", "mpnet", "llama"])
def test_a_model_that_reads_them_otherwise_is_refused(family: str, tmp_path: Path) -> None:
    encoder = Encoder(load_checkpoint(str(tiny_models.build(family, tmp_path / family)), LoadOptions(device="cpu")))
    with pytest.raises(NotMeasurable, match="weights"):
        require_weights(encoder)
