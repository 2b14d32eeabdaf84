"""What is asked is declared once: a command, a call and the page of commands are made from a question's fields."""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from pydantic import BaseModel

import embaudit
from embaudit.api import ask
from embaudit.cli import question as commands
from embaudit.cli.question import flag_of
from embaudit.declared.option import Argument, written_as
from embaudit.questions import names
from embaudit.questions.answered import answer_key, parameters_of, question_key, subjects_of
from embaudit.questions.check.question import CheckQuestion
from embaudit.questions.names import model_of
from embaudit.questions.parity.question import ParityQuestion
from embaudit.questions.question import Question
from embaudit.questions.search.question import SearchQuestion
from embaudit.questions.switch.question import SwitchQuestion
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.why.question import WhyQuestion
from embaudit.words.errors import UsageError
from embaudit_flows.ask import named

QUESTIONS: tuple[type[Question], ...] = tuple(map(model_of, names.NAMES))
NAMES = [question.asks for question in QUESTIONS]
# How a user writes a function, which needs no sentence of its own in each question.
FUNCTIONS = ("function", "checkpoint", "old", "new", "other")


def command_of(question: type[Question]) -> click.Command:
    command: click.Command = getattr(commands, question.asks)
    return command


def declarations() -> dict[str, set[tuple[str, str]]]:
    """By sentence of help: the classes and names of the fields that declare it."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for question in QUESTIONS:
        for name, field in question.model_fields.items():
            owners = [
                one
                for one in question.__mro__
                if issubclass(one, BaseModel) and one is not BaseModel and name in inspect.get_annotations(one)
            ]
            assert field.description, f"{question.asks}: {name} says nothing of itself"
            found[field.description].add((owners[0].__name__, name))
    return found


def test_no_parameter_is_described_in_two_places() -> None:
    twice = {
        sentence: places
        for sentence, places in declarations().items()
        if len(places) > 1 and not all(name in FUNCTIONS for _, name in places)
    }
    assert twice == {}


def test_a_parameter_of_one_name_means_one_thing_wherever_it_is_a_part() -> None:
    by_name: dict[str, set[str]] = defaultdict(set)
    for sentence, places in declarations().items():
        for owner, name in places:
            if not owner.endswith("Question"):
                by_name[name].add(sentence)
    # A prompt before queries is a checkpoint's, or of those who call an endpoint.
    assert {name for name, said in by_name.items() if len(said) > 1} == {"query_prompt", "document_prompt"}


@pytest.mark.parametrize("question", QUESTIONS, ids=NAMES)
def test_a_command_has_the_fields_of_its_question(question: type[Question]) -> None:
    command = command_of(question)
    by_name = {one.name: one for one in command.params}
    assert set(question.model_fields) <= set(by_name)
    for name, field in question.model_fields.items():
        parameter = by_name[name]
        assert isinstance(parameter, click.Argument) is isinstance(written_as(field), Argument)
        if isinstance(parameter, click.Option):
            assert parameter.help is not None
            assert parameter.help.startswith(field.description or "nothing")
            if not parameter.is_flag and not parameter.multiple and not field.is_required():
                assert parameter.default == field.default or parameter.default is None


@pytest.mark.parametrize("question", QUESTIONS, ids=NAMES)
def test_a_call_has_the_fields_of_its_question(question: type[Question]) -> None:
    call = getattr(embaudit, question.asks)
    parameters = inspect.signature(call).parameters
    assert set(parameters) == set(question.model_fields)
    by_place = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert tuple(by_place) == question.arguments()
    for name, field in question.model_fields.items():
        assert f"    {name}: {field.description}" in call.__doc__


def test_every_question_has_a_call_that_editors_know() -> None:
    assert sorted(ask.__all__) == sorted(names.NAMES)
    assert {*names.NAMES} <= {*embaudit.__all__}
    for name in names.NAMES:
        assert getattr(embaudit, name) is getattr(ask, name)


def test_a_call_says_what_it_does_not_take() -> None:
    with pytest.raises(UsageError, match="unknown key min_scor; did you mean min_score"):
        embaudit.why("store", "function", "q", "a", min_scor=0.5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="why\\(\\) takes 4 arguments by place"):
        embaudit.why("store", "function", "q", "a", 5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="store twice"):
        embaudit.why("store", "function", store="b")  # type: ignore[misc]


OUT_OF_BOUNDS: dict[str, tuple[type[Question], dict[str, Any]]] = {
    "k": (WhyQuestion, {"store": "s", "function": "f", "k": 0}),
    "recall": (SearchQuestion, {"store": "s", "recall": 0.0}),
    "count": (SearchQuestion, {"store": "s", "count": 1}),
    "rows": (VectorsQuestion, {"store": "s", "rows": 20_001}),
    "holds": (SwitchQuestion, {"old": "a", "new": "b", "holds": 1.5}),
    "max_texts": (CheckQuestion, {"checkpoint": "c", "max_texts": 5}),
    "dtype": (ParityQuestion, {"checkpoint": "c", "other": "d", "dtype": "int3"}),
}


@pytest.mark.parametrize(("question", "asked"), OUT_OF_BOUNDS.values(), ids=OUT_OF_BOUNDS)
def test_a_bound_holds_for_calls_and_for_commands(question: type[Question], asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(name for name in reversed(asked))):
        question.of(**asked)
    words: list[str] = []
    for name, value in asked.items():
        written = written_as(question.model_fields[name])
        option = [] if isinstance(written, Argument) else [flag_of(name, written)]
        words += [*option, str(value)]
    done = CliRunner().invoke(command_of(question), words)
    assert done.exit_code == 2, done.output


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """A store, a checkpoint's folder, and what is neither."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    np.save(tmp_path / "vectors.npy", np.eye(4))
    return {
        "store": str(tmp_path / "vectors.npy"),
        "folder": str(folder),
        "endpoint": "http://localhost:1",
        "object": "python:app:embed",
        "gone": str(tmp_path / "gone"),
    }


@pytest.mark.parametrize("function", ["folder", "endpoint", "object", "gone"])
def test_vectors_takes_both_orders(function: str, places: dict[str, str]) -> None:
    store, given = places["store"], places[function]
    for first, second in ((store, given), (given, store)):
        question = VectorsQuestion.of(store=first, function=second)
        assert (question.store, question.function) == (store, given)


def test_two_stores_and_two_of_neither_stay_as_they_are_given(places: dict[str, str]) -> None:
    for first, second in ((places["store"], places["store"]), (places["folder"], places["gone"])):
        question = VectorsQuestion.of(store=first, function=second)
        assert (question.store, question.function) == (first, second)


def test_what_is_given_twice_is_refused() -> None:
    done = CliRunner().invoke(commands.search, ["store", "--where", "a=1", "--where", "a =2"])
    assert isinstance(done.exception, UsageError)
    assert "--where a is given twice" in done.exception.happened


def test_none_for_a_mapping_is_an_empty_one() -> None:
    question = SearchQuestion.of(store="s", where=None, query_settings=None)
    assert (dict(question.where), dict(question.query_settings)) == ({}, {})


@pytest.mark.parametrize("asked", [{"query": "q", "expect": []}, {"query": {"q": []}}, {"query": "q"}])
def test_a_query_that_should_find_nothing_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"not said what .* should find"):
        _ = WhyQuestion.of(store="s", function="f", **asked).cases


def test_fewer_dimensions_are_an_endpoints_or_kept() -> None:
    with pytest.raises(UsageError, match="there is none") as raised:
        embaudit.parity("packaged:all-MiniLM-L6-v2", "packaged:all-MiniLM-L6-v2", dimensions=64)  # type: ignore[misc]
    assert "kept_dimensions" in (raised.value.next_step or "")


SECRET = {
    "a parameter": "postgresql://h/d?user=a&password=geheimnis",
    "a connection string": "postgresql:host=h password=geheimnis",
    "a key": "qdrant:http://h:6333?api_key=geheimnis",
    "a slash in it": "postgresql://u:ge/heimnis@h/d",
    "escaped": "postgresql://u:geheimnis@h/d",
}


@pytest.mark.parametrize("store", SECRET.values(), ids=SECRET)
def test_no_secret_is_kept_or_shown(store: str) -> None:
    question = SearchQuestion.of(store=store, function="f", fields={"api_key": "sk-abcdef123456"})
    before = question_key(question)
    said = f"{subjects_of(question)} {parameters_of(question)} {named('search', {'store': store})}"
    for secret in ("geheimnis", "heimnis", "sk-abcdef123456"):
        assert secret not in said
    assert question_key(question) == before, "whatever is masked by now"


def test_names_of_files_are_the_same_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "v.npy", np.eye(4))
    monkeypatch.chdir(tmp_path)
    here, there = VectorsQuestion.of(store="v.npy"), VectorsQuestion.of(store=str(tmp_path / "v.npy"))
    assert question_key(here) == question_key(there)
    assert subjects_of(here) == (str(tmp_path / "v.npy"), "")


CHANGES: dict[str, Any] = {
    "a renamed document": lambda folder: (folder / "docs" / "a.txt").rename(folder / "docs" / "b.txt"),
    "an export beside the weights": lambda folder: (folder / "model" / "model.onnx").write_bytes(b"x"),
    "the store": lambda folder: np.save(folder / "v.npy", np.eye(5)),
    "what a writer left": lambda folder: (folder / "v.npy-wal").write_bytes(b"x"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_an_answer_depends_on_is_in_its_key(change: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("x")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    np.save(tmp_path / "v.npy", np.eye(4))
    question = VectorsQuestion.of(
        store=str(tmp_path / "v.npy"), function=str(tmp_path / "model"), expected=tmp_path / "docs"
    )
    before = answer_key(question)
    assert before is not None
    assert answer_key(question) == before
    change(tmp_path)
    assert answer_key(question) != before


def test_an_answer_about_vectors_depends_on_the_fingerprints_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    np.save(tmp_path / "v.npy", np.eye(4))
    before = answer_key(VectorsQuestion.of(store=str(tmp_path / "v.npy")))
    (tmp_path / "home" / "fingerprints").mkdir(parents=True)
    (tmp_path / "home" / "fingerprints" / "a.json").write_text("{}")
    assert answer_key(VectorsQuestion.of(store=str(tmp_path / "v.npy"))) != before


def test_what_is_live_or_writes_a_file_has_no_key(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(4))
    for more in ({"function": "http://localhost:1"}, {"function": "python:a:b"}, {"table": "rows.csv"}):
        assert answer_key(VectorsQuestion.of(store=str(tmp_path / "v.npy"), **more)) is None
    assert answer_key(VectorsQuestion.of(store="postgresql://h/d")) is None
    assert answer_key(VectorsQuestion.of(store=f"numpy:{tmp_path / 'v.npy'}")) is not None


WRONG = {
    "no number": (["--setting", "efSearch=many"], "--setting 'efSearch=many' names no number", "--setting efSearch=64"),
    "no value": (["--where", "lang"], "--where 'lang' names no value", "--where COLUMN=VALUE"),
    "no field": (["--query-field", "x"], "--query-field 'x' names no value", "--query-field NAME=VALUE"),
}


@pytest.mark.parametrize(("words", "said", "next_step"), WRONG.values(), ids=WRONG)
def test_what_is_no_pair_is_named(words: list[str], said: str, next_step: str) -> None:
    done = CliRunner().invoke(commands.search, ["store", *words])
    assert isinstance(done.exception, UsageError)
    assert said in done.exception.happened
    assert next_step in (done.exception.next_step or "")
