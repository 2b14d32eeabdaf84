"""Things that run code when they are read the wrong way; each would leave a marker file behind."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

from planted_calls import Calls

# Names that mean something to a shell, to SQL, to a path, to a glob, to HTML, to rich or to a terminal. No "/": these
# are names of one folder or file; and no NUL, which no file system takes.
NAMES = {
    "sql": "a'; DROP TABLE audit; --",
    "double quotes": 'b"; DELETE FROM checkpoint; --',
    "glob": "c*?[x]{y}",
    "escape sequence": "d\x1b[31mred\x1b]0;title\x07",
    "markup": "e[red][bold][link=x]f",
    "newline": "g\nError: h",
    "partition": "key=value",
    "shell": "$(touch pwned)`touch pwned`;&|",
    "right to left": "\u202egnp.exe",
    "combining": "e\u0301 \u00e9 \ufeff",
    "html": "<script>alert(1)<br>",
    "option": "--json",
    "format": "%s{0}{settings}",
    "backslash": "back\\slash\\",
    "spaces": "  two  ",
    "hidden": ".hidden",
}


def bare_pickle(marker: Path) -> bytes:
    return pickle.dumps({"weight": Calls(Path.touch, marker)}, protocol=2)


def torch_archive(marker: Path) -> bytes:
    """The zip that ``torch.save`` writes, with such a pickle in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", bare_pickle(marker))
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/byteorder", "little")
    return content.getvalue()


def code(marker: Path) -> str:
    """A module that runs on import."""
    return f"from pathlib import Path\nPath({str(marker)!r}).touch()\n"
