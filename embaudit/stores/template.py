"""What was embedded of a row: a text made of its fields, as ``'{title}\\n{text}'`` says it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from embaudit.words.errors import UsageError

# A brace behind a backslash is a brace.
FIELD = re.compile(r"(?<!\\)\{([^{}]*)\}")
# As typed in a shell's quotes, where a newline is hard to write.
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\{": "{", "\\}": "}"}
# What joins two fields, and belongs to neither: it is left out where nothing stands before it.
JOINT = re.compile(r"[\s.,;:|/•·–—-]*")
# `name`, `name!form`, `name:.500`, `name|what stands for a missing one`.
PARTS = re.compile(r"(?P<name>.*?)(?:!(?P<form>[a-z]+))?(?::\.(?P<most>\d+))?(?:\|(?P<filling>.*))?", re.DOTALL)


def _iso(value: object) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _joined(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _whole(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


FORMS: dict[str, Callable[[object], str]] = {
    "": str,
    "iso": _iso,
    "date": lambda value: _iso(value)[:10],
    "list": _joined,
    "json": lambda value: json.dumps(value, ensure_ascii=False, default=str),
    "whole": _whole,
}


@dataclass(frozen=True)
class Part:
    """A field with what stands before it.

    Attributes:
        before: what stands before it.
        name: of the field, dotted; empty for words that always stand there.
        form: how its value is written, one of ``FORMS``.
        most: characters that are read of it; 0 for all.
        filling: what stands for it in rows that lack it; None if it is left out then, with what stands before it.
    """

    before: str
    name: str = ""
    form: str = ""
    most: int = 0
    filling: str | None = None

    def value(self, row: Mapping[str, object]) -> str | None:
        """What it gives of a row; None if that lacks it."""
        value = row.get(self.name)
        if is_missing(value):
            return self.filling
        text = FORMS[self.form](value)
        return text[: self.most] if self.most else text

    @property
    def written(self) -> str:
        if not self.name:
            return "{}"
        form = f"!{self.form}" if self.form else ""
        most = f":.{self.most}" if self.most else ""
        return f"{{{self.name}{form}{most}{'' if self.filling is None else '|' + self.filling}}}"


@dataclass(frozen=True)
class Template:
    """Fields with what stands between them.

    A field that a row lacks (none, or empty) takes along what stands before it, as programs do that join what there is;
    the first that a row has keeps its label (``author: ``), and not what joins it to the one before.

    Attributes:
        parts: the fields, in order.
        after: what stands behind the last one.
        most: characters that are read of the whole; 0 for all.
    """

    parts: tuple[Part, ...]
    after: str = ""
    most: int = 0

    @classmethod
    def of(cls, written: str) -> Template:
        """The template that a user wrote.

        Raises:
            UsageError: if it names no field, or a field in a form that there is not.
        """
        found = FIELD.split(written)
        texts, inner = [_plain(one) for one in found[0::2]], found[1::2]
        parts, most = [], 0
        for before, one in zip(texts, inner, strict=False):
            part = PARTS.fullmatch(one)
            assert part is not None
            name = part["name"].strip()
            if (part["form"] or "") not in FORMS:
                raise UsageError(
                    f"The template {written!r} writes {name} in a form that there is not: {part['form']}.",
                    next_step=f"There are {', '.join(filter(None, FORMS))}.",
                )
            limit = int(part["most"] or 0)
            if not name and limit:
                # Of the whole.
                most = limit
            parts.append(Part(before, name, part["form"] or "", limit if name else 0, part["filling"]))
        if not any(part.name for part in parts):
            raise UsageError(
                f"The template {written!r} names no field.",
                next_step="Name fields in braces: --text '{title}\\n{text}'",
            )
        if most and not parts[-1].name:
            return cls(tuple(parts[:-1]), parts[-1].before + texts[-1], most)
        return cls(tuple(parts), texts[-1], most)

    @property
    def fields(self) -> tuple[str, ...]:
        """Dotted names, each once."""
        return tuple(dict.fromkeys(part.name for part in self.parts if part.name))

    def renamed(self, name_of: Callable[[str], str]) -> Template:
        """The same with fields called otherwise."""
        parts = tuple(replace(part, name=name_of(part.name)) if part.name else part for part in self.parts)
        return replace(self, parts=parts)

    @property
    def written(self) -> str:
        """As ``--text`` takes it."""
        whole = "".join(_escaped(part.before) + part.written for part in self.parts)
        return whole + _escaped(self.after) + (f"{{:.{self.most}}}" if self.most else "")

    def text(self, row: Mapping[str, object]) -> str | None:
        """What was embedded of one row; None if it has none of the fields."""
        found: list[str] = []
        has_field = stands = lacked = False
        for part in self.parts:
            if not part.name:
                found.append(part.before)
                continue
            value = part.value(row)
            if value is None:
                lacked = True
                continue
            is_first = lacked and not stands
            found.append((JOINT.sub("", part.before, count=1) if is_first else part.before) + value)
            stands = True
            has_field |= not is_missing(row.get(part.name))
        if not has_field:
            return None
        whole = "".join(found) + self.after
        return whole[: self.most] if self.most else whole

    def texts(self, fields: Mapping[str, Sequence[object]], rows: int) -> list[str | None]:
        """(n,) the same of rows in columns."""
        own = {name: fields[name] for name in self.fields}
        return [self.text({name: values[row] for name, values in own.items()}) for row in range(rows)]


IN_WORDS = {"\n": "a newline", "\n\n": "two newlines", " ": "a space", "": "", "\t": "a tab"}


def in_words(template: Template) -> str:
    """A template as a person would say it: "`title`, a newline and `text`"."""
    if template.most or any(part.filling is not None or part.form for part in template.parts):
        return f"'{template.written}'"
    said = []
    for place, part in enumerate(template.parts):
        before = IN_WORDS.get(part.before, repr(part.before) if part.before else "")
        said += [before] if before and (place or part.before) else []
        cut = f"the first {part.most:,} characters of " if part.most else ""
        said += [f"{cut}`{part.name}`"] if part.name else []
    said += [IN_WORDS.get(template.after, repr(template.after))] if template.after else []
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def is_missing(value: object) -> bool:
    """Whether a row has nothing there: no value, an empty one, or what frames write for none."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def is_template(text: str | None) -> bool:
    return text is not None and FIELD.search(text) is not None


def _plain(written: str) -> str:
    return re.sub(r"\\[nt\\{}]", lambda found: ESCAPES[found[0]], written)


def _escaped(text: str) -> str:
    for plain, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), ("{", "\\{"), ("}", "\\}")):
        text = text.replace(plain, escape)
    return text
