"""Folders as training, exports and libraries write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from benchmarks.defects.copies import Tensors, link, read_json, seeded, set_json, tensors, write
from benchmarks.serving.faults import GOOD, faithful, unit
from benchmarks.situations.asking import CPU, parity
from benchmarks.situations.networks import WIDTH, configured, load, network
from benchmarks.situations.situation import Situation
from embaudit.checkpoint.reference import resolve
from embaudit.embedders.opened import open_function
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.check.check import check, check_files
from embaudit.questions.parity.parity import compare_with
from embaudit.questions.report import Report

Ask = Callable[[Path, bool], Report]


def configured_otherwise(family: str, right: dict[str, Any], wrong: dict[str, Any], *, is_served: bool = False) -> Ask:
    """A copy whose config.json lost something, beside what it was made from; or an identical copy.

    Args:
        is_served: whether a server computes so, of which nobody sees a config.json.
    """

    def made(folder: Path, is_broken: bool) -> Report:
        source = network(folder / "source", family, **right)
        set_json("config.json", **right)(source)
        copy = configured(folder / "copy", source, **(wrong if is_broken else {}))
        known, other = load(source), load(copy)
        return parity(known, faithful(other) if is_served else str(copy))

    return made


def off_by_one(folder: Path, is_broken: bool) -> Report:
    """A kernel whose window ends before its last token on one side."""
    checkpoint = load(network(folder / "local", "modernbert", local_attention=16))

    def vector(ids: list[int]) -> np.ndarray:
        apart = torch.arange(len(ids))[:, None] - torch.arange(len(ids))[None]
        # The row attends to the column.
        seen = (apart <= 8) & (apart >= (-7 if is_broken else -8))
        local = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)[None, None]
        masks = {"full_attention": torch.zeros_like(local), "sliding_attention": local}
        with torch.inference_mode():
            states = checkpoint.model(input_ids=torch.tensor([ids]), attention_mask=masks).last_hidden_state
        return unit(states[0].mean(0).numpy().astype(np.float64))

    return parity(checkpoint, lambda texts: np.array([vector(ids) for ids in checkpoint.tokenize(texts)]))


def of_its_base(name: str, value: object) -> Ask:
    """The packaged checkpoint beside itself, with a line of config.json lost; or with weights that a tuning moved."""

    def made(folder: Path, is_broken: bool) -> Report:
        copy = configured(folder / "copy", resolve(GOOD).folder, **({name: value} if is_broken else {}))
        if not is_broken:
            tensors(tuned)(copy)
        return check(str(copy), CPU, sample_material().part(0.05), base=GOOD)

    return made


def tuned(found: Tensors) -> None:
    """Every matrix moved by a hundredth of its spread."""
    generator = seeded()
    for tensor in found.values():
        if tensor.dim() == 2 and tensor.is_floating_point():
            tensor += 0.01 * tensor.std() * torch.randn(tensor.shape, generator=generator)


def by_files(change: Callable[[Path], object], healthy: Callable[[Path], object] = lambda folder: None) -> Ask:
    """A copy of the packaged checkpoint whose files are looked at."""

    def made(folder: Path, is_broken: bool) -> Report:
        link(resolve(GOOD).folder, folder / "copy")
        (change if is_broken else healthy)(folder / "copy")
        return check_files(str(folder / "copy"), CPU)

    return made


def with_tensors(**more: torch.Tensor) -> Callable[[Path], None]:
    """Further tensors in the file of weights, of a folder without modules."""

    def change(folder: Path) -> None:
        found = {name: tensor.clone() for name, tensor in load_file(folder / "model.safetensors").items()}
        (folder / "model.safetensors").unlink()
        save_file(
            {**found, **{name.replace("__", "."): one for name, one in more.items()}}, folder / "model.safetensors"
        )
        (folder / "modules.json").unlink()

    return change


def pylate(folder: Path) -> None:
    settings: dict[str, Any] = {"__version__": {"pylate": "1.3.0"}, "query_prefix": "[Q] ", "document_prefix": "[D] "}
    settings |= {"query_length": 32, "document_length": 300, "attend_to_expansion_tokens": False}
    write(folder / "config_sentence_transformers.json", settings | {"skiplist_words": ["."]})


def stanford(folder: Path) -> None:
    set_json("config.json", architectures=["HF_ColBERT"])(folder)
    (folder / "modules.json").unlink()


def metadata(folder: Path) -> None:
    write(folder / "artifact.metadata", {"dim": 128, "query_token_id": "[unused0]"})
    (folder / "modules.json").unlink()


def plain(folder: Path) -> None:
    (folder / "modules.json").unlink()


def dense(folder: Path) -> None:
    """A Dense module behind pooling, whose weights have the same name as ColBERT's layer."""
    modules = read_json(folder / "modules.json")
    modules.insert(2, {"idx": 2, "name": "dense", "path": "2_Dense", "type": "sentence_transformers.models.Dense"})
    write(folder / "modules.json", [{**one, "idx": place, "name": str(place)} for place, one in enumerate(modules)])
    settings: dict[str, Any] = {"in_features": 384, "out_features": 384, "bias": False}
    write(folder / "2_Dense" / "config.json", settings | {"activation_function": "torch.nn.modules.linear.Identity"})
    turn = torch.linalg.qr(torch.randn(384, 384, generator=torch.Generator().manual_seed(0)))[0]
    save_file({"linear.weight": turn.contiguous()}, folder / "2_Dense" / "model.safetensors")


def dropped_positions(folder: Path) -> None:
    """Relative positions, which the installed transformers does not compute for BERT."""
    set_json("config.json", position_embedding_type="relative_key")(folder)


def tokenizer_class(folder: Path) -> None:
    set_json("tokenizer_config.json", tokenizer_class="RobertaTokenizer")(folder)


def router(folder: Path, is_broken: bool) -> Report:
    """One route for queries, which is static, and one for documents; the client takes documents' for both, or each."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer

    documents = [Transformer(str(network(folder / "bert"))), Pooling(WIDTH)]
    queries = StaticEmbedding(documents[0].tokenizer, embedding_dim=WIDTH)
    made = SentenceTransformer(modules=[Router.for_query_document([queries], documents)], device="cpu")
    made.save(str(folder / "router"))
    # What is in memory shares its tokenizer between routes, and what is saved does not.
    model = SentenceTransformer(str(folder / "router"), device="cpu")

    class Client:
        def encode_query(self, texts: list[str]) -> Any:
            return (model.encode_document if is_broken else model.encode_query)(texts)

        def encode_document(self, texts: list[str]) -> Any:
            return model.encode_document(texts)

    with open_function(str(folder / "router"), CPU) as known, open_function(Client(), CPU) as other:
        return compare_with(known, other, Material())


LATE = r"late.interaction"
FOLDERS = (
    Situation(
        "is_causal lost",
        "parity",
        configured_otherwise("qwen2", {"is_causal": False}, {"is_causal": None}),
        r"lets tokens see only those before them|is_causal",
    ),
    Situation(
        "a rotary base lost",
        "parity",
        configured_otherwise(
            "qwen2",
            {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}},
            {"rope_parameters": None},
            is_served=True,
        ),
        r"computes rotary positions with the base 10,000, where config.json declares 50",
    ),
    Situation("another activation", "check --base", of_its_base("hidden_act", "relu"), r"hidden_act"),
    Situation("attention in one direction", "check --base", of_its_base("is_decoder", True), r"is_decoder"),
    Situation(
        "ModernBERT's window off",
        "parity",
        configured_otherwise("modernbert", {"local_attention": 16}, {"local_attention": 512}, is_served=True),
        r"beyond the window of 16 tokens",
    ),
    Situation(
        "ModernBERT's window off by one on each side",
        "parity",
        configured_otherwise("modernbert", {"local_attention": 16}, {"local_attention": 18}, is_served=True),
        r"a window of 18 tokens, where config.json declares 16",
    ),
    Situation(
        "ModernBERT's window off by one on one side",
        "parity",
        off_by_one,
        r"sees? 8 before them and 7 after them",
    ),
    Situation(
        "position_embedding_type that was dropped", "check --files", by_files(dropped_positions), r"does not compute"
    ),
    Situation("a wrong tokenizer_class", "check --files", by_files(tokenizer_class), r"give other ids"),
    Situation("a Router: documents' route for queries", "parity", router, r"as queries"),
    Situation("a folder of PyLate", "check --files", by_files(pylate), LATE),
    Situation("Stanford's ColBERT: HF_ColBERT", "check --files", by_files(stanford, plain), LATE),
    Situation("Stanford's ColBERT: artifact.metadata", "check --files", by_files(metadata, plain), LATE),
    Situation(
        "ColBERT's linear.weight alone",
        "check --files",
        by_files(with_tensors(linear__weight=torch.randn(128, 384)), with_tensors(pooler__x=torch.randn(4, 4))),
        LATE,
    ),
    Situation(
        "ColBERT's linear.weight beside bert.…",
        "check --files",
        by_files(with_tensors(linear__weight=torch.randn(96, 384)), dense),
        LATE,
    ),
)
