"""Smart Connections, a plugin of Obsidian: beside the notes a folder .smart-env with a file of JSON lines for each.

A line says ``"smart_blocks:Note.md#Heading": {…},``; a later one of the same key replaces it, and null takes it away.
It has a vector for each model that was used, and of the text the note's path and the numbers of its lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.stores.nested import Record, table_of_records
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.store import FETCH, StoreKind, StoreTable, reported
from embaudit.words.errors import CorpusError

SUFFIX = ".ajson"
# From the vault, from its folder of the plugin, and from the folder of files in it.
PATTERNS = (".smart-env/multi/*.ajson", "multi/*.ajson", "*.ajson")
NOTES = (".md", ".txt")


def is_smart_connections(place: StorePlace) -> bool:
    return place.suffix == SUFFIX or any(map(place.holds, PATTERNS))


def open_folder(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each note and block that has a vector of the model that is meant."""
    pattern = next((one for one in PATTERNS if place.holds(one)), "")
    files = sorted(place.path.glob(pattern)) if pattern else [place.path]
    vault = files[0].resolve().parents[2]
    by_model: dict[str, list[Record]] = {}
    for file in files:
        for key, entry in _entries(file).items():
            for model, vector in _vectors(entry):
                by_model.setdefault(model, []).append({"key": key, "entry": entry, "vector": vector})
    if not by_model:
        raise CorpusError(
            f"{place.shown} holds no vector: none of its {len(files):,} notes was embedded.",
            next_step="Open the notes in Obsidian with Smart Connections, which embeds them.",
        )
    model = part_meant(list(by_model), asked.part, place.shown, "model")
    rows = [_row(one, vault) for one in by_model[model]]
    lacking = sum(row["text"] is None for row in rows)
    if lacking == len(rows):
        rows = [{name: value for name, value in row.items() if name != "text"} for row in rows]
    note = f"Smart Connections says that {model} gave these vectors. " + (
        f"The text of {lacking:,} of {len(rows):,} rows is not there: it is in the notes, in {vault}."
        if lacking
        else "Texts are the notes' lines as they are now, without the headings that it puts before them."
    )
    note += " A heading's block has the blocks below it in it, so that these may be nearly alike."
    return table_of_records(place.shown, lambda: iter(rows), rows=len(rows), vector="vector", id="id", notes=(note,))


def _entries(file: Path) -> dict[str, Any]:
    """What a file says last of each key."""
    found: dict[str, Any] = {}
    with reported(str(file)):
        lines = file.read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            found.update(json.loads("{" + line.strip().rstrip(",") + "}"))
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"Line {number:,} of {file} cannot be read: {error}.", kept="Nothing was measured.", next_step=FETCH
            ) from error
    return found


def _vectors(entry: Any) -> Iterator[tuple[str, np.ndarray]]:
    found = entry.get("embeddings") if isinstance(entry, Mapping) else None
    for model, one in found.items() if isinstance(found, Mapping) else ():
        vector = one.get("vec") if isinstance(one, Mapping) else None
        if isinstance(vector, list) and vector:
            yield model, np.array(vector, dtype=np.float32)


def _row(one: Record, vault: Path) -> dict[str, Any]:
    collection, _, name = one["key"].partition(":")
    path = one["entry"].get("path") or name.partition("#")[0]
    return {
        "id": name,
        "text": _text(vault, path, one["entry"].get("lines")),
        "vector": one["vector"],
        "note": path,
        "kind": collection.removeprefix("smart_").removesuffix("s"),
    }


def _text(vault: Path, path: str, lines: Any) -> str | None:
    """A block's lines of its note, or the whole note; None where it is not in the vault."""
    note = _note(vault, path)
    if note is None or not isinstance(lines, list):
        return None if note is None else "\n".join(note)
    return "\n".join(note[lines[0] - 1 : lines[1]])


@lru_cache(maxsize=1)
def _note(vault: Path, path: str) -> list[str] | None:
    file = (vault / path).resolve()
    # What a file says of others must lead to nothing else.
    if file.suffix.lower() not in NOTES or not file.is_relative_to(vault) or not file.is_file():
        return None
    return file.read_text("utf-8", errors="replace").split("\n")


KINDS = (
    StoreKind(
        name="Smart Connections",
        recognises=is_smart_connections,
        open=open_folder,
        looks="an Obsidian vault with .smart-env/multi/*.ajson (Smart Connections)",
        tried="folders that Smart Connections wrote (by hand)",
    ),
)
