"""Writes the tables of rules in a page of the documentation, for ``make docs``; the prose around them is the page's.

A table stands between ``<!-- rules of NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pkgutil import iter_modules

from embaudit.declared.rule import Rule, rules_in
from embaudit.measures import MEASURES
from embaudit.questions.names import NAMES

MARKED = re.compile(r"(<!-- rules of (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
# Where the rules of a table are declared, in its order; what begins with a dot is a module of the package before it. Of
# any other question, they are those of its folder.
MODULES: dict[str, tuple[str, ...]] = {
    "integrity": (
        *("embaudit.questions.check", ".check", ".verdict"),
        *("embaudit.measures.integrity", ".not_computed", ".blocks", ".layer_order", ".integrity", ".rows"),
        *(".values", ".tokens", ".letter_case", ".vocabulary_fit", ".files", ".numerics", ".function", ".work"),
    ),
    "quality": (
        *("embaudit.measures.quality", ".words", ".counterfactual", ".lengths", ".scale", ".scores", ".golden"),
        *(".work", ".quality"),
    ),
    "exports": ("embaudit.questions.exports", ".findings", ".files"),
    "served": (
        *("embaudit.questions.blackbox", ".limit", "embaudit.questions.parity", ".requested"),
        *("embaudit.questions.check", ".served"),
    ),
    "search": ("embaudit.questions.search", ".findings", ".measured"),
    "parity": (
        *("embaudit.questions.parity", ".findings", ".without_vector", ".ranges", ".roles", ".requested", ".parity"),
    ),
    "vectors": (
        "embaudit.questions.vectors",
        ".findings",
        ".embedded",
        ".forms",
        ".every_row",
        ".opened",
        ".report",
        ".expected",
        ".text_copies",
        ".since.inspected",
        ".builder",
    ),
    "why": ("embaudit.questions.why", ".findings", ".stages", ".report"),
    "worse": ("embaudit.questions.worse",),
    "switch": ("embaudit.questions.switch", ".findings", ".switch", "embaudit.measures.quality.golden"),
    "change": (
        *("embaudit.questions.change", ".weight_findings", ".weights", ".tokens", ".declared", ".vectors", ".gains"),
        ".change",
    ),
}
# Integrity and quality are checks, too, and have tables of their own.
AUDIT = "audits"


def catalogue() -> dict[str, list[tuple[str, Rule]]]:
    """By table, every rule with its name as the page shows it."""
    found = {table: [(rule.name, rule) for rule in _declared(*modules)] for table, modules in MODULES.items()}
    for folder in {one.model.partition(".")[0]: None for one in NAMES.values()}:
        if folder not in {modules[0].rpartition(".")[2] for modules in MODULES.values()}:
            package = import_module(f"embaudit.questions.{folder}")
            names = [module.name for module in iter_modules(package.__path__, f"{package.__name__}.")]
            if rules := [(rule.name, rule) for rule in _declared(*names)]:
                found[folder] = rules
    found[AUDIT] = [(f"audit.{rule.name}", rule) for rule in _declared("embaudit.measures.listed")]
    for name, measure in MEASURES.items():
        module = measure.parts().findings.__module__
        if name not in MODULES and module.startswith("embaudit."):
            found[AUDIT] += [(f"{name}.{rule.name}", rule) for rule in _declared(module)]
    return found


def page_of_rules(text: str) -> str:
    """The page with its tables written anew."""
    rules = catalogue()
    return MARKED.sub(lambda found: f"{found[1]}\n{''.join(_table(rules[found[2]]))}\n", text)


def _declared(*names: str) -> Iterator[Rule]:
    package, modules = "", []
    for name in names:
        package = package if name.startswith(".") else name
        modules.append(import_module(name, package))
    yield from rules_in(*modules)


def _table(rules: list[tuple[str, Rule]]) -> Iterator[str]:
    has_source = any(rule.source for _, rule in rules)
    titles = ["finding", *(["from"] if has_source else []), "`look`", "`problem`", "why there"]
    yield f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
    for cells, alike in groupby(rules, key=lambda one: one[1].cells):
        names = ", ".join(f"`{name}`" for name, _ in alike)
        row = (names, *cells) if has_source else (names, *cells[1:])
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page_of_rules(sys.stdin.read()))
