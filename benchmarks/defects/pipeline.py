"""Defects of what stands around the transformer: pooling, modules, prompts, limits, batching."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from benchmarks.defects.copies import (
    CONFIG,
    Change,
    Copy,
    read_json,
    removed,
    replaced,
    seeded,
    set_json,
    together,
    write,
)
from benchmarks.defects.tokenizer import SETTINGS, in_file

WIDTH = 384
MODULES, POOLING = "modules.json", "1_Pooling/config.json"
SERVED, TRANSFORMER = "config_sentence_transformers.json", "sentence_bert_config.json"
POOLED = r"pooling"
NORM = r"normali[sz]|\bnorms?\b|unit length"
DENSE = r"\bdense\b|random numbers|untrained"
CUT = r"limit|truncat|better_length|cut off"
PROMPTED = r"prompt"
PADDED = r"padd|batch|mask"
INSTRUCTION = (
    "Instruct: Given a question that somebody typed into a search box in a hurry, retrieve the passages of the "
    "encyclopedia that answer it, and prefer those that were written by people who had been there.\nQuery: "
)


def pooled(*modes: str) -> Change:
    return replaced(
        POOLING, {"embedding_dimension": WIDTH, "pooling_mode": modes[0] if len(modes) == 1 else list(modes)}
    )


def modules(*names: str) -> Change:
    """Declare these modules, in order; ``Pooling`` and the transformer keep their folders."""

    def change(folder: Path) -> None:
        places = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize", "Dense": "2_Dense"}
        write(
            folder / MODULES,
            [
                {"idx": at, "name": str(at), "path": places[name], "type": f"sentence_transformers.models.{name}"}
                for at, name in enumerate(names)
            ],
        )

    return change


def dense(activation: str, size: int = WIDTH, spread: float = WIDTH**-0.5) -> Change:
    """A Dense module with random weights in its folder."""

    def change(folder: Path) -> None:
        settings = {"in_features": WIDTH, "out_features": size, "bias": True, "activation_function": activation}
        write(folder / "2_Dense/config.json", settings)
        weights = {
            "linear.weight": torch.randn(size, WIDTH, generator=seeded()) * spread,
            "linear.bias": torch.zeros(size),
        }
        save_file(weights, folder / "2_Dense/model.safetensors", metadata={"format": "pt"})

    return change


def with_dense(activation: str, size: int = WIDTH) -> Change:
    return together(dense(activation, size), modules("Transformer", "Pooling", "Dense", "Normalize"))


def prompts(**settings: Any) -> Change:
    return set_json(SERVED, **settings)


def limited(tokens: int) -> Change:
    return set_json(TRANSFORMER, max_seq_length=tokens)


def cut_on_the_left(folder: Path) -> None:
    content = read_json(folder / "tokenizer.json")
    in_file(truncation={**content["truncation"], "direction": "Left"})(folder)
    set_json(SETTINGS, truncation_side="left")(folder)


def padded_on_the_left(folder: Path) -> None:
    in_file(padding={"direction": "Left"})(folder)
    set_json(SETTINGS, padding_side="left")(folder)


IDENTITY, TANH = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"


def _pooling(name: str, change: Change, cause: str, strength: str = "") -> Copy:
    return Copy(name, "pooling", change, cause, strength)


PIPELINE_COPIES = (
    *(_pooling("another pooling", pooled(mode), POOLED, mode) for mode in ("cls", "max", "lasttoken", "weightedmean")),
    _pooling("another pooling", pooled("cls", "mean"), POOLED, "cls and mean side by side"),
    _pooling("pooling not declared", removed(POOLING), POOLED, "no config.json"),
    _pooling("pooling not declared", removed(MODULES, POOLING), rf"{POOLED}|modules\.json", "no modules.json"),
    _pooling("Normalize lost", modules("Transformer", "Pooling"), NORM, "not declared"),
    _pooling(
        "Normalize lost",
        together(modules("Transformer", "Pooling"), replaced("2_Normalize/config.json", "{}")),
        NORM,
        "its folder is there",
    ),
    _pooling("Dense that nobody trained", with_dense(IDENTITY), DENSE, "linear"),
    _pooling("Dense that nobody trained", with_dense(TANH), DENSE, "with Tanh"),
    _pooling("Dense that nobody trained", with_dense(TANH, 64), DENSE, "64 dimensions"),
    _pooling("Dense on disk, not declared", dense(TANH), r"\bdense\b"),
    _pooling(
        "modules in the wrong order",
        modules("Transformer", "Normalize", "Pooling"),
        r"before pooling|\border\b|modules\.json",
    ),
    _pooling("dimensions cut", prompts(truncate_dim=32), rf"truncate_dim|dimensions|{NORM}", "32, not normalised"),
    _pooling("dimensions cut", prompts(truncate_dim=192), rf"truncate_dim|dimensions|{NORM}", "192, not normalised"),
    _pooling(
        "causal attention",
        set_json(CONFIG, is_decoder=True),
        r"causal|is_decoder|bidirectional|first state",
    ),
    Copy(
        "prompt invented",
        "prompts",
        prompts(prompts={"query": "query: "}, default_prompt_name="query"),
        PROMPTED,
        "a word",
    ),
    Copy(
        "prompt invented",
        "prompts",
        prompts(prompts={"query": INSTRUCTION}, default_prompt_name="query"),
        PROMPTED,
        "a long instruction",
    ),
    Copy(
        "prompt left out of the mean",
        "prompts",
        together(
            prompts(prompts={"query": INSTRUCTION}, default_prompt_name="query"),
            set_json(POOLING, include_prompt=False),
        ),
        PROMPTED,
        "a long instruction",
    ),
    Copy("prompt that is not there", "prompts", prompts(default_prompt_name="query"), PROMPTED),
    *(Copy("cut", "length", limited(tokens), CUT, f"at {tokens} tokens") for tokens in (64, 32, 8)),
    Copy("limit beyond the positions", "length", limited(1_024), rf"{CUT}|position", "1 024 of 512"),
    Copy(
        "cut",
        "length",
        together(removed(TRANSFORMER), set_json(SETTINGS, model_max_length=16)),
        CUT,
        "at 16 tokens, by the tokenizer",
    ),
    Copy("cut on the left", "length", cut_on_the_left, r"\bleft\b|truncation_side|which end"),
    Copy("padding on the left", "batching", padded_on_the_left, PADDED),
    Copy("no mask", "batching", set_json(SETTINGS, model_input_names=["input_ids"]), PADDED),
)
