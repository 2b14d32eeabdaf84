"""A checkpoint written down at another temperature: the same folder, with divided rows in its weight files.

It is built beside its place, loaded and compared with the source at that temperature, and only then renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from embaudit.anatomy import anatomy_of
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, ResolvedCheckpoint, load_checkpoint, resolve
from embaudit.checkpoint.files import PICKLES, is_pickle, weight_files
from embaudit.checkpoint.load import describe
from embaudit.checkpoint.model import UNUSED_WEIGHTS
from embaudit.checkpoint.modules import Recipe
from embaudit.checkpoint.reference import HUB_FILES, HUB_REMOTE_CODE
from embaudit.errors import CheckpointError, MeasureError, StorageError, UsageError, one_line
from embaudit.files import replace_atomically
from embaudit.tempscale.card import Note, add_note
from embaudit.tempscale.context import temperature
from embaudit.tempscale.places import find_places
from embaudit.tempscale.plan import plan_scalings
from embaudit.tempscale.support import Support, support_of
from embaudit.tempscale.temperatures import Temperatures
from embaudit.tempscale.tensors import stored_tensors, unpickle

# What a checkpoint needs, its card and its licence; no ONNX, TensorFlow or OpenVINO copies, whose weights are unscaled.
COPIED = (*HUB_FILES, *HUB_REMOTE_CODE, "*.md", "LICENSE*", "NOTICE*")
OTHER_RUNTIMES = ("onnx", "openvino", "coreml", "__pycache__")
SAMPLE = (
    "The river is long.",
    "A town in the north built its first school beside the old bridge, and the bridge gave the town its name.",
    "Water, stone and iron: "
    + "what the workers carried up the hill in summer they carried down again in winter. " * 4,
)
# How far vectors of the written checkpoint may be from the source's at that temperature.
VECTOR_TOLERANCE = {"float32": 1e-5, "bfloat16": 5e-2, "float16": 1e-2}


@dataclass(frozen=True)
class ApplyResult:
    """What was written.

    Attributes:
        divided: names of the divided tensors, in the files.
        others: how many tensors stayed as they were.
        difference: largest difference between vectors of ``texts`` sample texts and the source's under τ.
    """

    folder: Path
    support: Support
    layers: int
    divided: tuple[str, ...]
    others: int
    texts: int
    difference: float
    dtype: str


def apply_temperature(
    reference: str,
    tau: Temperatures,
    folder: Path,
    *,
    divide_position_bias: bool = False,
    device: str = "auto",
    allow_pickle: bool = False,
) -> ApplyResult:
    """Write a checkpoint whose attention is softmax(QKᵀ/(τ√d)), ready for sentence-transformers.

    Args:
        reference: the source, as for ``load_checkpoint``.
        tau: the temperatures.
        folder: where to; it must be empty or missing.
        divide_position_bias: as in ``temperature``.
        device: where the check runs.
        allow_pickle: read pickled weights; they are written as safetensors.

    Raises:
        UsageError: if the folder is taken, or the temperatures do not fit.
        CheckpointError: if the source cannot be read, or its weights are nowhere in its files.
        NotMeasurable: if the family takes no temperature.
        MeasureError: if the written checkpoint does not do what the source does under τ.
        StorageError: if it cannot be written.
    """
    folder = folder.expanduser().absolute()
    resolved = resolve(reference, allow_pickle=allow_pickle)
    recipe, _ = describe(resolved, LoadOptions(allow_pickle=allow_pickle))
    _refuse(folder, resolved, recipe)
    options = LoadOptions(device, _dtype(resolved.folder / recipe.transformer_path), allow_pickle=allow_pickle)
    source = load_checkpoint(resolved, options)
    anatomy = anatomy_of(source.model)
    scalings = plan_scalings(anatomy, tau, divide_position_bias=divide_position_bias)
    if not scalings:
        raise UsageError(
            "With a temperature of 1 nothing would change.", next_step="Copy the folder, or give another τ."
        )
    with _new_folder(folder) as building:
        _copy(resolved.folder, recipe, building)
        weights = _weights(resolved.folder, recipe, building)
        tensors = stored_tensors(weights)
        places = find_places(scalings, tensors)
        for place in places:
            place.scale()
        divided = tuple(place.stored.name for place in places)
        note = Note(
            source=str(resolved.ref),
            weights_sha256=source.identity.weights_sha256,
            tau=str(tau),
            divided=divided,
            is_bias_divided=divide_position_bias and support_of(anatomy).kind == "option",
            offset=anatomy.family.query_norm_offset,
            version=version("embaudit"),
        )
        add_note(building / "README.md", note, resolved.ref.name if resolved.ref.kind == "hub" else None)
        written = load_checkpoint(str(building), LoadOptions(options.device, options.dtype, allow_pickle=allow_pickle))
        difference = _compare(source, written, tau, divide_position_bias)
    return ApplyResult(
        folder=folder,
        support=support_of(anatomy),
        layers=len(anatomy.layers),
        divided=divided,
        others=len(tensors) - len(set(divided)),
        texts=len(SAMPLE),
        difference=difference,
        dtype=source.dtype,
    )


def _refuse(folder: Path, resolved: ResolvedCheckpoint, recipe: Recipe) -> None:
    try:
        is_taken = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    if is_taken:
        raise UsageError(
            f"{folder} is there already, and not an empty folder.",
            kept="It is untouched.",
            next_step="Give another --out, or remove it first.",
        )
    if folder.resolve().is_relative_to(resolved.folder.resolve()):
        raise UsageError(f"{folder} lies inside of the checkpoint itself.", next_step="Give an --out elsewhere.")
    if (resolved.folder / recipe.transformer_path / "adapter_config.json").is_file():
        raise CheckpointError(
            f"{resolved.ref} has an adapter on top of its weights, which would add unscaled queries.",
            next_step="Merge it first: peft's merge_and_unload(), then save_pretrained(FOLDER).",
        )


def _dtype(transformer: Path) -> str:
    """The dtype that most of the weights are stored in, so that both checkpoints of the comparison round alike."""
    weights = weight_files(transformer)
    if is_pickle(weights[0]):
        return "float32"
    sizes: dict[str, int] = {}
    for stored in stored_tensors(weights).values():
        sizes[stored.dtype] = sizes.get(stored.dtype, 0) + int(np.prod(stored.shape))
    names = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
    return names.get(max(sizes, key=lambda one: sizes[one], default="F32"), "float32")


def _copy(source: Path, recipe: Recipe, folder: Path) -> None:
    """What the checkpoint is made of, links followed; copies of the weights that nothing declares stay behind."""
    declared = {Path(recipe.transformer_path), *(Path(module.path) for module in recipe.modules)}
    seen: set[str] = set()
    for parent, children, names in os.walk(source, followlinks=True):
        real = os.path.realpath(parent)
        children[:] = sorted(name for name in children if not name.startswith(".") and name not in OTHER_RUNTIMES)
        if real in seen:  # a link back up
            children[:] = []
            continue
        seen.add(real)
        here = Path(parent).relative_to(source)
        weights = {path.name for path in weight_files(source / here)} if here in declared else set()
        for name in names:
            is_copied = any(fnmatch(name, pattern) for pattern in COPIED) and not name.endswith(".safetensors")
            if is_copied or name in weights:
                (folder / here).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / here / name, folder / here / name)


def _weights(source: Path, recipe: Recipe, folder: Path) -> list[Path]:
    """The copied weight files of the transformer, which a pickle becomes."""
    transformer, copied = source / recipe.transformer_path, folder / recipe.transformer_path
    files = weight_files(transformer)
    if not is_pickle(files[0]):
        return [copied / path.name for path in files]
    index = transformer / PICKLES[1]
    is_sharded = not (transformer / PICKLES[0]).is_file() and index.is_file()
    made = unpickle(files, index if is_sharded else None, copied)
    for name in (*(path.name for path in files), *PICKLES):
        (copied / name).unlink(missing_ok=True)
    return made


def _compare(source: Checkpoint, written: Checkpoint, tau: Temperatures, divide_position_bias: bool) -> float:
    """The largest difference of sample vectors between the written checkpoint and the source under τ.

    Raises:
        MeasureError: if weights or vectors differ by more than rounding.
    """
    import torch

    resolution = torch.finfo(source.model.dtype).eps
    with temperature(source, tau, divide_position_bias=divide_position_bias):
        expected = dict(source.model.named_parameters())
        for name, parameter in written.model.named_parameters():
            if name.startswith(UNUSED_WEIGHTS):  # random where the file has none
                continue
            gap = (parameter.detach().double() - expected[name].detach().double()).norm()
            if not float(gap) <= 2 * resolution * float(expected[name].detach().double().norm()):
                raise _unlike(source, f"{name} differs")
        vectors = Encoder(source).encode_texts(SAMPLE)
    difference = float(np.abs(Encoder(written).encode_texts(SAMPLE) - vectors).max())
    scale = max(1.0, float(np.abs(vectors).max()))
    if difference > VECTOR_TOLERANCE[source.dtype] * scale:
        raise _unlike(source, f"vectors differ by {difference:.1e}")
    return difference


def _unlike(source: Checkpoint, what: str) -> MeasureError:
    return MeasureError(
        f"What was written does not do what {source.resolved.ref} does at that temperature: {what}.",
        kept="It was removed again; the source is untouched.",
        next_step="Report this with the versions that `embaudit doctor` prints.",
    )


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A new folder that becomes ``folder`` at the end; after a failure nothing is left of it."""
    try:
        with replace_atomically(folder) as building:
            building.mkdir()
            yield building
    except (OSError, SafetensorError) as error:
        raise _cannot_write(folder, error) from error


def _cannot_write(folder: Path, error: Exception) -> StorageError:
    reason = getattr(error, "strerror", None) or one_line(error).rstrip(".")
    return StorageError(
        f"Cannot write {folder}: {reason}.",
        kept="Nothing was left there; the source is untouched.",
        next_step="Make room, or give an --out on another disk, and run the same command again.",
    )
