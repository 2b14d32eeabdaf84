"""All questions by name, without importing one: ``embaudit --help`` lists them, and whoever has a name finds its model.

A question as data, by its name and parameters, is a deployment's parameter and an entry of a watch list.

A new question is a folder beside this file, its entry here, and its call in ``api/ask.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from embaudit.words.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from embaudit.questions.question import Question


class Named(NamedTuple):
    """A question as people find it.

    Attributes:
        model: module and class, below ``embaudit.questions``.
        line: what ``embaudit --help`` says of it.
        examples: what people type, the first lines of its help.
        is_answered: whether its answer is a report, which can be kept; otherwise it writes a file.
    """

    model: str
    line: str
    examples: tuple[str, ...]
    is_answered: bool = True


NAMES: dict[str, Named] = {
    "check": Named(
        "check.question:CheckQuestion",
        "May this checkpoint be served? An answer in seconds, without a server.",
        (
            "check packaged:all-MiniLM-L6-v2",
            "check ./my-checkpoint --base ./my-old-one --out page.html",
            "check http://localhost:8080",
            "check ./eight-billion --files",
        ),
    ),
    "parity": Named(
        "parity.question:ParityQuestion",
        "Is it served as it was audited? Compare it with an endpoint.",
        (
            "parity ./my-checkpoint --with http://localhost:8080",
            "parity ./my-checkpoint --with python:app.search:embeddings",
        ),
    ),
    "reproduce": Named(
        "reproduce.question:ReproduceQuestion",
        "Say whether it reaches its published scores here, and which prompt or pooling does.",
        (
            "reproduce ./my-checkpoint --mteb SciFact.json --data ./scifact",
            "reproduce ./my-checkpoint --mteb STSBenchmark.json --pairs stsb-test.csv",
        ),
    ),
    "passport": Named(
        "passport.question:PassportQuestion",
        "Write the file by which its vectors can be told from any others.",
        ("passport ./my-checkpoint --out passport.json",),
        is_answered=False,
    ),
    "verify": Named(
        "passport.question:VerifyQuestion",
        "Are these the vectors of that passport? An answer in seconds, without a model.",
        ("verify passport.json --with http://localhost:8080",),
    ),
    "vectors": Named(
        "vectors.question:VectorsQuestion",
        "Say whether stored vectors are sound, and whether a checkpoint built them.",
        (
            "vectors ./chroma ./my-checkpoint",
            "vectors index.parquet ./my-checkpoint --vector embedding --text body",
            "vectors index.parquet",
        ),
    ),
    "fingerprint": Named(
        "fingerprint.question:FingerprintQuestion",
        "Write the file by which vectors tells that a model of yours built a store.",
        (
            "fingerprint ./my-checkpoint --name my-model",
            "fingerprint ./storeA ./storeB --name our-model --out our-model.json",
        ),
        is_answered=False,
    ),
    "search": Named(
        "search.question:SearchQuestion",
        "Say whether a store's own search finds what its vectors hold.",
        ("search ./chroma ./my-checkpoint", "search rows.faiss --setting nprobe=16 --recall .95"),
    ),
    "why": Named(
        "why.question:WhyQuestion",
        "Say where a search was lost, and what mends it.",
        (
            'why ./chroma ./my-checkpoint --query "can I return a gift" --expect policy-17',
            "why ./chroma ./my-checkpoint --golden golden.csv --out monday.html",
        ),
    ),
    "switch": Named(
        "switch.question:SwitchQuestion",
        "Say what becomes of an index, and of a threshold, with a new revision.",
        (
            "switch ./my-checkpoint ./my-next-checkpoint",
            "switch ./old ./new --corpus texts.jsonl --golden golden.csv --threshold .7",
        ),
    ),
}
# Those whose answers are kept, watched, compared and gated.
ASKS: tuple[str, ...] = tuple(name for name, one in NAMES.items() if one.is_answered)


def model_of(asks: str) -> type[Question]:
    """The model of a question, by its name."""
    module, _, model = NAMES[asks].model.partition(":")
    question: type[Question] = getattr(import_module(f"embaudit.questions.{module}"), model)
    return question


def question_of(asks: str, question: Mapping[str, Any]) -> Question:
    """A question by its name and its parameters.

    Raises:
        UsageError: if there is no such question, or a parameter is unknown or out of bounds.
    """
    if asks not in ASKS:
        raise UsageError(
            f"There is no question {asks!r}.",
            next_step=f"{did_you_mean(asks, ASKS)}There are: {', '.join(ASKS)}.",
        )
    return model_of(asks).of(**question)
