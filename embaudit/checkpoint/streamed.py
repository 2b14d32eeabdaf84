"""Large networks: weights stay in their files, and each layer's are in memory while it computes.

A file holds bfloat16 or float16, and float32 holds every value of both, so that

    f(x; W_1 … W_L) = f_L(… f_1(x; float32(W_1)) …; float32(W_L))

is what the network gives that is loaded as a whole, to the last bit, with the memory of one layer (of the largest
module outside the layers, if that is larger). Every pass reads the files again: 2 bytes a parameter from the disk, or
from the system's cache of it, beside 2 operations a parameter and token.

What is read of a mapped file is given back to the system soon after.
transformers maps safetensors files, so a page of one is in memory as soon as it is read, and stays there as long as the
mapping does. Where each tensor is looked at once (``embaudit check --files``), or copied into another precision (any
other command), that would be the whole file beside what is computed. The system reads a page again if it must.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Of mapped files, so many bytes may be in memory before they are given back, and how often that is looked at.
KEPT, SECONDS = 1 << 27, 0.02
PAGE = 4096
MADV_DONTNEED = 4


@contextmanager
def giving_back(files: Collection[Path]) -> Iterator[None]:
    """Keep no more than about ``KEPT`` bytes of these files in memory within the block, looked at by ``was_read``.

    A mapping that somebody has written to is left as it is: its pages are no longer the file's. Does nothing but on
    Linux.
    """
    if sys.platform != "linux" or not files:
        yield
        return
    outer = _WATCHED.set(Pages(files))
    try:
        yield
    finally:
        _WATCHED.reset(outer)


@contextmanager
def giving_back_meanwhile(files: Collection[Path]) -> Iterator[None]:
    """The same while a library loads a whole model, which asks nobody between two tensors: a thread looks.

    Only where nothing that was read stays mapped: what is written between the thread's look and its call would be lost.
    """
    if sys.platform != "linux" or not files:
        yield
        return
    pages, done = Pages(files), threading.Event()

    def watch() -> None:
        while not done.wait(SECONDS):
            pages.give_back()

    watcher = threading.Thread(target=watch, name="pages of weight files", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def was_read() -> None:
    """Said after each tensor by whatever looks at many, in the thread that alone uses them: nobody writes meanwhile."""
    if (pages := _WATCHED.get()) is not None:
        pages.give_back()


class Pages:
    """What of some files is in memory; nothing is given back but on Linux."""

    def __init__(self, files: Collection[Path]) -> None:
        self.names = {str(path.resolve()) for path in files}
        self.is_here = sys.platform == "linux"
        if not self.is_here:
            return
        # Libraries are mapped files, too.
        self.others = _of_files()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def give_back(self) -> None:
        with suppress(OSError):
            if not self.is_here or _of_files() - self.others < KEPT:
                return
            for start, size in clean_mappings(self.names):
                self.libc.madvise(start, size, MADV_DONTNEED)
            # A library may have been loaded meanwhile.
            self.others = _of_files()


_WATCHED: ContextVar[Pages | None] = ContextVar("watched", default=None)


def _of_files() -> int:
    """Bytes of mapped files in this process's memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[2]) * PAGE


def clean_mappings(names: Collection[str]) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the private mappings of these files that nobody has written to."""
    found: tuple[int, int] | None = None
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            start, _, end = first.partition("-")
            words = rest.split(maxsplit=4)
            is_ours = len(words) == 5 and words[0].endswith("p") and words[4] in names
            found = (int(start, 16), int(end, 16) - int(start, 16)) if is_ours else None
        elif first == "Anonymous:" and found is not None and rest.split()[0] == "0":
            yield found


# Set on a model whose weights stay in their files: what it computes in.
COMPUTES_IN = "embaudit_computes_in"


def stay_in_files(model: PreTrainedModel, dtype: torch.dtype, files: Collection[Path]) -> PreTrainedModel:
    """The model with weights as they are in their files, that computes in a wider precision.

    Args:
        files: that its weights are mapped from.
    """
    pages = Pages(files)
    for unit in units_of(model):
        if unit.is_table:
            # A row is looked up as it is: there may be hundreds of thousands, of which a batch needs some.
            unit.module.register_forward_hook(lambda _module, _given, found: found.to(dtype))
        else:
            _Widened(unit, dtype, pages)
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_floating_point():
                setattr(module, name, buffer.to(dtype))
    setattr(model, COMPUTES_IN, dtype)
    return model


def computes_in(model: torch.nn.Module) -> torch.dtype:
    """The precision of what a model gives."""
    found: Any = getattr(model, COMPUTES_IN, None) or model.dtype
    return cast("torch.dtype", found)


def is_in_files(model: torch.nn.Module) -> bool:
    return hasattr(model, COMPUTES_IN)


@dataclass(frozen=True)
class WeightUnit:
    """A part of a network whose weights are in memory together.

    Attributes:
        is_layer: whether what stands in the module belongs to it; of another module, only its own parameters.
    """

    module: torch.nn.Module
    is_layer: bool

    @property
    def is_table(self) -> bool:
        """A table of embeddings, and no kind of it that computes something."""
        import torch

        return type(self.module) is torch.nn.Embedding

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        return self.module.parameters(recurse=self.is_layer)

    @property
    def numbers(self) -> int:
        """How many are in memory at once."""
        return 0 if self.is_table else sum(parameter.numel() for parameter in self.parameters())


def units_of(model: torch.nn.Module) -> Iterator[WeightUnit]:
    """The layers of a network, and the modules outside them that have weights of their own.

    A layer is a unit, since many look at their modules' weights before they call these.
    """
    import torch

    within: set[int] = set()
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and id(module) not in within:
            for layer in module:
                within |= {id(inner) for inner in layer.modules()}
                yield WeightUnit(layer, is_layer=True)
    for module in model.modules():
        if id(module) not in within and any(True for _ in module.parameters(recurse=False)):
            yield WeightUnit(module, is_layer=False)


class _Widened:
    """The weights of a unit, widened from its call to its end."""

    def __init__(self, unit: WeightUnit, dtype: torch.dtype, pages: Pages) -> None:
        self.unit, self.dtype, self.pages = unit, dtype, pages
        self.stored: list[tuple[torch.nn.Parameter, torch.Tensor]] = []
        unit.module.register_forward_pre_hook(self._before)
        unit.module.register_forward_hook(self._after, always_call=True)

    def _before(self, module: torch.nn.Module, given: Any) -> None:
        for parameter in self.unit.parameters():
            if parameter.is_floating_point() and parameter.dtype != self.dtype:
                self.stored.append((parameter, parameter.data))
                parameter.data = parameter.data.to(self.dtype)

    def _after(self, module: torch.nn.Module, given: Any, found: Any) -> None:
        for parameter, stored in self.stored:
            parameter.data = stored
        self.stored.clear()
        self.pages.give_back()
