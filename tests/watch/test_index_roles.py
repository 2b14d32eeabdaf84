"""An index whose rows were encoded as documents, or as plain texts: those of a night must be encoded as the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from index_library import Library, named
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, TextKind, load_checkpoint


@pytest.mark.parametrize(("before", "tonight"), mostly_slow([("document", "text"), ("text", "document")], 1))
def test_rows_of_a_night_in_another_role_are_red(
    tmp_path: Path, before: TextKind, tonight: TextKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    folder = tiny_bert(tmp_path / "model")
    settings = folder / "config_sentence_transformers.json"
    known = json.loads(settings.read_text()) if settings.is_file() else {}
    settings.write_text(json.dumps(known | {"prompts": {"query": "find: ", "document": "passage: "}}))
    checkpoint = load_checkpoint(str(folder), LoadOptions(device="cpu"))
    encode = tuple(Encoder(checkpoint.reading(role)).encode_texts for role in (before, tonight))
    library = Library(tmp_path, tmp_path / "docs.sqlite", encode)
    library.write(named(0, 40))
    assert library.night().verdict == "wholly its own"
    library.write(named(40, 60))
    assert library.night().verdict == "wholly its own"
    library.write(named(60, 80), revision=1)
    found = library.night()
    assert found.verdict == "not wholly its own"
    assert "20 of the 20 rows" in found.line
