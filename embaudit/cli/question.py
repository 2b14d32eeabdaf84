"""Commands made of questions: arguments, options and help come from a question's fields.

The commands that ask one question: their options and help are those of the questions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from types import MappingProxyType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import click
from click.core import ParameterSource
from pydantic.fields import FieldInfo

from embaudit.cli.options import OUTPUT, OutputOptions
from embaudit.cli.waiting import progress_lines, say, say_that_texts_leave, time_left
from embaudit.declared.option import Argument, Option, written_as
from embaudit.questions.check.question import CheckQuestion
from embaudit.questions.fingerprint.question import FingerprintQuestion
from embaudit.questions.names import ASKS, model_of
from embaudit.questions.passport.question import PassportQuestion
from embaudit.questions.question import Progress, Question
from embaudit.questions.report import Report
from embaudit.words.errors import EmbauditError, UsageError
from embaudit.words.sentences import visible

if TYPE_CHECKING:
    from embaudit.questions.check.check import CheckReport
    from embaudit.questions.passport.passport import Passport
    from embaudit.questions.vectors.fingerprint import Fingerprint


KEEP = click.Option(
    ["--keep"],
    is_flag=True,
    envvar="EMBAUDIT_KEEP",
    help="Keep the answer in the warehouse, with its findings and figures (embaudit query answers).",
)
YES = click.Option(["--yes"], is_flag=True, help="Send the texts to an endpoint on another machine without asking.")


def question_command(
    question: type[Question],
    *more: click.Option,
    finish: Callable[..., int | None],
    always: Mapping[str, Any] = MappingProxyType({}),
) -> click.Command:
    """The command that asks a question.

    Args:
        more: options of the command alone.
        finish: is given the question, its answer and the values of these options, and gives the exit code.
        always: what the command gives where its user does not.
    """
    fields = question.model_fields
    parameters = [_parameter(name, field) for name, field in fields.items()]
    arguments = [one for one in parameters if isinstance(one, click.Argument)]
    options = [one for one in parameters if isinstance(one, click.Option)]
    # A question's own come last in the model, and first in the help.
    arguments.sort(key=lambda one: question.arguments().index(one.name or ""))
    own = set(question.__annotations__)
    options.sort(key=lambda one: one.name not in own)
    if "api" in fields:
        options.append(YES)

    def ask(**given: Any) -> int | None:
        context = click.get_current_context()
        asked = {
            name: _value(name, fields[name], given[name])
            for name in fields
            if context.get_parameter_source(name) is not ParameterSource.DEFAULT
        }
        made = question.of(**{**always, **asked})
        for sent in made.texts_sent():
            say_that_texts_leave(sent, is_agreed=given.get("yes", False))
        progress = Progress(say, progress_lines(), time_left(), keeps_what_ran=True)
        form = {one.name: given[one.name] for one in more if one.name is not None}
        if not given.get("keep"):
            answer = made.answer(progress)
            code = finish(made, answer, **form)
            if isinstance(answer, Report):
                answer.remember()
            return code
        from embaudit.questions.answered import answer_key

        key, asked_at = answer_key(made), datetime.now(UTC)
        answer = _beside_kept(made, made.answer(progress))
        code = finish(made, answer, **form)
        # What was found is shown, whatever becomes of the warehouse.
        _keep(made, answer, key, asked_at)
        return code

    if question.asks in ASKS:
        options.append(KEEP)
    return click.Command(question.asks, callback=ask, params=[*arguments, *options, *more], help=question.__doc__)


def reporting_command(question: type[Question]) -> click.Command:
    """The command of a question whose answer is a report, which is printed."""
    return question_command(question, *OUTPUT, finish=show_report)


def show_report(question: Question, report: Report, **form: Any) -> int:
    """Print a report as its command was told; its exit code."""
    from embaudit.questions.answered import subjects_of

    return OutputOptions(**form).show(report, question.asks, subjects_of(question)[0])


def _beside_kept(question: Question, report: Any) -> Any:
    """The answer, and what of it is worse than in the answers before."""
    from embaudit.system.settings import Settings
    from embaudit.warehouse.answers import beside_kept

    settings = Settings()
    try:
        return beside_kept(question, report, settings.warehouse_path, settings.lock_wait_seconds)
    except EmbauditError as error:
        # It was found, and is shown.
        say(f"Not compared with the answers before: {error.happened}")
        return report


def _keep(question: Question, report: Any, key: str | None, asked: datetime) -> None:
    from embaudit_flows.server.settings import set_defaults

    # Before Prefect is imported, which otherwise prints what other libraries log.
    set_defaults(show_logs=False)
    from embaudit.api.run import keep

    say(f"Kept as answer {keep(question, report, key, asked)}.")


def _parameter(name: str, field: FieldInfo) -> click.Parameter:
    """The argument or option of a field, with its type and bounds, so that click itself rejects wrong values."""
    written = written_as(field)
    kinds = set(_kinds(field.annotation))
    is_many = bool(kinds & {Sequence, Mapping})
    if isinstance(written, Argument):
        is_required = field.is_required()
        metavar = f"{written.metavar}..." if is_many else written.metavar
        metavar = metavar if is_required else f"[{metavar}]"
        return click.Argument([name], required=is_required, nargs=-1 if is_many else 1, metavar=metavar)
    flag = flag_of(name, written)
    text = field.description or ""
    if bool in kinds:
        return click.Option([flag, name], is_flag=True, help=text)
    if is_many:
        text += " Repeatable."
    if written.default:
        text += f"  [default: {written.default}]"
    has_default = not is_many and not field.is_required() and field.default is not None
    has_default = has_default and not (written.members and field.default not in written.members)
    return click.Option(
        [flag, name],
        type=_click_type(field, written, kinds),
        multiple=is_many,
        required=field.is_required(),
        default=field.default if has_default else None,
        show_default=has_default,
        metavar=written.metavar or None,
        help=text,
    )


def flag_of(name: str, written: Option) -> str:
    return f"--{written.name or name.replace('_', '-')}"


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that a field may have: members of unions, and what its lists hold."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for one in get_args(annotation):
            yield from _kinds(one)
    elif origin is not None and origin is not Literal:
        yield origin
        if origin is Sequence:
            yield from _kinds(get_args(annotation)[0])
    else:
        yield annotation


def _click_type(field: FieldInfo, written: Option, kinds: set[Any]) -> click.ParamType[Any]:
    literals = [one for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
    if written.members or literals:
        return click.Choice(written.members or literals)
    bounds: dict[str, Any] = {}
    for limit in field.metadata:
        for name, bound in (("ge", "min"), ("gt", "min"), ("le", "max"), ("lt", "max")):
            if hasattr(limit, name):
                bounds[bound] = getattr(limit, name)
                if name in ("gt", "lt"):
                    bounds[f"{bound}_open"] = True
    if Mapping in kinds:
        return click.STRING
    if int in kinds:
        return click.IntRange(**bounds)
    if float in kinds:
        return click.FloatRange(**bounds) if bounds else click.FLOAT
    if Path in kinds and (written.is_file or not written.metavar):
        # Of several, each may be a folder of files.
        return click.Path(exists=written.is_file, dir_okay=Sequence in kinds or written.may_be_folder, path_type=Path)
    return click.STRING


def _value(name: str, field: FieldInfo, given: Any) -> Any:
    """What a field is given, of what was typed."""
    written = written_as(field)
    if written.negates:
        return not given
    mapping = next((one for one in get_args(field.annotation) or () if get_origin(one) is Mapping), field.annotation)
    if get_origin(mapping) is Mapping and isinstance(given, tuple) and written.metavar.count("="):
        return _mapping(flag_of(name, written), written, given, get_args(mapping)[1])
    return given


def _no_number(name: str) -> Any:
    """NaN and Infinity are Python's, and no JSON."""
    raise ValueError(name)


def _mapping(flag: str, written: Option, given: tuple[str, ...], kind: Any) -> dict[str, Any]:
    """NAME=VALUE as they were typed. Of any value, what is JSON is read as such."""
    read: dict[str, Any] = {}
    for one in given:
        name, mark, value = one.partition("=")
        name = name.strip()
        if not (name and mark) or (kind is int and not value.strip().isdigit()):
            what = "number" if kind is int else "value"
            raise UsageError(
                f"{flag} {one!r} names no {what}.",
                next_step=f"Write it so: {flag} {written.example or written.metavar}",
            )
        if name in read:
            raise UsageError(f"{flag} {name} is given twice.", next_step="Give it once.")
        read[name] = value
        if kind is Any:
            with suppress(ValueError):
                read[name] = json.loads(value, parse_constant=_no_number)
    return read


CARD = click.Option(
    ["--card", "is_card"], is_flag=True, help="Print a block for a model card, with the verdict as its badge."
)
# Where a command writes a passport, if nobody says.
PASSPORT = "passport.json"


def _show_check(question: CheckQuestion, report: CheckReport, is_card: bool, **form: bool | Path | None) -> int:
    if not is_card:
        return show_report(question, report, **form)
    from datetime import UTC, datetime

    from embaudit.pages.ci import card_of

    click.echo(card_of(report, datetime.now(UTC).date()), nl=False)
    return report.exit_code


def _say_written(question: PassportQuestion, made: Passport) -> None:
    out, reading = Path(question.out or PASSPORT), made.reading
    click.echo(
        visible(
            f"{out}: {len(made.canaries)} texts of {len(made.kinds)} kinds, {reading.dimension} dimensions"
            f"{', normalised' if reading.is_normalised else ''}, {out.stat().st_size / 1000:.0f} kB. "
            f"Next: embaudit verify {out} --with http://localhost:8080"
        )
    )


def _say_known(question: FingerprintQuestion, made: Fingerprint) -> None:
    from embaudit.questions.fingerprint.make import told_of
    from embaudit.questions.vectors.builder import own_file

    size = question.path.stat().st_size / 1000
    lines = [f"{question.path}: {size:.0f} kB. {told_of(made)}"]
    if question.out is None:
        lines.append("Next: embaudit vectors STORE")
    else:
        lines.append(f"To have it known here: cp {quote(str(question.out))} {quote(str(own_file(made.model)))}")
    click.echo(visible(" ".join(lines)))


check = question_command(CheckQuestion, CARD, *OUTPUT, finish=_show_check)
fingerprint = question_command(FingerprintQuestion, finish=_say_known)
passport = question_command(PassportQuestion, finish=_say_written, always={"out": PASSPORT})


def __getattr__(name: str) -> click.Command:
    """The command of any other question."""
    if name not in ASKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return reporting_command(model_of(name))
