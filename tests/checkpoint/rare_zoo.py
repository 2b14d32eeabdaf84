"""More of the zoo: rare files and settings, each of which once made a difference, or was refused without need."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from older import is_transformers_4, transformers_5
from tiny_models import (
    D,
    build,
    change_json,
    declare,
    dense,
    json_file,
    pooling,
    save_model,
    save_tokenizer,
)
from zoo import (
    LIMIT,
    NORMALIZE,
    SETTINGS,
    TEMPLATE,
    TRANSFORMER,
    Make,
    bert,
    changed,
    entries,
    family,
    known,
    nested,
    plain,
    replaced,
    settings,
    text,
    with_modules,
    without,
)

PROMPTS = json_file(SETTINGS, prompts={"query": "river: "}, default_prompt_name="query")
OUTSIDE_THE_MEAN = json_file("1_Pooling/config.json", include_prompt=False)


def also_as(name: str, copy: str, **changes: Any) -> Callable[[Path], object]:
    """A changed copy of a JSON file under another name."""

    def run(folder: Path) -> None:
        shutil.copy(folder / name, folder / copy)
        change_json(folder / copy, **changes)

    return run


def pickle_beside(folder: Path) -> None:
    """Other weights in a pickle beside the safetensors."""
    import torch
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    torch.save({name: 1.5 * tensor for name, tensor in weights.items()}, folder / "pytorch_model.bin")


def byte_pairs(*, post_processor: bool = True, **model: Any) -> Callable[[Path], object]:
    """Replace the tokenizer by a byte-level BPE of single bytes and a few merges."""

    def run(folder: Path) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers, processors
        from transformers import PreTrainedTokenizerFast

        names = ["<s>", "<pad>", "</s>", "<unk>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
        merges = [("r", "i"), ("o", "l"), ("ol", "d"), ("a", "t")]
        names += ["".join(pair) for pair in merges]
        tokenizer = Tokenizer(models.BPE({name: place for place, name in enumerate(names)}, merges, **model))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        if post_processor:
            tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>", bos_token="<s>"
        ).save_pretrained(folder)

    return run


def lowercased_after(first: str, then: str) -> Callable[[Path], object]:
    """A normalizer that lowercases by itself, after replacing a capital."""
    steps = [{"type": "Replace", "pattern": {"String": first}, "content": then}, {"type": "Lowercase"}]
    return json_file(
        "tokenizer.json", lambda content: content.update(normalizer={"type": "Sequence", "normalizers": steps})
    )


def in_nested(*changes: Callable[[Path], object]) -> Make:
    def run(folder: Path) -> Path:
        nested(folder)
        for change in changes:
            change(folder)
        return folder

    return run


def another_at_the_root(folder: Path) -> None:
    """Another model and tokenizer beside the folder of the transformer."""
    for path in build("roberta", folder.parent / "another").iterdir():
        shutil.copy(path, folder / path.name)


def gemma4(folder: Path) -> Path:
    """A Gemma 4 with attention both ways, which ``family`` cannot build: its sizes differ by layer."""
    import torch

    transformers_5("Gemma 4")
    from transformers import Gemma4TextConfig, Gemma4TextModel

    sizes = {"vocab_size": save_tokenizer(folder, "bos"), "hidden_size": D, "intermediate_size": 64, "head_dim": 8}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "global_head_dim": 8}
    sizes |= {"hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "pad_token_id": 0}
    torch.manual_seed(3)
    save_model(folder, Gemma4TextModel(Gemma4TextConfig(**sizes, use_bidirectional_attention="all")))
    return folder


BIGBIRD: dict[str, Any] = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 256}


def rotary(kind: str, **parameters: Any) -> Callable[[Path], object]:
    """Rotary positions that are others in batches with a text of more than 16 tokens."""
    rope = {"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0, **parameters}
    # transformers 4 refuses what 5 writes.
    sizes = {"max_position_embeddings": 16 if kind == "dynamic" else 64}
    if is_transformers_4():
        beside = {name: value for name, value in parameters.items() if name.startswith("original_")}
        return json_file("config.json", rope_scaling=rope, **sizes, **beside)
    return json_file("config.json", rope_parameters=rope, **sizes)


LONG_ROPE: dict[str, Any] = {
    "short_factor": [1.0] * 4,
    "long_factor": [4.0] * 4,
    "original_max_position_embeddings": 16,
}
ROTARY = {"dynamic": rotary("dynamic"), "longrope": rotary("longrope", **LONG_ROPE)}

RARE = {
    "config: tuples instead of outputs": bert(json_file("config.json", return_dict=False)),
    "config: a file for this version": (
        bert(
            also_as("config.json", "config.4.0.0.json", hidden_act="relu"),
            json_file("config.json", configuration_files=["config.4.0.0.json"]),
        ),
        "config.4.0.0.json for some versions",
    ),
    "tokenizer: a file for this version": (
        bert(
            also_as("tokenizer.json", "tokenizer.4.0.0.json"),
            json_file("tokenizer_config.json", fast_tokenizer_files=["tokenizer.4.0.0.json"]),
        ),
        "tokenizer.4.0.0.json for some versions",
    ),
    "tokenizer: a list with the usual file": bert(
        json_file("tokenizer_config.json", fast_tokenizer_files=["tokenizer.json"])
    ),
    "tokenizer: random merges": (bert(byte_pairs(dropout=0.01)), "at random .dropout"),
    "tokenizer: bytes": bert(byte_pairs()),
    "tokenizer: bytes, nothing around a text": bert(byte_pairs(post_processor=False)),
    "tokenizer: lowercases by itself": bert(lowercased_after("A", "x"), settings(do_lower_case=True)),
    "processor: named in config.json": (
        bert(json_file("config.json", processor_class="BarkProcessor")),
        "a BarkProcessor",
    ),
    "processor: of the family": (changed(family("bros", max_position_embeddings=64)), "a BrosProcessor|specify bbox"),
    "call: null for a length": bert(settings(processing_kwargs={"text": {"max_length": None}}, query_length=5)),
    **{
        f"call: {name}, prompts outside the mean": (
            bert(settings(processing_kwargs={"text": {name: value}}), PROMPTS, OUTSIDE_THE_MEAN),
            f"pads a prompt, too .{name}",
        )
        for name, value in (("padding", "max_length"), ("pad_to_multiple_of", 8))
    },
    "call: pad_to_multiple_of, prompts in the mean": bert(
        settings(processing_kwargs={"text": {"pad_to_multiple_of": 8}}), PROMPTS
    ),
    "weights: pickles preferred": (
        bert(settings(model_kwargs={"use_safetensors": False}), pickle_beside),
        "use_safetensors",
    ),
    "weights: a pickle beside": bert(pickle_beside),
    "family: bigbird, short": changed(family("big_bird", **BIGBIRD), settings(max_seq_length=LIMIT)),
    "family: bigbird, sparse": (
        changed(family("big_bird", **BIGBIRD), settings(max_seq_length=200)),
        "more than 28 tokens with sparse attention",
    ),
    "family: bigbird, full": changed(
        family("big_bird", attention_type="original_full", **BIGBIRD), settings(max_seq_length=200)
    ),
    **{
        f"positions: {kind}, long": (
            changed(known("llama"), change, settings(max_seq_length=LIMIT)),
            "for a whole batch if one of its texts has more than 16 tokens",
        )
        for kind, change in ROTARY.items()
    },
    **{
        f"positions: {kind}, short": changed(known("llama"), change, settings(max_seq_length=16))
        for kind, change in ROTARY.items()
    },
    "positions: yarn": changed(
        known("llama"), rotary("yarn", original_max_position_embeddings=16), settings(max_seq_length=LIMIT)
    ),
    "family: pooling by the config's class": (
        plain(
            gemma4, json_file("config.json", architectures=["Gemma4ForCausalLM"]), without("config.json", "is_causal")
        ),
        "reads as lasttoken pooling, but sentence-transformers uses mean",
    ),
    "family: pooling by the config's class, in its file": plain(
        gemma4,
        json_file("config.json", architectures=["Gemma4ForCausalLM"]),
        json_file("tokenizer_config.json", model_max_length=LIMIT),
    ),
    "chat template of nothing": (
        plain(known("qwen2"), json_file("tokenizer_config.json", chat_template="")),
        "chat template",
    ),
    "nested: another model at the root": in_nested(another_at_the_root),
    "nested: a chat template at the root": in_nested(text("chat_template.jinja", TEMPLATE)),
    "nested: an adapter at the root": (
        in_nested(replaced("adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "a/b"})),
        "LoRA adapter",
    ),
    "nested: other settings at the root": in_nested(replaced(TRANSFORMER, {"max_seq_length": 9})),
}
IDENTITY = "torch.nn.modules.linear.Identity"
# The layouts of well-known checkpoints.
HUB = {
    "LaBSE": with_modules(pooling("cls"), dense(D, D), NORMALIZE, settings={"do_lower_case": False}),
    "sentence-t5": lambda folder: declare(
        build("t5", folder), pooling("mean"), dense(bias=False, activation=IDENTITY), NORMALIZE
    ),
    "distiluse": lambda folder: declare(build("distilbert", folder), pooling("mean"), dense()),
    "embeddinggemma": lambda folder: declare(
        family("gemma3_text", "bos", use_bidirectional_attention=True, sliding_window=16)(folder),
        pooling("mean"),
        dense(bias=False, activation=IDENTITY),
        NORMALIZE,
    ),
    "Qwen3-Embedding": changed(
        family("qwen3", "t5", pad_token_id=1),
        json_file("tokenizer_config.json", padding_side="left", pad_token="</s>", chat_template=TEMPLATE),
        json_file("1_Pooling/config.json", pooling_mode="lasttoken"),
        json_file(SETTINGS, prompts={"query": "Instruct: find it\nQuery:", "document": ""}),
    ),
}
RARE_ZOO = entries("hub", HUB) | entries("rare", RARE)
