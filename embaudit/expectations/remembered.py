"""What checks of staged tables found: the same bytes, under the same code, are not checked twice.

A table's check hangs on its files, on the rows that were planned, on the texts' traces that bound the distances of
pairs, and on the rules. The first three are hashed as they are; for the rules stands the whole of embaudit's code with
the version of Great Expectations, so that nobody has to remember to raise a number. A failure that blocks publishing is
always seen anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from embaudit.keys import content_key
from embaudit.warehouse.files import is_file, readable
from embaudit.warehouse.publish import ExpectationRow
from embaudit.warehouse.stage import read_rows, reading, staged_path, write_rows

SCHEMA = {"result": "string"}


def check_path(staging: str, table: str, paths: Sequence[str], beside: Sequence[str], planned: int | None) -> str:
    """Where a table's results are remembered.

    Args:
        beside: files of other tables that its rules read.
    """
    key = content_key(rules=_rules(), table=table, files=_digests(paths), beside=_digests(beside), planned=planned)
    return staged_path(staging, "audit", key, "checks")


def recall(path: str) -> list[ExpectationRow] | None:
    """What is remembered of a table; None if that is nothing."""
    if not is_file(path):
        return None
    return [ExpectationRow(**json.loads(row["result"])) for row in read_rows([path])]


def remember(path: str, results: Sequence[ExpectationRow]) -> None:
    """Remember results, if the table may be published."""
    if not any(row.blocks for row in results):
        write_rows(path, [{"result": json.dumps(asdict(row))} for row in results], SCHEMA)


def _digests(paths: Sequence[str]) -> list[str]:
    digests = []
    for path in paths:
        with reading(path), readable(path) as source:
            if isinstance(source, str):
                with Path(source).open("rb") as file:
                    digests.append(hashlib.file_digest(file, "sha256").hexdigest())
            else:
                digests.append(hashlib.file_digest(source, "sha256").hexdigest())
    return digests


@cache
def _rules() -> str:
    from importlib.metadata import version

    import embaudit

    code = hashlib.sha256(version("great_expectations").encode())
    for path in sorted(Path(embaudit.__file__).parent.rglob("*.py")):
        code.update(path.read_bytes())
    return code.hexdigest()
