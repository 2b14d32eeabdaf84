"""What a run has found so far, in a file with a JSON line per copy, so that a stopped run can be continued."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.defects.copies import Copy
from benchmarks.defects.harm import Harm
from benchmarks.defects.verdicts import Outcome, Said
from embaudit.declared.rule import Finding


@dataclass(frozen=True)
class Kept:
    """Outcomes in a file.

    Attributes:
        measured_on: the data and how many pairs of each; harm that was measured on others is measured again.
    """

    path: Path
    measured_on: Sequence[str | int]

    def outcome(self, copy: Copy) -> Outcome | None:
        """The newest of a copy; None if there is none."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        for line in reversed(lines):
            found = json.loads(line)
            if [found["kind"], found["copy"]] == [copy.kind, copy.label] and found["on"] == [*self.measured_on]:
                said = found["said"]
                if said is not None:
                    called = said["called"] and Finding(**said["called"])
                    said = Said(said["verdict"], called, said["seconds"])
                return Outcome(copy, Harm(**found["harm"]), said)
        return None

    def keep(self, outcome: Outcome) -> None:
        found: dict[str, Any] = {"kind": outcome.copy.kind, "copy": outcome.copy.label, "on": [*self.measured_on]}
        found |= {"harm": asdict(outcome.harm), "said": outcome.said and asdict(outcome.said)}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found, ensure_ascii=False) + "\n")
