"""The blocks (layers) of a model: as initialised, of random noise, of zeros, or equal to each other."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.streamed import was_read
from embaudit.declared.rule import Finding, Rule, percent
from embaudit.measures.integrity.lattice import TOLERANCE, Look, can_tell, look_at
from embaudit.words.sentences import first_of

if TYPE_CHECKING:
    import torch

NAMED_AT_MOST = 3
# Of a block's matrices: from this share on, they are not a layer that somebody left fresh on purpose.
MOST = 0.5
UNTRAINED_LAYERS = Rule(
    "untrained_layers",
    look_if="single matrices",
    problem_if=f"{percent(MOST)} of a block's matrices, the same matrix in {percent(MOST)} of the layers, or the whole "
    "table, are noise of any spread",
    reason="initialisation leaves independent entries: normal, truncated or uniform, with a spectrum inside the "
    "Marchenko–Pastur edge",
)
UNTRAINED_EMBEDDINGS = UNTRAINED_LAYERS.named("untrained_embeddings")
UNTRAINED_MATRICES = UNTRAINED_LAYERS.named("untrained_matrices")
EQUAL_LAYERS = Rule(
    "equal_layers",
    look_if="one constant matrix",
    problem_if="equal layers, or equal matrices of two layers, at different addresses; a constant block, or several "
    "constant matrices",
    reason="ALBERT's shared layers are one address",
)
CONSTANT_MATRICES = EQUAL_LAYERS.named("constant_matrices")


@dataclass(frozen=True)
class Block:
    """One numbered part of a model.

    Attributes:
        name: ``encoder.layer.3``.
        stack: what is numbered, ``encoder.layer``.
        tensors: by the rest of their names.
        looks: of the matrices that are large enough to tell noise.
    """

    name: str
    stack: str
    tensors: Mapping[str, torch.Tensor]
    looks: Mapping[str, Look]

    @property
    def noisy(self) -> list[str]:
        return [name for name, look in self.looks.items() if look.is_noise]

    @property
    def zero(self) -> list[str]:
        return [name for name, look in self.looks.items() if look.std == 0]

    @property
    def has_untouched_rest(self) -> bool:
        """Gains of norms are all 1, biases all 0."""
        return all(
            bool((tensor == (0 if name.endswith("bias") else 1)).all())
            for name, tensor in self.tensors.items()
            if tensor.dim() == 1
        )

    def has_std(self, sigma: float) -> bool:
        """Whether all matrices have this standard deviation, within 5σ/√(2N)."""
        return all(
            abs(look.std - sigma) <= TOLERANCE * sigma / sqrt(2 * self.tensors[name].numel())
            for name, look in self.looks.items()
        )


def read_blocks(model: torch.nn.Module) -> list[Block]:
    """The blocks of a model in the order of its parameters; shared layers (ALBERT) are one block."""
    grouped: dict[str, dict[str, torch.Tensor]] = defaultdict(dict)
    for name, tensor in model.named_parameters():
        found = re.match(r"(.*?\.\d+)\.(.+)$", name)
        if found and not name.startswith(UNUSED_WEIGHTS):
            grouped[found[1]][found[2]] = tensor.detach()
    return [
        Block(
            name,
            name.rpartition(".")[0],
            tensors,
            {part: look_at(tensor) for part, tensor in tensors.items() if can_tell(tensor)},
        )
        for name, tensors in grouped.items()
    ]


def block_findings(checkpoint: Checkpoint, blocks: Sequence[Block]) -> list[Finding]:
    """Findings about layers, or one ``ok``; none if no layer has a matrix large enough to tell."""
    told = [block for block in blocks if block.looks]
    if not told:
        return [
            UNTRAINED_LAYERS.finding(
                "not measured",
                f"Whether layers were trained: none of the {len(blocks)} has a matrix of 1 024 numbers or more.",
            )
        ]
    findings = [
        *_noise_findings(told, getattr(checkpoint.model.config, "initializer_range", None)),
        *_zero_findings(told),
        *_equal_findings(blocks),
    ]
    if findings:
        return findings
    matrices = sum(len(block.looks) for block in told)
    return [
        UNTRAINED_LAYERS.finding(
            "ok",
            f"None of the {matrices} matrices in {len(told)} layers looks like random numbers, and no two layers are "
            "equal.",
            value=0.0,
        )
    ]


def _noise_findings(blocks: Sequence[Block], sigma: float | None) -> list[Finding]:
    random = [block for block in blocks if len(block.noisy) >= MOST * len(block.looks)]
    partly = [block for block in blocks if block.noisy and block not in random]
    if random:
        looks = [look for block in random for look in block.looks.values() if look.is_noise]
        stds = sorted({f"{look.std:.3g}" for look in looks}, key=float)
        fresh = [block for block in random if block.has_untouched_rest and len(block.noisy) == len(block.looks)]
        as_declared = sigma is not None and all(block.has_std(sigma) for block in random)
        whole = sum(len(block.looks) for block in random)
        spread = stds[0] if len(stds) == 1 else f"{stds[0]} to {stds[-1]}"
        layers = first_of([block.name for block in random])
        return [
            UNTRAINED_LAYERS.finding(
                "problem",
                f"{len(random)} of {len(blocks)} layers {'holds' if len(random) == 1 else 'hold'} random numbers: "
                f"{layers}. "
                f"{len(looks)} of {whole} matrices there have the tails, the rows and the spectrum of independent "
                f"numbers ({looks[0].distribution}, standard deviation {spread})"
                + (f", the initializer_range of config.json ({sigma:g})" if as_declared else "")
                + (", and every gain is 1 and every bias 0." if len(fresh) == len(random) else "."),
                meaning="These layers were never trained, or training did not reach the file: names with a prefix, an "
                "adapter that was not merged, a model saved before its weights were loaded.",
                advice="Compare the names of tensors where the model was saved with those in the file, and save again.",
                value=len(random) / len(blocks),
            )
        ]
    if not partly:
        return []
    names = [f"{block.name}.{part}" for block in partly for part in block.noisy]
    # One fresh matrix may be on purpose. The same one in most layers is a name that was not found.
    is_systematic = len(partly) >= max(2, MOST * len(blocks))
    return [
        UNTRAINED_MATRICES.finding(
            "problem" if is_systematic else "look",
            f"{_matrices(names)} random numbers beside trained ones: {first_of(names)}.",
            meaning="They have the tails, the rows and the spectrum of independent numbers: not trained, or not the "
            "trained values.",
            advice="Compare the names of these tensors where the model was saved with those in the file.",
            value=float(len(names)),
        )
    ]


def _zero_findings(blocks: Sequence[Block]) -> list[Finding]:
    names = [f"{block.name}.{part}" for block in blocks for part in block.zero]
    if not names:
        return []
    is_whole = any(len(block.zero) == len(block.looks) for block in blocks)
    return [
        CONSTANT_MATRICES.finding(
            "problem" if is_whole or len(names) > 1 else "look",
            f"{_matrices(names)} one value throughout (zero, most likely): {first_of(names)}.",
            meaning="Training leaves no such matrix: the values were lost, or never written.",
            advice="Download the weights again, or save them again where they were trained.",
            value=float(len(names)),
        )
    ]


def _equal_findings(blocks: Sequence[Block]) -> list[Finding]:
    """Layers with the same matrices at different addresses: one was copied over the other."""
    by_hash: dict[tuple[str, str], list[Block]] = defaultdict(list)
    for block in blocks:
        matrices = {name: tensor for name, tensor in block.tensors.items() if tensor.dim() > 1}
        if matrices and not all(look.std == 0 for look in block.looks.values()):
            by_hash[block.stack, _digest(matrices)].append(block)
    equal = [group for group in by_hash.values() if len({_address(block) for block in group}) > 1]
    if not equal:
        return _equal_matrices(blocks)
    count = sum(len(group) for group in equal)
    return [
        EQUAL_LAYERS.finding(
            "problem",
            f"{count} of {len(blocks)} layers hold the same matrices as another one: "
            + "; ".join(" = ".join(block.name for block in group[:NAMED_AT_MOST]) for group in equal[:NAMED_AT_MOST])
            + ".",
            meaning="Training never makes two layers equal: one was written over the other, or layers were repeated "
            "to make a deeper model.",
            advice="Compare with the checkpoint that this one was made from.",
            value=float(count),
        )
    ]


def _equal_matrices(blocks: Sequence[Block]) -> list[Finding]:
    """Single matrices that two layers have in common: a part of one was copied over another's."""
    by_hash: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for block in blocks:
        for name, look in block.looks.items():
            if look.std > 0:
                key = block.stack, _digest({"": block.tensors[name]})
                by_hash[key].append((f"{block.name}.{name}", block.tensors[name].data_ptr()))
    equal = [group for group in by_hash.values() if len({address for _, address in group}) > 1]
    if not equal:
        return []
    return [
        EQUAL_LAYERS.finding(
            "problem",
            f"{sum(map(len, equal))} matrices of layers are equal to another one: "
            + "; ".join(" = ".join(name for name, _ in group[:NAMED_AT_MOST]) for group in equal[:NAMED_AT_MOST])
            + ".",
            meaning="Training never makes two matrices equal: one was written over the other.",
            advice="Compare with the checkpoint that this one was made from.",
            value=float(sum(map(len, equal))),
        )
    ]


def _digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Of values at evenly chosen places: copies agree everywhere, trained layers nowhere."""
    hashed = hashlib.sha256()
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1)
        part = flat[:: max(1, flat.numel() // 4096)].float().cpu().contiguous()
        was_read()
        hashed.update(name.encode() + part.numpy().tobytes())
    return hashed.hexdigest()


def _address(block: Block) -> int:
    return next(tensor.data_ptr() for tensor in block.tensors.values() if tensor.dim() > 1)


def _matrices(names: Sequence[str]) -> str:
    return "1 matrix holds" if len(names) == 1 else f"{len(names)} matrices hold"
