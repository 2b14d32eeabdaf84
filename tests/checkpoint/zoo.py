"""A zoo of generated checkpoint folders: families, settings, modules and layouts that sentence-transformers reads.

Each entry is either read the same, to 1e-5, or refused with words that name the cause.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiny_models import (
    POSITIONS,
    D,
    build,
    change_json,
    declare,
    dense,
    json_file,
    layer_norm,
    pooling,
    save_model,
    save_tokenizer,
    write_json,
)

NORMALIZE: tuple[str, dict[str, Any]] = ("Normalize", {})
SETTINGS, TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
# At most this many tokens, so that the long texts exceed it.
LIMIT = 20


Make = Callable[[Path], Path]


@dataclass(frozen=True)
class Entry:
    """One folder: how it is made, and what must come of it."""

    make: Make
    refused: str = ""


def entries(group: str, table: Mapping[str, Make | tuple[Make, str]]) -> dict[str, Entry]:
    """Entries of one group: how each is made, with what it is refused with, if it is."""
    return {
        f"{group}: {name}": Entry(*value) if isinstance(value, tuple) else Entry(value) for name, value in table.items()
    }


def family(model_type: str, style: str = "bert", **sizes: Any) -> Make:
    """A plain folder of any model type, tiny, with random weights."""

    def make(folder: Path) -> Path:
        import torch
        from transformers import AutoConfig, AutoModel

        tokens = save_tokenizer(folder, style)
        config = AutoConfig.for_model(model_type)
        usual = {
            **{"vocab_size": tokens, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 2, "unk_token_id": 1},
            **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "embed_dim"), D),
            **dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "n_layers"), 2),
            **dict.fromkeys(("num_layers", "num_decoder_layers"), 2),
            **dict.fromkeys(("num_attention_heads", "encoder_attention_heads", "decoder_attention_heads"), 4),
            **dict.fromkeys(("n_head", "n_heads", "num_heads"), 4),
            **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "hidden_dim"), 64),
            **dict.fromkeys(("ffn_dim", "d_inner", "n_inner"), 64),
            **dict.fromkeys(("num_key_value_heads",), 2),
            **dict.fromkeys(("d_kv", "head_dim"), 8),
            **dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx"), POSITIONS),
        }
        if model_type == "xlnet":  # has no limit, and an attribute that cannot be set
            del usual["max_position_embeddings"]
        known = {name: value for name, value in usual.items() if hasattr(config, name)}
        config = type(config)(**{**known, "tie_word_embeddings": True, **sizes})
        torch.manual_seed(3)
        save_model(folder, AutoModel.from_config(config))
        return folder

    return make


def known(name: str) -> Make:
    return lambda folder: build(name, folder)


def changed(make: Make, *changes: Callable[[Path], object]) -> Make:
    """A folder with a pipeline of mean pooling and Normalize, and changes to it."""

    def run(folder: Path) -> Path:
        declare(make(folder), pooling("mean"), NORMALIZE)
        for change in changes:
            change(folder)
        return folder

    return run


def bert(*changes: Callable[[Path], object]) -> Make:
    return changed(known("bert"), *changes)


def plain(make: Make, *changes: Callable[[Path], object]) -> Make:
    """A folder without modules.json, and changes to it."""

    def run(folder: Path) -> Path:
        make(folder)
        for change in changes:
            change(folder)
        return folder

    return run


def with_modules(*modules: Any, **options: Any) -> Make:
    return lambda folder: declare(build("bert", folder), *modules, **options)


def settings(**values: Any) -> Callable[[Path], object]:
    return json_file(TRANSFORMER, **values)


def without(name: str, *keys: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        write_json(folder / name, {k: v for k, v in json.loads((folder / name).read_text()).items() if k not in keys})

    return change


def replaced(name: str, content: Any) -> Callable[[Path], object]:
    return lambda folder: write_json(folder / name, content)


def text(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content, encoding="utf-8")


def renamed_tensors(prefix: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(folder / "model.safetensors")
        save_file({prefix + name: t for name, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})

    return change


def moved(old: str, new: str) -> Callable[[Path], object]:
    return lambda folder: shutil.move(folder / old, folder / new)


def nested(folder: Path) -> Path:
    build("bert", folder / "0_Transformer")
    return declare(folder, pooling("mean"), NORMALIZE, transformer="0_Transformer")


def saved_by_sentence_transformers(folder: Path, **changes: Any) -> Path:
    """What the installed sentence-transformers itself writes, with attributes of the model changed before."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(declare(build("bert", folder / "from"), pooling("mean"), NORMALIZE)))
    for name, value in changes.items():
        setattr(model, name, value)
    model.save_pretrained(str(folder / "to"), create_model_card=False)
    return folder / "to"


def entry_of(kind: str, path: str) -> dict[str, Any]:
    return {"idx": 0, "name": "0", "path": path, "type": f"sentence_transformers.models.{kind}"}


# Encoder-decoders of which the encoder alone is read.
ENCODER_DECODERS = ("marian", "m2m_100", "pegasus", "pegasus_x", "blenderbot", "blenderbot-small")


def encoder_of(make: Make) -> Make:
    """The encoder alone of a whole encoder-decoder."""

    def run(folder: Path) -> Path:
        from transformers import AutoModel

        whole = AutoModel.from_pretrained(make(folder))
        (folder / "model.safetensors").unlink()
        whole.get_encoder().save_pretrained(folder)
        return folder

    return run


TEMPLATE = "{% for message in messages %}{{ message['content'] }} river{% endfor %}"
PLAIN_TEXT = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}

FAMILIES: dict[str, Make | tuple[Make, str]] = {
    **{name: changed(known(name)) for name in ("bert", "roberta", "distilbert", "mpnet", "albert")},
    **{name: changed(known(name)) for name in ("t5", "qwen2", "llama")},
    "xlm-roberta": changed(family("xlm-roberta", "roberta", pad_token_id=1)),
    "camembert": changed(family("camembert", "roberta", pad_token_id=1)),
    "electra": changed(family("electra")),
    "deberta-v2": changed(family("deberta-v2", relative_attention=True, pos_att_type=["p2c", "c2p"])),
    "modernbert": changed(family("modernbert", cls_token_id=2, sep_token_id=3)),
    "xlnet": changed(family("xlnet", "xlnet"), json_file("tokenizer_config.json", padding_side="left")),
    "roformer": changed(family("roformer")),
    "rembert": changed(family("rembert", input_embedding_size=16, output_embedding_size=D)),
    # It reads each token with its neighbours, padding included.
    "mobilebert": (
        changed(family("mobilebert", intra_bottleneck_size=32, num_feedforward_networks=1)),
        "padded on the right",
    ),
    "longformer": changed(family("longformer", "roberta", attention_window=[8, 8], pad_token_id=1)),
    "squeezebert": changed(family("squeezebert")),
    "nomic_bert": changed(family("nomic_bert")),
    "gpt2": changed(family("gpt2", "bos")),
    "gpt_neox": changed(family("gpt_neox", "bos")),
    "opt": changed(family("opt", "bos", word_embed_proj_dim=D)),
    "mistral": changed(family("mistral", "bos")),
    "gemma3_text": changed(family("gemma3_text", "bos", use_bidirectional_attention=True)),
    "qwen3": changed(family("qwen3", "decoder")),
    "bloom": changed(family("bloom", "bos"), without(TRANSFORMER, "max_seq_length")),
    "mt5": changed(family("mt5", "t5")),
    "umt5": changed(family("umt5", "t5")),
    "switch": changed(family("switch_transformers", "t5", num_sparse_encoder_layers=0)),
    # sentence-transformers takes the encoder's class and finds none of its tensors: they are random there.
    **{
        name: (changed(family(name, "roberta", pad_token_id=1, decoder_start_token_id=2)), "whole encoder-decoder")
        for name in ENCODER_DECODERS
    },
    **{
        f"{name}, its encoder saved": changed(
            encoder_of(family(name, "roberta", pad_token_id=1, decoder_start_token_id=2))
        )
        for name in ENCODER_DECODERS
    },
    "longt5": changed(family("longt5", "t5", local_radius=3)),
    "bart": changed(family("bart", "roberta", pad_token_id=1, decoder_start_token_id=2)),
    "fnet": (changed(family("fnet")), "padded|attention.mask"),
    "gpt2 padded on the left": (
        changed(family("gpt2", "bos"), json_file("tokenizer_config.json", padding_side="left")),
        "padded on the left",
    ),
    "bert padded on the left": (bert(json_file("tokenizer_config.json", padding_side="left")), "padded on the left"),
    "qwen2 padded on the left": changed(known("qwen2"), json_file("tokenizer_config.json", padding_side="left")),
}
LIMITS = {
    "no limit, t5": changed(known("t5"), without(TRANSFORMER, "max_seq_length")),
    "no limit, plain t5": plain(known("t5")),
    "no limit, positions": plain(known("bert")),
    "declared beyond rotary positions": changed(known("llama"), settings(max_seq_length=200)),
    "tokenizer's": bert(
        without(TRANSFORMER, "max_seq_length"), json_file("tokenizer_config.json", model_max_length=LIMIT)
    ),
    "truncated on the left": bert(
        settings(max_seq_length=LIMIT), json_file("tokenizer_config.json", truncation_side="left")
    ),
    "truncated on the left by tokenizer.json": bert(
        settings(max_seq_length=LIMIT),
        lambda folder: change_json(
            folder / "tokenizer.json",
            truncation={"direction": "Left", "max_length": 12, "strategy": "LongestFirst", "stride": 0},
        ),
    ),
    "truncated on the left, with prompts": bert(
        settings(max_seq_length=LIMIT),
        json_file("tokenizer_config.json", truncation_side="left"),
        json_file(SETTINGS, prompts={"query": "river: ", "document": "stone: "}, default_prompt_name="query"),
    ),
    "queries and documents": bert(settings(query_length=8, document_length=16)),
}
FOLDER_SETTINGS = {
    "nothing": bert(replaced(TRANSFORMER, {})),
    "empty, then the next name": bert(
        replaced(TRANSFORMER, {}), replaced("sentence_roberta_config.json", {"max_seq_length": LIMIT})
    ),
    "lower case": changed(family("bert", "cased"), settings(do_lower_case=True)),
    "cased": changed(family("bert", "cased")),
    "tokenizer_args": bert(settings(tokenizer_args={"model_max_length": LIMIT})),
    "processor_kwargs": bert(settings(processor_kwargs={"truncation_side": "left", "model_max_length": LIMIT})),
    "config_args": bert(settings(config_args={"num_hidden_layers": 1})),
    "config_kwargs": bert(settings(config_kwargs={"hidden_act": "relu"})),
    "model_args": bert(settings(model_args={"attn_implementation": "eager"})),
    "model_kwargs": (bert(settings(model_kwargs={"gguf_file": "x.gguf"})), "model_kwargs.gguf_file"),
    "no special tokens": bert(settings(processing_kwargs={"text": {"add_special_tokens": False}})),
    "length of the call": bert(settings(processing_kwargs={"text": {"max_length": 9}}, query_length=5)),
    "length of all calls": bert(settings(processing_kwargs={"common": {"max_length": 9}})),
    "no truncation": changed(
        known("t5"), settings(max_seq_length=LIMIT, processing_kwargs={"text": {"truncation": False}})
    ),
    "unknown call": (bert(settings(processing_kwargs={"text": {"stride": 2}})), "processing_kwargs.text.stride"),
    "unknown part of the call": (bert(settings(processing_kwargs={"texts": {}})), "processing_kwargs.texts"),
    "modality of texts": bert(settings(modality_config=PLAIN_TEXT, module_output_name="token_embeddings")),
    "another state": (
        bert(
            settings(
                modality_config={"text": {"method": "forward", "method_output_name": ["hidden_states", 1]}},
                module_output_name="token_embeddings",
            )
        ),
        "modality_config.text",
    ),
    "unpadded": bert(settings(unpad_inputs=False)),
    "query expansion": (bert(settings(query_expansion={"strategy": "fixed", "length": 16})), "query_expansion"),
    "a tokenizer elsewhere": (bert(settings(tokenizer_name_or_path="bert-base-cased")), "tokenizer_name"),
    "unknown setting": (bert(settings(pooler="x")), "'pooler'"),
    "unknown pooling setting": (bert(json_file("1_Pooling/config.json", temperature=2)), "'temperature'"),
    "unknown setting of the model": (bert(json_file(SETTINGS, rescale=2)), "'rescale'"),
    "prompts": bert(
        json_file(
            SETTINGS, prompts={"query": "river: ", "document": "stone: ", "sts": "old "}, default_prompt_name="sts"
        )
    ),
    "prompts outside the mean": changed(
        known("roberta"),
        json_file(SETTINGS, prompts={"query": "river: ", "document": "stone: "}, default_prompt_name="document"),
        json_file("1_Pooling/config.json", include_prompt=False),
    ),
    "fewer dimensions": bert(json_file(SETTINGS, truncate_dim=7)),
    "requirements met": bert(json_file(SETTINGS, requirements={"torch": ">=2"})),
    "requirements not met": (bert(json_file(SETTINGS, requirements={"torch": ">=99"})), "requires torch"),
    **{
        f"a {kind}": (bert(json_file(SETTINGS, model_type=kind)), kind)
        for kind in ("CrossEncoder", "SparseEncoder", "MultiVectorEncoder")
    },
}
MODULES = {
    **{
        mode: with_modules(pooling(mode), NORMALIZE)
        for mode in ("cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens")
    },
    "two poolings": with_modules(pooling("mean", "max")),
    "dense": with_modules(pooling("mean"), dense(), NORMALIZE),
    "layer norm": with_modules(pooling("cls"), layer_norm()),
    "dropout": with_modules(pooling("mean"), ("Dropout", {"dropout": 0.5})),
    "normalize, then dense": with_modules(pooling("mean"), NORMALIZE, dense()),
    "newer package": with_modules(
        pooling("mean"), NORMALIZE, package="sentence_transformers.sentence_transformer.modules"
    ),
    "unknown key of dense": (
        with_modules(pooling("mean"), ("Dense", {**dense()[1], "scale": 2}, dense()[2])),
        "'scale'",
    ),
    "two of one name": (
        bert(
            replaced("modules.json", [entry_of("Transformer", ""), {**entry_of("Pooling", "1_Pooling"), "name": "0"}])
        ),
        "the name '0' to two modules",
    ),
    **{
        f"first a {kind}": (bert(replaced("modules.json", [entry_of(kind, "")])), words)
        for kind, words in {
            "StaticEmbedding": "static model",
            "BoW": "bag-of-words",
            "Router": "router",
            "Asym": "router",
            "MLMTransformer": "SPLADE",
            "CLIPModel": "images and texts",
        }.items()
    },
}
LAYOUTS = {
    "nested": nested,
    "version 2: flags": bert(
        replaced("1_Pooling/config.json", {"word_embedding_dimension": D, "pooling_mode_cls_token": True})
    ),
    "version 6: saved": saved_by_sentence_transformers,
    "version 6: saved with a limit": lambda folder: saved_by_sentence_transformers(folder, max_seq_length=9),
    "version 6: saved with prompts": lambda folder: saved_by_sentence_transformers(
        folder, prompts={"query": "old: ", "document": ""}, default_prompt_name="query"
    ),
    "plain causal": plain(known("llama"), json_file("config.json", architectures=["LlamaForCausalLM"])),
    "plain masked": plain(known("bert"), json_file("config.json", architectures=["BertForMaskedLM"])),
    "chat template": (
        plain(known("qwen2"), json_file("tokenizer_config.json", chat_template=TEMPLATE)),
        "chat template",
    ),
    "chat template in a file": (plain(known("qwen2"), text("chat_template.jinja", TEMPLATE)), "chat template"),
    "chat template and modules": changed(known("qwen2"), text("chat_template.jinja", TEMPLATE)),
    "chat template and its modality": (
        changed(
            known("qwen2"),
            text("chat_template.jinja", TEMPLATE),
            settings(
                modality_config={**PLAIN_TEXT, "message": {**PLAIN_TEXT["text"], "format": "flat"}},
                module_output_name="token_embeddings",
            ),
        ),
        "chat template",
    ),
    "reranker": (
        plain(known("bert"), json_file("config.json", architectures=["BertForSequenceClassification"])),
        "reranker",
    ),
    "adapter beside": (
        bert(replaced("adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "a/b"})),
        "LoRA adapter beside other weights",
    ),
    "adapter alone": (
        bert(
            replaced("adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "a/b"}),
            moved("model.safetensors", "adapter_model.safetensors"),
            lambda folder: (folder / "config.json").unlink(),
        ),
        "LoRA adapter",
    ),
    "git-lfs pointer": (
        bert(text("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
        "git-lfs pointer",
    ),
    "pointer of a tokenizer": (
        bert(text("tokenizer.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")),
        "git-lfs pointer",
    ),
    "page instead of weights": (bert(text("model.safetensors", "<!DOCTYPE html><html>")), "web page"),
    "quantised": (
        bert(json_file("config.json", quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True})),
        "quantised .bitsandbytes",
    ),
    **{
        f"keys with {prefix}": (bert(renamed_tensors(prefix)), f"'{prefix}'")
        for prefix in ("module.", "_orig_mod.", "base_model.model.", "student.")
    },
    "only gguf": (bert(moved("model.safetensors", "model-q4.gguf")), "llama.cpp"),
    "only onnx": (bert(moved("model.safetensors", "model.onnx")), "ONNX"),
    "weights of another name": (
        bert(
            moved("model.safetensors", "other.safetensors"),
            json_file("config.json", transformers_weights="other.safetensors"),
        ),
        "another name|transformers_weights",
    ),
    "a processor": (bert(json_file("processor_config.json", processor_class="CLIPProcessor")), "[Pp]rocessor"),
}
ZOO = {
    **entries("family", FAMILIES),
    **entries("limits", LIMITS),
    **entries("settings", FOLDER_SETTINGS),
    **entries("modules", MODULES),
    **entries("layouts", LAYOUTS),
}
