"""Smart Connections' files beside the notes of an Obsidian vault: a row for each note and block with a vector."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralParts
from embaudit.words.errors import EmbauditError

D, NOTES = 24, 6
VECTORS = np.random.default_rng(0).normal(size=(2 * NOTES, D)).astype(np.float32).round(8)
MODEL = "someone/small"


def line(key: str, entry: dict[str, Any] | None) -> str:
    return f"{json.dumps(key)}: {json.dumps(entry)},\n"


def entry(row: int, model: str = MODEL, **more: Any) -> dict[str, Any]:
    return {"path": None, "embeddings": {model: {"vec": VECTORS[row].tolist(), "last_embed": {"hash": "x"}}}, **more}


def vault(folder: Path, with_notes: bool = True) -> Path:
    """Each note as a whole, its second heading, and a heading that is too short to be embedded."""
    files = folder / ".smart-env" / "multi"
    files.mkdir(parents=True)
    (folder / "in").mkdir()
    for row in range(NOTES):
        path = f"in/Note {row}.md"
        if with_notes:
            (folder / path).write_text(f"# One\nfirst of {row}\n# Two\nsecond of {row}\nend\n", encoding="utf-8")
        (files / f"in_Note_{row}_md.ajson").write_text(
            "\n"
            + line(f"smart_sources:{path}", entry(0, path=path))
            + line(f"smart_blocks:{path}#One", {"path": None, "embeddings": {}, "lines": [1, 2]})
            + line(f"smart_blocks:{path}#Two", entry(NOTES + row, lines=[3, 5]))
            + line(f"smart_blocks:{path}#Gone", entry(0, lines=[9, 9]))
            # What is said later of a key goes before what was said.
            + line(f"smart_sources:{path}", entry(row, path=path))
            + line(f"smart_blocks:{path}#Gone", None),
            encoding="utf-8",
        )
    (folder / ".smart-env" / "smart_env.json").write_text("{}")
    return folder


@pytest.mark.parametrize("inner", ["", ".smart-env", ".smart-env/multi"])
def test_what_is_said_last_of_each_note_and_block_is_read(inner: str, tmp_path: Path) -> None:
    store = open_store(vault(tmp_path) / inner)
    (batch,) = store.batches(["note", "kind"])
    order = [row for note in range(NOTES) for row in (note, NOTES + note)]
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS[order])
    names = [name for note in range(NOTES) for name in (f"in/Note {note}.md", f"in/Note {note}.md#Two")]
    assert (store.kind, batch.ids, batch.fields["kind"]) == ("Smart Connections", names, ["source", "block"] * NOTES)
    whole = "# One\nfirst of 0\n# Two\nsecond of 0\nend\n"
    assert (batch.texts or [])[:2] == [whole, "# Two\nsecond of 0\nend"]
    assert store.notes[0].startswith(f"Smart Connections says that {MODEL} gave these vectors. Texts are")


def test_one_file_is_one_note(tmp_path: Path) -> None:
    (batch,) = open_store(vault(tmp_path) / ".smart-env/multi/in_Note_3_md.ajson").batches()
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS[[3, NOTES + 3]])


def test_without_the_notes_there_are_vectors_and_it_is_said_where_texts_are(tmp_path: Path) -> None:
    store = open_store(vault(tmp_path, with_notes=False))
    assert "text" not in store.columns
    assert f"The text of 12 of 12 rows is not there: it is in the notes, in {tmp_path}." in store.notes[0]


def test_of_several_models_one_is_named(tmp_path: Path) -> None:
    file = vault(tmp_path) / ".smart-env/multi/in_Note_0_md.ajson"
    with file.open("a", encoding="utf-8") as added:
        added.write(line("smart_sources:in/Note 0.md", entry(1, "else/large", path="in/Note 0.md")))
    with pytest.raises(SeveralParts, match=r"2 models: else/large, someone/small.*--from else/large"):
        open_store(tmp_path)
    (batch,) = open_store(tmp_path, ReadOptions(part="else/large")).batches()
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS[[1]])


@pytest.mark.parametrize("path", ["../outside.md", "/etc/hostname", "in/picture.png"])
def test_nothing_but_notes_of_the_vault_is_opened(path: str, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret")
    folder = vault(tmp_path / "vault", with_notes=False)
    (folder / "in/picture.png").write_text("secret")
    for file in (folder / ".smart-env/multi").iterdir():
        file.write_text(line(f"smart_sources:{path}", entry(0, path=path)))
    assert "text" not in open_store(folder).columns


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('"smart_sources:a.md": {"path"', r"Line 1 of .*ajson cannot be read"),
        ('"smart_sources:a.md": {"path": "a.md", "embeddings": {}},', r"none of its 1 note was embedded.*Obsidian"),
    ],
)
def test_what_holds_nothing_or_is_cut_off_is_named(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "multi").mkdir()
    (tmp_path / "multi" / "a_md.ajson").write_text(content)
    with pytest.raises(EmbauditError, match=f"(?s){said}"):
        open_store(tmp_path)
