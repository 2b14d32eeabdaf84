"""``python:MODULE:NAME`` imports what is named, and nothing else of the folder that it is in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_file_beside_a_named_module_takes_no_packages_place(tmp_path: Path) -> None:
    """One with the name of a module that is imported later is not run in its place."""
    (tmp_path / "mine.py").write_text("def embed(texts): return [[1.0, 2.0] for text in texts]")
    trap = f"open({str(tmp_path / 'ran')!r}, 'w').close()"
    for name in ("colorsys", "tenacity", "scipy"):
        (tmp_path / f"{name}.py").write_text(trap)
    code = (
        "from embaudit.embedders.object.interfaces import import_object; import_object('python:mine:embed'); "
        "import colorsys, tenacity, scipy; print(colorsys.__file__)"
    )
    # -P: as a command that is installed starts, without the current folder.
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not done.stdout.startswith(str(tmp_path))
    assert not (tmp_path / "ran").exists()
