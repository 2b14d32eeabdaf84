"""Weights beside the base's: figures against a loop over all numbers, and what is said of each kind of change."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from change_copies import (
    LAYER,
    WORDS,
    FolderChange,
    Tensors,
    cast,
    compared,
    copy_of,
    in_file,
    jittered,
    permuted,
    trained_looking,
    with_more_tokens,
)
from some_rows import mostly_slow
from tiny_models import build, declare, dense, load, pooling

from embaudit.checkpoint import Checkpoint
from embaudit.declared.rule import Finding
from embaudit.questions.change.tensors import (
    SharedRows,
    block_of,
    by_block,
    compare_tensors,
    relative,
    shorter_format,
)
from embaudit.questions.change.tokens import compare_tokens
from embaudit.questions.change.weight_findings import weight_findings
from embaudit.questions.change.weights import compare_rows, compare_weights


def found(tuned: Path, base: Path) -> list[Finding]:
    one, two = load(tuned), load(base)
    return weight_findings(compare_weights(one, two, compare_tokens(one, two).shared))


def is_norm_or_bias(name: str) -> bool:
    return "LayerNorm" in name or name.endswith("bias")


def renamed(tensors: Tensors) -> Tensors:
    return {name if name.startswith("cls") else f"bert.{name}": tensor for name, tensor in tensors.items()}


def swapped(tensors: Tensors) -> None:
    before = dict(tensors)
    for name in before:
        for one, other in ((LAYER.format(0), LAYER.format(1)), (LAYER.format(1), LAYER.format(0))):
            if name.startswith(one):
                tensors[name] = before[name.replace(one, other)].clone()


def again(start: str, *, is_noise: bool) -> FolderChange:
    """Other values in all matrices that begin so: as initialised, or as another training leaves them."""

    def change(tensors: Tensors) -> None:
        generator = torch.Generator().manual_seed(11)
        for name, tensor in tensors.items():
            if name.startswith(start) and tensor.dim() == 2:
                noise = torch.randn(tensor.shape, generator=generator) * 0.02
                tensors[name] = noise if is_noise else trained_looking(tensor, generator)

    return in_file(change)


def sharded(folder: Path) -> None:
    """The same model as transformers writes it in pieces."""
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 1


ROWS = {
    "identical": ((), {"nothing_changed": "problem"}, "bit by bit"),
    "in bfloat16": ((cast(torch.bfloat16),), {"nothing_changed": "problem"}, "rounded to bfloat16"),
    "in float16": ((cast(torch.float16),), {"nothing_changed": "problem"}, "rounded to float16"),
    "other names": ((in_file(renamed),), {"nothing_changed": "problem"}, "bit by bit"),
    "in shards": ((sharded,), {"nothing_changed": "problem"}, "bit by bit"),
    "a computed table saved": (
        (in_file(lambda tensors: tensors.update({"rotary.inv_freq": torch.ones(4)})),),
        {"nothing_changed": "problem"},
        "bit by bit",
    ),
    "pooler alone": ((jittered("pooler"),), {"only_unread_changed": "problem"}, "pooler.dense.weight"),
    "head alone": ((jittered("cls"),), {"only_unread_changed": "problem"}, "cls.predictions.bias"),
    "a new head": (
        (in_file(lambda tensors: tensors.update({"classifier.weight": torch.ones(2, 32)})),),
        {"only_unread_changed": "problem"},
        "classifier.weight",
    ),
    "all": ((jittered(),), {"weights_changed": "ok"}, "All "),
    "one layer frozen": (
        (jittered("embeddings", LAYER.format(1)),),
        {"weights_changed": "ok"},
        "encoder.layer.0 stands still",
    ),
    "one layer frozen, in bfloat16": (
        (jittered("embeddings", LAYER.format(1)), cast(torch.bfloat16)),
        {"weights_changed": "ok"},
        "rounding to bfloat16",
    ),
    "norms and biases": (
        (jittered(only=is_norm_or_bias),),
        {"matrices_stand_still": "look", "weights_changed": "ok"},
        "None of the 12 matrices",
    ),
    "norms and embeddings": (
        (jittered(only=lambda name: is_norm_or_bias(name) or name == WORDS),),
        {"matrices_stand_still": "look", "weights_changed": "ok"},
        "None of the 12 matrices",
    ),
    "last layer as initialised": (
        (jittered(), again(LAYER.format(1), is_noise=True)),
        {"replaced_blocks": "problem", "weights_changed": "ok"},
        "1 block holds random numbers where the base has trained ones: encoder.layer.1",
    ),
    "last layer of another training": (
        (again(LAYER.format(1), is_noise=False),),
        {"replaced_blocks": "look", "weights_changed": "ok"},
        "1 block has nothing to do with the base's: encoder.layer.1",
    ),
    "of another training": (
        (again("", is_noise=False),),
        {"replaced_blocks": "look", "weights_changed": "ok"},
        "it was not made from this base",
    ),
    "layers swapped": (
        (jittered(), in_file(swapped)),
        {"moved_blocks": "problem", "weights_changed": "ok"},
        "encoder.layer.0 = the base's encoder.layer.1",
    ),
    "one layer under noise as long as itself": (
        (jittered(LAYER.format(1), size=0.97),),
        {"uneven_blocks": "look", "weights_changed": "ok"},
        "1 block moved by half of its length or more while the others hardly did: encoder.layer.1",
    ),
    "noise of half the spread": ((jittered(size=0.5),), {"weights_changed": "ok"}, "All "),
    "vocabulary permuted with its rows": ((permuted(with_rows=True),), {"nothing_changed": "problem"}, "bit by bit"),
    "tokens added": ((with_more_tokens("zebra", "quux"),), {"weights_changed": "ok"}, "None of the"),
}


# One that is the same in another form, and one of each kind of change.
QUICK = ("identical", "all", "layers swapped")


@pytest.mark.parametrize("name", mostly_slow(ROWS, QUICK))
def test_what_is_said_of_each_change(name: str, base: Path, tmp_path: Path) -> None:
    changes, levels, words = ROWS[name]
    findings = found(copy_of(base, tmp_path / "tuned", *changes), base)
    assert {finding.name: finding.level for finding in findings} == levels
    assert any(words in finding.sentence for finding in findings), [finding.sentence for finding in findings]


@pytest.mark.parametrize("changes", [(jittered(),), (jittered("encoder", size=0.3),), (cast(torch.bfloat16),)])
def test_figures_are_those_of_a_loop_over_all_numbers(
    changes: tuple[FolderChange, ...], base: Path, tmp_path: Path
) -> None:
    tuned = copy_of(base, tmp_path / "tuned", *changes)
    one, two = load(tuned), load(base)
    for change in compare_tensors(one, two, SharedRows()):
        ours, theirs = (side.model.state_dict()[change.name].flatten().tolist() for side in (one, two))
        if shorter_format(one.model.state_dict()[change.name]):
            theirs = torch.tensor(theirs).bfloat16().float().tolist()
        delta = norm = 0.0
        moved = 0
        for a, b in zip(ours, theirs, strict=True):
            moved += a != b
            delta += (a - b) ** 2
            norm += b**2
        assert (change.compared, change.moved) == (len(ours), moved)
        assert change.delta == pytest.approx(math.sqrt(delta), rel=1e-6, abs=1e-12)
        if norm:
            assert change.relative == pytest.approx(math.sqrt(delta / norm), rel=1e-6, abs=1e-12)
            cosine = sum(a * b for a, b in zip(ours, theirs, strict=True))
            cosine /= math.sqrt(norm * sum(a * a for a in ours))
            assert change.cosine == pytest.approx(cosine, abs=1e-6)


def test_blocks_add_up(base: Path, tmp_path: Path) -> None:
    one, two = load(copy_of(base, tmp_path / "tuned", jittered("encoder"))), load(base)
    changes = compare_tensors(one, two, SharedRows())
    blocks = by_block(changes)
    assert [block.name for block in blocks] == ["embeddings", "encoder.layer.0", "encoder.layer.1"]
    assert sum(block.compared for block in blocks) == sum(change.compared for change in changes)
    assert blocks[0].is_unchanged
    assert blocks[0].relative == 0.0
    # Of independent changes, squares add up.
    whole = relative(changes)
    norms = [sum(tensor.norm**2 for tensor in block.tensors) for block in blocks]
    squares = [(block.relative or 0.0) ** 2 * norm for block, norm in zip(blocks, norms, strict=True)]
    assert whole == pytest.approx(math.sqrt(sum(squares) / sum(norms)))


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("encoder.layer.3.attention.self.query.weight", "encoder.layer.3"),
        ("layers.11.mlp.experts.4.weight", "layers.11"),
        ("after_pooling.0.linear.weight", "after_pooling.0"),
        ("embeddings.LayerNorm.weight", "embeddings"),
        ("norm.weight", "norm"),
    ],
)
def test_a_tensor_belongs_to_a_block(name: str, block: str) -> None:
    assert block_of(name) == block


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (torch.randn(40, 40, generator=torch.Generator().manual_seed(1)), ""),
        (torch.randn(40, 40, generator=torch.Generator().manual_seed(1)).bfloat16().float(), "bfloat16"),
        (torch.randn(40, 40, generator=torch.Generator().manual_seed(1)).half().float(), "float16"),
        # Looked at whole: one number of many is of no shorter format.
        (torch.cat([torch.ones(100_000), torch.tensor([1 + 2.0**-20]), torch.ones(1)]), ""),
        (torch.arange(4), ""),
    ],
)
def test_a_shorter_format_holds_every_number(values: torch.Tensor, expected: str) -> None:
    assert shorter_format(values) == expected


def test_rows_that_moved_are_counted_by_kind(base: Path, tmp_path: Path) -> None:
    def move(tensors: Tensors) -> None:
        for row in (0, 2, 50, 51, 52):
            tensors[WORDS][row] += 0.01

    one, two = load(copy_of(base, tmp_path / "tuned", in_file(move))), load(base)
    rows = compare_rows(one, two, SharedRows())
    assert rows is not None
    assert (rows.compared, rows.moved, rows.added, rows.removed) == (one.vocabulary_size, 5, 0, 0)
    assert rows.kinds == {"Latin": 3, "special": 2}


@pytest.mark.parametrize(("is_trained", "level"), [(True, "ok"), (False, "look")])
def test_added_rows_are_trained_or_not(is_trained: bool, level: str, base: Path, tmp_path: Path) -> None:
    names = ("zebra", "quux", "gnu")
    tuned = copy_of(base, tmp_path / "tuned", with_more_tokens(*names, is_trained=is_trained))
    (finding,) = (one for one in compared(tuned, base).findings if one.name == "added_rows")
    assert finding.level == level
    assert "3 rows that the base has not (zebra quux gnu)" in finding.sentence


def test_rows_in_another_order(base: Path, tmp_path: Path) -> None:
    """The tokenizer stayed, and the rows are those of other tokens."""

    def shuffle(tensors: Tensors) -> None:
        order = torch.randperm(len(tensors[WORDS]), generator=torch.Generator().manual_seed(4))
        tensors[WORDS] = tensors[WORDS][order]

    tuned = copy_of(base, tmp_path / "tuned", in_file(shuffle), jittered(WORDS))
    findings = {finding.name: finding for finding in compared(tuned, base).findings}
    assert findings["misplaced_rows"].level == "problem"
    assert findings["misplaced_rows"].value is not None
    assert findings["misplaced_rows"].value > 0.9
    assert "replaced_blocks" not in findings


@pytest.mark.parametrize("family", mostly_slow(["distilbert", "mpnet", "t5"], 1))
def test_another_architecture_is_said_and_the_rest_compared(family: str, base: Path, tmp_path: Path) -> None:
    folder = tmp_path / family
    folder.mkdir()
    tuned = declare(build(family, folder), pooling("mean"), ("Normalize", {}))
    report = compared(tuned, base)
    levels = {finding.name: finding.level for finding in report.findings}
    assert levels["weights_changed"] == "not measured"
    assert "vectors_moved" in levels
    assert not any(name.endswith("could_not_run") for name in levels), report.findings


def test_a_module_that_was_added_or_tuned_alone(base: Path, tmp_path: Path) -> None:
    def with_dense(folder: Path) -> None:
        declare(folder, pooling("mean"), dense(), ("Normalize", {}))

    def tuned_dense(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        path = folder / "2_Dense" / "model.safetensors"
        save_file({name: tensor + 0.01 for name, tensor in load_file(path).items()}, path)

    added = copy_of(base, tmp_path / "added", with_dense)
    (finding,) = found(added, base)
    assert (finding.name, finding.level) == ("weights_changed", "ok")
    assert "after_pooling.0 is new" in finding.sentence
    (finding,) = found(copy_of(added, tmp_path / "tuned", tuned_dense), added)
    assert (finding.name, finding.level) == ("weights_changed", "ok")
    assert "embeddings, encoder.layer.0, encoder.layer.1 stand still" in finding.sentence


def test_an_optimiser_moves_what_it_is_given(base: Path, tmp_path: Path) -> None:
    """Three real steps, with the embeddings frozen."""
    tuned = copy_of(base, tmp_path / "tuned")
    checkpoint: Checkpoint = load(tuned)
    model = checkpoint.model
    try:
        for parameter in model.embeddings.parameters():
            parameter.requires_grad_(False)
        optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
        for ids in ([5, 6, 7], [30, 40, 50], [90, 91, 92]):
            batch = torch.tensor([ids])
            model(input_ids=batch, attention_mask=torch.ones_like(batch)).last_hidden_state.pow(3).sum().backward()
            optimiser.step()
            optimiser.zero_grad()
        change = compare_weights(checkpoint, load(base), SharedRows())
        assert [block.name for block in change.blocks if block.is_unchanged] == ["embeddings"]
        (finding,) = weight_findings(change)
        assert "embeddings stands still" in finding.sentence
    finally:
        from embaudit.checkpoint.model import load_model

        load_model.cache_clear()  # this model is no longer its file's
