"""Checkpoints of a few kilobytes: one random-weight model of each family, and the modules to put behind it.

Everything is written by the libraries that write real checkpoints (transformers, tokenizers, safetensors), so what
the tests load is what a user would load, only smaller.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiny import wordpiece_vocabulary

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

D = 32
POSITIONS = 64
TEXTS = [
    "The river is long.",
    "A town in the north, known for its old church and the music of the people there.",
    "gold",
    "Three ships were found by the king in 1923; one of them had no team and all of its books were burned.",
    "HEART and brain: a study of the disease",
    "",
    "water water water water water water water water water water water water water water water water water water",
]
# First ids of the vocabulary, and what stands around a text.
SPECIALS = {
    "bert": (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "[CLS] $A [SEP]"),
    "roberta": (["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<s> $A </s>"),
    "t5": (["<pad>", "</s>", "<unk>"], "$A </s>"),
    "decoder": (["<pad>", "<unk>", "</s>"], "$A"),
    "bos": (["<pad>", "<unk>", "<s>"], "<s> $A"),
    "xlnet": (["<pad>", "<unk>", "<sep>", "<cls>"], "$A <sep> <cls>:2"),
    "cased": (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "[CLS] $A [SEP]"),
}
ROLES = {
    "pad_token": ("[PAD]", "<pad>"),
    "unk_token": ("[UNK]", "<unk>"),
    "cls_token": ("[CLS]", "<cls>"),
    "sep_token": ("[SEP]", "<sep>"),
    "bos_token": ("<s>",),
    "eos_token": ("</s>",),
    "mask_token": ("[MASK]", "<mask>"),
}


def save_tokenizer(folder: Path, style: str, *, limit: int | None = None) -> int:
    """Save a WordPiece tokenizer with the special tokens of a family; returns its number of tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials, template = SPECIALS[style]
    words = [token for token in wordpiece_vocabulary() if not token.startswith("[")]
    ids = {token: index for index, token in enumerate([*specials, *words])}
    unknown = next(token for token in specials if "unk" in token.lower())
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=style != "cased")
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    around = [(token, ids[token]) for token in specials if token in template.replace(":2", "").split()]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=around)
    roles = {role: name for role, names in ROLES.items() for name in names if name in specials}
    # XLNet's segment ids: 2 at <cls>, 3 at padding. Named, because transformers 4 gives them to every model otherwise.
    inputs = ["input_ids", *(["token_type_ids"] if style == "xlnet" else []), "attention_mask"]
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **roles,
        **({} if limit is None else {"model_max_length": limit}),
        model_input_names=inputs,
        **({"pad_token_type_id": 3} if style == "xlnet" else {}),
    ).save_pretrained(folder)
    return len(ids)


def save_model(folder: Path, model: PreTrainedModel, **save: Any) -> None:
    """Save a model with weights wide enough that texts get clearly different vectors."""
    import torch

    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0.0, 0.3, generator=generator)
    model.save_pretrained(folder, **save)


def build(family: str, folder: Path, *, limit: int | None = None) -> Path:
    """A plain transformers folder of a family: weights, config and tokenizer."""
    import transformers as t

    style = {"roberta": "roberta", "mpnet": "roberta", "t5": "t5", "qwen2": "decoder", "llama": "bos"}.get(
        family, "bert"
    )
    tokens = save_tokenizer(folder, style, limit=limit)
    sizes = {"vocab_size": tokens, "hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 64, "max_position_embeddings": POSITIONS}
    decoder = {**sizes, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 2}
    if family == "bert":
        model = t.BertModel(t.BertConfig(**sizes), add_pooling_layer=False)
    elif family == "roberta":
        model = t.RobertaModel(t.RobertaConfig(**sizes, pad_token_id=1), add_pooling_layer=False)
    elif family == "mpnet":
        model = t.MPNetModel(t.MPNetConfig(**sizes, pad_token_id=1))
    elif family == "distilbert":
        config = t.DistilBertConfig(
            vocab_size=tokens, dim=D, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=POSITIONS
        )
        model = t.DistilBertModel(config)
    elif family == "albert":
        model = t.AlbertModel(t.AlbertConfig(**sizes, embedding_size=16))
    elif family == "t5":
        config = t.T5Config(vocab_size=tokens, d_model=D, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
        model = t.T5EncoderModel(config)
    elif family == "qwen2":
        model = t.Qwen2Model(t.Qwen2Config(**decoder))
    elif family == "llama":
        model = t.LlamaModel(t.LlamaConfig(**decoder))
    else:
        raise ValueError(family)
    save_model(folder, model)
    return folder


FAMILIES = ("bert", "roberta", "distilbert", "mpnet", "albert", "t5", "qwen2", "llama")


def declare(
    folder: Path,
    *modules: tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], dict[str, torch.Tensor]],
    transformer: str = "",
    settings: dict[str, Any] | None = None,
    package: str = "sentence_transformers.models",
) -> Path:
    """Write modules.json and a numbered folder for each module: (kind, config[, weights])."""
    from safetensors.torch import save_file

    entries = [{"idx": 0, "name": "0", "path": transformer, "type": f"{package}.Transformer"}]
    for number, (kind, config, *weights) in enumerate(modules, start=1):
        path = f"{number}_{kind}"
        (folder / path).mkdir(exist_ok=True)
        if config:
            write_json(folder / path / "config.json", config)
        if weights:
            save_file(weights[0], folder / path / "model.safetensors")
        entries.append({"idx": number, "name": str(number), "path": path, "type": f"{package}.{kind}"})
    write_json(folder / "modules.json", entries)
    write_json(folder / transformer / "sentence_bert_config.json", {"max_seq_length": 48, **(settings or {})})
    return folder


def pooling(*modes: str) -> tuple[str, dict[str, Any]]:
    """A Pooling module as sentence-transformers writes it now."""
    return "Pooling", {"embedding_dimension": D, "pooling_mode": modes[0] if len(modes) == 1 else list(modes)}


def dense(
    inputs: int = D, outputs: int = 16, *, bias: bool = True, activation: str = "torch.nn.modules.activation.Tanh"
) -> tuple[str, dict[str, Any], dict[str, torch.Tensor]]:
    """A Dense module with random weights."""
    import torch

    generator = torch.Generator().manual_seed(11)
    config = {"in_features": inputs, "out_features": outputs, "bias": bias, "activation_function": activation}
    weights = {"linear.weight": torch.randn(outputs, inputs, generator=generator) / inputs**0.5}
    if bias:
        weights["linear.bias"] = torch.randn(outputs, generator=generator)
    return "Dense", config, weights


def layer_norm(size: int = D) -> tuple[str, dict[str, Any], dict[str, torch.Tensor]]:
    """A LayerNorm module with weights that are not the neutral ones."""
    import torch

    return (
        "LayerNorm",
        {"dimension": size},
        {
            "norm.weight": torch.linspace(0.5, 2.0, size),
            "norm.bias": torch.linspace(-1.0, 1.0, size),
        },
    )


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def change_json(path: Path, change: Callable[[Any], Any] | None = None, **values: object) -> None:
    """Set keys of a JSON object, or begin one; or ``change`` edits what there is, or returns another content."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if change is not None:
        content = change(content) or content
    path.unlink(missing_ok=True)  # what it may be a link to stays as it is
    write_json(path, {**content, **values} if values else content)


def json_file(name: str, change: Callable[[Any], Any] | None = None, **values: object) -> Callable[[Path], None]:
    """The same for a file of a folder."""
    return lambda folder: change_json(folder / name, change, **values)


def with_dense(folder: Path, config: dict[str, object]) -> None:
    """Declare a Dense behind Normalize, without weights."""
    path = folder / "modules.json"
    entry = {"idx": 3, "name": "3", "path": "3_Dense", "type": "sentence_transformers.models.Dense"}
    write_json(path, [*json.loads(path.read_text()), entry])
    (folder / "3_Dense").mkdir()
    write_json(folder / "3_Dense" / "config.json", config)


def change_tensors(path: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the tensors of a safetensors file: in place, or by returning others."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    found = change(tensors)
    tensors = found if isinstance(found, dict) else tensors
    path.unlink()
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})


def change_tensor(path: Path, name: str, value: float, index: tuple[int, ...] = (1, 1)) -> None:
    """Set one number in a safetensors file."""
    change_tensors(path, lambda tensors: tensors[name].__setitem__(index, value))


def to_pickle(folder: Path) -> Path:
    """Turn the weights into a pickle, as checkpoints before safetensors have them."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


def to_shards(folder: Path, size: str = "30KB") -> list[Path]:
    """Split the weights into several files with an index, as large checkpoints have them."""
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size=size)
    return sorted(folder.glob("model-*.safetensors"))


def load(folder: Path, **options: Any) -> Checkpoint:
    """Load a folder on the CPU, whatever else the machine has."""
    return load_checkpoint(str(folder), LoadOptions(device="cpu", **options))
