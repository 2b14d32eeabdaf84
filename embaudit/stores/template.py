"""What was embedded of a row: a text made of its fields, as ``'{title}\\n{text}'`` says it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from embaudit.errors import UsageError

FIELD = re.compile(r"\{([^{}]+)\}")
# As typed in a shell's quotes, where a newline is hard to write.
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}


@dataclass(frozen=True)
class Template:
    """Fields with what stands between them.

    A field that a row lacks (none, or empty) takes along what stands before it, as programs do that join what there is;
    and before the first that a row has, nothing stands that belongs to another.

    Attributes:
        before: (n,) what stands before each field.
        fields: (n,) dotted names.
        after: what stands behind the last one.
    """

    before: tuple[str, ...]
    fields: tuple[str, ...]
    after: str = ""

    @classmethod
    def of(cls, written: str) -> Template:
        """The template that a user wrote.

        Raises:
            UsageError: if it names no field.
        """
        plain = re.sub(r"\\[nt\\]", lambda found: ESCAPES[found[0]], written)
        parts = FIELD.split(plain)
        if len(parts) < 3:
            raise UsageError(
                f"The template {written!r} names no field.",
                next_step="Name fields in braces: --text '{title}\\n{text}'",
            )
        return cls(tuple(parts[0:-1:2]), tuple(part.strip() for part in parts[1::2]), parts[-1])

    @property
    def written(self) -> str:
        """As ``--text`` takes it."""
        whole = "".join(f"{before}{{{name}}}" for before, name in zip(self.before, self.fields, strict=True))
        return (whole + self.after).replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")

    def text(self, row: Mapping[str, object]) -> str | None:
        """What was embedded of one row; None if it has none of the fields."""
        found: list[str] = []
        for place, (before, name) in enumerate(zip(self.before, self.fields, strict=True)):
            value = row.get(name)
            if value is None or value == "":
                continue
            found.append((before if found or place == 0 else "") + str(value))
        return "".join(found) + self.after if found else None

    def texts(self, fields: Mapping[str, Sequence[object]], rows: int) -> list[str | None]:
        """(n,) the same of rows in columns."""
        own = {name: fields[name] for name in self.fields}
        return [self.text({name: values[row] for name, values in own.items()}) for row in range(rows)]


def is_template(text: str | None) -> bool:
    return text is not None and FIELD.search(text) is not None


def lacking(template: Template, columns: Iterable[str]) -> list[str]:
    """The fields that a table does not have."""
    known = set(columns)
    return [name for name in template.fields if name not in known]
