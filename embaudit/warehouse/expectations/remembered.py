"""Caches check results of staged tables: the same bytes are not checked twice by the same code.

A result depends on the table's files, the planned rows, the files of other tables that its rules read, and the rules.
For the rules, all code of embaudit and of packages that bring measures, and the version of Great Expectations are
hashed, so that nobody has to remember to increment a version. Failures that block publishing are not cached.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

from embaudit.measures import MEASURES
from embaudit.steps.staging.files import readable
from embaudit.steps.staging.stage import is_staged, read_rows, reading, staged_path, write_rows
from embaudit.system.files import code_digest, content_key
from embaudit.warehouse.publish import ExpectationRow

SCHEMA = {"result": "string"}


def check_path(staging: str, table: str, paths: Sequence[str], others: Sequence[str], planned: int | None) -> str:
    """Where a table's results are cached.

    Args:
        others: files of other tables that its rules read.
    """
    key = content_key(rules=_rules(), table=table, files=_digests(paths), others=_digests(others), planned=planned)
    return staged_path(staging, "audit", key, "checks")


def recall(path: str) -> list[ExpectationRow] | None:
    """A table's cached results; None if there are none."""
    if not is_staged(path):
        return None
    return [ExpectationRow(**json.loads(row["result"])) for row in read_rows([path])]


def remember(path: str, results: Sequence[ExpectationRow]) -> None:
    """Cache results, if the table may be published."""
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
    packages = dict.fromkeys(measure.package.split(".")[0] for measure in MEASURES.values())
    return f"{code_digest(*packages)} {version('great_expectations')}"
