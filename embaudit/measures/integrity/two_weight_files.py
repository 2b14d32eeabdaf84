"""Two weight files in one folder that hold other weights: one library reads the one, another the other."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from embaudit.checkpoint.files import PICKLES, SAFETENSORS
from embaudit.checkpoint.tensors import stored_tensors
from embaudit.declared.rule import Finding, Rule

# Smaller tensors may be equal by chance, and their checksums say little.
MIN_BYTES = 4_096
AGREES = 0.99
TWO_WEIGHT_FILES = Rule(
    "two_weight_files",
    look_if="another file of weights holds other values in some tensors",
    problem_if="in half of them",
    reason="what is loaded depends on the library",
)


def two_weight_files(folder: Path) -> Iterator[Finding]:
    """Tensors of model.safetensors against the storages of pytorch_model.bin, by checksum: no pickle is read."""
    one, other = folder / SAFETENSORS[0], folder / PICKLES[0]
    if not (one.is_file() and other.is_file() and zipfile.is_zipfile(other)):
        return
    with zipfile.ZipFile(other) as archive:
        stored = {(entry.file_size, entry.CRC) for entry in archive.infolist() if "/data/" in entry.filename}
    sizes = {size for size, _ in stored}
    ours = [(size, crc) for size, crc in _checksums(one) if size >= MIN_BYTES]
    compared = [each for each in ours if each[0] in sizes]
    if not compared or len(compared) < len(ours) / 2:
        # Another precision, or storages shared between tensors: nothing can be said.
        return
    equal = sum(each in stored for each in compared)
    if equal < AGREES * len(compared):
        yield TWO_WEIGHT_FILES.finding(
            "problem" if equal < len(compared) / 2 else "look",
            f"{SAFETENSORS[0]} and {PICKLES[0]} hold other weights: {len(compared) - equal} of {len(compared)} "
            "tensors differ.",
            meaning="transformers reads the first; older versions and other libraries read the second and serve "
            "another model.",
            advice=f"Remove {PICKLES[0]}, or write it again from the loaded model.",
            value=(len(compared) - equal) / len(compared),
        )


def _checksums(file: Path) -> Iterator[tuple[int, int]]:
    """(bytes, CRC-32) of every tensor of a safetensors file."""
    with file.open("rb") as opened:
        for stored in stored_tensors([file]).values():
            opened.seek(stored.start)
            crc, left = 0, stored.size
            while left and (part := opened.read(min(left, 1 << 22))):
                crc, left = zlib.crc32(part, crc), left - len(part)
            yield stored.size, crc
