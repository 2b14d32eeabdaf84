"""Variants that serve the same vectors, or almost: whoever calls one of them a problem has raised a false alarm."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from benchmarks.defects.copies import (
    CONFIG,
    WEIGHTS,
    Change,
    Copy,
    Tensors,
    read_json,
    removed,
    replaced,
    seeded,
    set_json,
    tensors,
    together,
    write,
)
from benchmarks.defects.packaging import prefixed, without
from benchmarks.defects.pipeline import MODULES, POOLING, SERVED, TRANSFORMER, limited, pooled, prompts
from benchmarks.defects.tokenizer import FILE, SETTINGS, in_file, vocabulary, write_vocabulary
from benchmarks.defects.weights import INITIAL, LAYERS, ROWS, noisy, scaled

HEADS, HEAD = 12, 32
TOKENIZER = (FILE, SETTINGS, "special_tokens_map.json", "vocab.txt")
# What another limit moves by design.
READ_FURTHER = ("long", "documents")
FLAGS = ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")


def saved_as(dtype: torch.dtype) -> Change:
    def change(found: Tensors) -> Tensors:
        return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in found.items()}

    return together(tensors(change), set_json(CONFIG, dtype=str(dtype).removeprefix("torch.")))


def in_shards(folder: Path) -> None:
    found = load_file(folder / WEIGHTS)
    parts = [dict(list(found.items())[start::3]) for start in range(3)]
    names = [f"model-{number:05}-of-00003.safetensors" for number in (1, 2, 3)]
    for name, part in zip(names, parts, strict=True):
        save_file(part, folder / name, metadata={"format": "pt"})
    places = {tensor: name for name, part in zip(names, parts, strict=True) for tensor in part}
    total = sum(tensor.nbytes for tensor in found.values())
    write(folder / f"{WEIGHTS}.index.json", {"metadata": {"total_size": total}, "weight_map": places})
    (folder / WEIGHTS).unlink()


def pickle_beside(folder: Path) -> None:
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")


def nested(folder: Path) -> None:
    """The layout of sentence-transformers 0.x: the transformer in a folder of its own."""
    inner = folder / "0_Transformer"
    inner.mkdir()
    for name in (WEIGHTS, CONFIG, TRANSFORMER, *TOKENIZER):
        (folder / name).rename(inner / name)
    content = read_json(folder / MODULES)
    content[0]["path"] = inner.name
    write(folder / MODULES, content)


def newer_paths(folder: Path) -> None:
    """The classes under the names that sentence-transformers 6 writes."""
    content = read_json(folder / MODULES)
    places = ("base.modules.transformer", "sentence_transformer.modules.pooling", "base.modules.normalize")
    for entry, place in zip(content, places, strict=True):
        entry["type"] = f"sentence_transformers.{place}.{entry['type'].rpartition('.')[2]}"
    write(folder / MODULES, content)


def saved_again(folder: Path) -> None:
    """What the installed sentence-transformers writes after loading the folder."""
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = SentenceTransformer(str(folder), device="cpu")
    for path in [path for path in folder.rglob("*") if path.is_symlink()]:
        path.unlink()
    model.save_pretrained(str(folder))


def pruned(folder: Path) -> None:
    """2 000 entries fewer, rows and ids together: all that are called unused, and rare whole words."""
    tokens = vocabulary(folder)
    words = [place for place in range(20_000, len(tokens)) if tokens[place].isascii() and tokens[place].isalpha()]
    unused = [place for place, token in enumerate(tokens) if token.startswith("[unused")]
    dropped = {*unused, *words[-(2_000 - len(unused)) :]}
    kept = [place for place in range(len(tokens)) if place not in dropped]
    write_vocabulary(folder, [tokens[place] for place in kept])
    tensors(lambda found: {**found, ROWS: found[ROWS][kept]})(folder)
    set_json(CONFIG, vocab_size=len(kept))(folder)


def permuted_neurons(found: Tensors) -> None:
    generator = seeded()
    for layer in range(LAYERS):
        front = f"encoder.layer.{layer}."
        order = torch.randperm(len(found[f"{front}intermediate.dense.bias"]), generator=generator)
        for name in ("weight", "bias"):
            found[f"{front}intermediate.dense.{name}"] = found[f"{front}intermediate.dense.{name}"][order]
        found[f"{front}output.dense.weight"] = found[f"{front}output.dense.weight"][:, order]


def permuted_heads(found: Tensors) -> None:
    generator = seeded()
    for layer in range(LAYERS):
        front = f"encoder.layer.{layer}.attention."
        heads = torch.randperm(HEADS, generator=generator)
        order = (heads[:, None] * HEAD + torch.arange(HEAD)).flatten()
        for part in ("query", "key", "value"):
            for name in ("weight", "bias"):
                found[f"{front}self.{part}.{name}"] = found[f"{front}self.{part}.{name}"][order]
        found[f"{front}output.dense.weight"] = found[f"{front}output.dense.weight"][:, order]


def cancelling(factor: float) -> Change:
    """Values larger and what reads them smaller, in every layer."""
    factors: dict[str, float] = {}
    for layer in range(LAYERS):
        front = f"encoder.layer.{layer}.attention."
        factors |= {f"{front}self.value.weight": factor, f"{front}self.value.bias": factor}
        factors |= {f"{front}output.dense.weight": 1 / factor}
    return tensors(scaled(factors))


def with_a_head(found: Tensors) -> Tensors:
    """Tensors that nothing reads: the head of the masked language model that it was made from."""
    width = found[ROWS].shape[1]
    head = {
        "cls.predictions.bias": torch.zeros(len(found[ROWS])),
        "cls.predictions.transform.dense.weight": torch.randn(width, width, generator=seeded()) * INITIAL,
        "cls.predictions.transform.dense.bias": torch.zeros(width),
    }
    return found | head


def fresh_pooler(found: Tensors) -> None:
    """As transformers adds it to a model that was trained without one; the mean reads none of it."""
    found["pooler.dense.weight"].normal_(0.0, INITIAL, generator=seeded())
    found["pooler.dense.bias"].zero_()


def old_flags(folder: Path) -> None:
    flags = {f"pooling_mode_{flag}": flag == "mean_tokens" for flag in FLAGS}
    write(folder / POOLING, {"word_embedding_dimension": 384, **flags, "include_prompt": True})


def _copy(name: str, change: Change, strength: str = "", moves: tuple[str, ...] = ()) -> Copy:
    return Copy(name, "harmless", change, strength=strength, moves=moves)


HARMLESS_COPIES = (
    _copy("unchanged", lambda folder: None, "in a folder «déjà vu (2)»"),
    _copy("saved in half precision", saved_as(torch.bfloat16), "bfloat16"),
    _copy("saved in half precision", saved_as(torch.float16), "float16"),
    _copy("in three shards", in_shards),
    _copy("pytorch_model.bin beside", pickle_beside),
    _copy("transformer in a folder of its own", nested),
    _copy("flags of every pooling", old_flags),
    _copy("pooling in the newer form", pooled("mean")),
    _copy("mean over the root of the length", pooled("mean_sqrt_len_tokens"), "Normalize follows"),
    _copy("module paths of version 6", newer_paths),
    _copy("saved again by sentence-transformers", saved_again),
    _copy(
        "files beside",
        together(
            replaced("README.md", "# A model\n\nFine-tuned on our tickets.\n"),
            replaced("training_args.bin", bytes(5_000)),
            replaced("optimizer.pt", bytes(5_000)),
            replaced("eval/similarity_evaluation_sts-dev_results.csv", "epoch,steps,cosine_spearman\n0,-1,0.88\n"),
            replaced(".gitattributes", "*.safetensors filter=lfs diff=lfs merge=lfs -text\n"),
        ),
        "README, training arguments, evaluation",
    ),
    _copy(
        "files beside",
        together(replaced("onnx/model.onnx", bytes(5_000)), replaced("openvino/openvino_model.xml", "<net/>")),
        "ONNX and OpenVINO",
    ),
    _copy("noise", tensors(noisy(0.01)), "1 % of the spread"),
    _copy("vocabulary pruned", pruned),
    _copy("another limit", limited(128), "128 tokens", READ_FURTHER),
    _copy("another limit", limited(512), "512 tokens", READ_FURTHER),
    _copy("limit from the tokenizer", removed(TRANSFORMER), moves=READ_FURTHER),
    _copy("without the pooler", without("pooler.")),
    _copy("pooler as initialised", tensors(fresh_pooler)),
    _copy("without the buffer of positions", without("embeddings.position_ids")),
    _copy("names with the model's own prefix", prefixed("bert.")),
    _copy("head of the language model beside", tensors(with_a_head)),
    _copy("vocab.txt alone", removed(FILE)),
    _copy("tokenizer.json alone", removed("vocab.txt")),
    _copy("without the list of special tokens", removed("special_tokens_map.json")),
    _copy("tokenizer.json without truncation and padding", in_file(truncation=None, padding=None)),
    _copy("prompts declared empty", prompts(prompts={"query": "", "document": ""}, default_prompt_name=None)),
    _copy("without settings of sentence-transformers", removed(SERVED)),
    _copy("values × 2, what reads them ÷ 2", cancelling(2.0)),
    _copy("heads in another order", tensors(permuted_heads)),
    _copy("neurons in another order", tensors(permuted_neurons)),
)
