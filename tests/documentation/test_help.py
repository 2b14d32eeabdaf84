"""Every command's help as a stranger reads it: examples that are commands, and options under what they are about."""

from __future__ import annotations

import pkgutil
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

import embaudit
from embaudit.cli.main import COMMANDS, EXAMPLES, HEADINGS, OWN, cli
from embaudit.cli.reference import catalogue, page_of_rules
from embaudit.declared.rule import Rule, number, percent, rules_in


def every() -> dict[str, tuple[click.Command, click.Context]]:
    """Each command that does something, by its path, in a context of its own."""
    top = click.Context(cli, info_name="embaudit", terminal_width=100, max_content_width=100)
    found = {}
    for name in (name for group in COMMANDS.values() for name in group):
        _, command, _ = cli.resolve_command(top, [name])
        context = click.Context(command, top, info_name=name)
        if isinstance(command, click.Group):
            for own, one in command.commands.items():
                found[f"{name} {own}"] = (one, click.Context(one, context, info_name=own))
        else:
            found[name] = (command, context)
    return found


EVERY = every()


def test_every_command_has_examples_and_no_other_name_has() -> None:
    assert set(EXAMPLES) == set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_examples_come_before_options_and_are_read_by_the_command(name: str) -> None:
    command, context = EVERY[name]
    text = command.get_help(context)
    assert text.index("Examples:") < text.index(f"\n{OWN}:" if f"\n{OWN}:" in text else "\nOutput:")
    for line in EXAMPLES[name]:
        assert f"$ embaudit {line}\n" in text
        words = shlex.split(line)[len(name.split()) :]
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("name", EVERY)
def test_every_option_is_listed_once_and_says_what_it_is(name: str) -> None:
    command, context = EVERY[name]
    text = command.get_help(context)
    for option in command.get_params(context):
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.opts}"
            assert text.count(f"\n  {option.opts[0]}") + text.count(f", {option.opts[-1]}") >= 1
    sections = [line.removesuffix(":") for line in text.split("\n") if line.endswith(":") and not line.startswith(" ")]
    assert [one for one in sections if one in (OWN, *HEADINGS)] == sorted(
        (one for one in sections if one in (OWN, *HEADINGS)), key=[OWN, *HEADINGS].index
    )


def test_headings_share_no_option() -> None:
    names = [name for some in HEADINGS.values() for name in some]
    assert len(set(names)) == len(names)


# ---- the tables of docs/findings.md are made from the rules that findings are made by ----


PAGES = ("answers", "findings", "parity", "search", "switch", "vectors", "why")
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_what_make_docs_writes(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert page_of_rules(text) == text, "make docs"


def test_every_rule_that_code_declares_has_a_row() -> None:
    rows = {rule for rules in catalogue().values() for _, rule in rules}
    pages = "".join((DOCS / f"{page}.md").read_text(encoding="utf-8") for page in PAGES)
    assert all(f"<!-- rules of {table} -->" in pages for table in catalogue())
    for found in pkgutil.walk_packages(embaudit.__path__, "embaudit."):
        if not found.name.endswith("__main__"):
            assert set(rules_in(import_module(found.name))) <= rows, found.name


def test_a_row_has_a_reason_and_a_name_once() -> None:
    for rules in catalogue().values():
        names = [name for name, _ in rules]
        assert len(set(names)) == len(names)
        for name, rule in rules:
            assert rule.reason, name
            # No word is left of a format.
            assert not any("{" in cell for cell in rule.cells), name


@pytest.mark.parametrize(
    ("rule", "levels", "look", "problem"),
    [
        (Rule("a", look=0.25, problem=0.5), {0.24: "ok", 0.25: "look", 0.49: "look", 0.5: "problem"}, ".25", ".5"),
        (
            Rule("a", look=-0.02, problem=-0.05, worse="lower"),
            {0: "ok", -0.02: "look", -0.05: "problem"},
            "−.02",
            "−.05",
        ),
        (Rule("a", look=3, worse="lower"), {4: "ok", 3: "look", -1: "look"}, "up to 3", ""),
        (Rule("a", problem=0.05, is_share=True), {0.049: "ok", 0.05: "problem"}, "", "5 %"),
        (Rule("a", reason="no figure"), {1e9: "ok", -1e9: "ok"}, "", ""),
    ],
)
def test_the_limit_that_a_page_shows_is_where_the_level_changes(
    rule: Rule, levels: dict[float, str], look: str, problem: str
) -> None:
    assert {value: rule.level(value) for value in levels} == levels
    _, *conditions, _ = rule.cells
    assert [one.removeprefix("from ") for one in conditions] == [look, problem]


def test_words_of_a_condition_show_the_limit() -> None:
    rule = Rule("a", look=0.01, look_if="interval above {look}", reason="{look} is little", is_share=True)
    assert rule.cells == ("", "interval above 1 %", "", "1 % is little")


def test_a_finding_is_called_as_its_rule_is_and_says_what_to_do_unless_it_is_ok() -> None:
    rule = Rule("loss_{task}", look=0.1)
    found = rule.finding("look", "It loses.", "Much is lost.", "Look into it.", 0.2, 0.1, 0.3, task="sts")
    assert (found.name, found.meaning, found.advice) == ("loss_sts", "Much is lost.", "Look into it.")
    assert (found.value, found.low, found.high) == (0.2, 0.1, 0.3)
    fine = rule.finding("ok", "It keeps all.", "Much is lost.", "Look into it.", task="sts", note="As others do.")
    assert (fine.meaning, fine.advice) == ("As others do.", "")


def test_numbers_are_written_as_on_the_pages() -> None:
    shown = {0.05: ".05", -0.02: "−.02", 1e-5: "1e-5", 10_000: "10 000", 2.0: "2", 1 / 4: ".25"}
    assert {value: number(value) for value in shown} == shown
    assert [percent(share) for share in (0.07, 0.29, 0.005)] == ["7 %", "29 %", ".5 %"]
