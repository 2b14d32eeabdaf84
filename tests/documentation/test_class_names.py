"""One word, one thing: no two classes of embaudit have one name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_class_name_is_used_twice() -> None:
    modules = [path for folder in ("embaudit", "flows", "tasks") for path in (ROOT / folder).rglob("*.py")]
    names = Counter(name for path in modules for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE))
    assert [name for name, count in names.items() if count > 1] == []
