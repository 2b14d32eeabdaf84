"""What files declare and nothing computes: positions that transformers dropped, prompts that nothing picks."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.prompts import ALWAYS_DECLARED
from embaudit.checkpoint.settings import SETTINGS, read_settings
from embaudit.declared.rule import Finding, Rule

# Parts of the names of modules that compute positions relative to each other.
RELATIVE = ("distance_embedding", "relative_attention", "rel_embeddings", "rotary", "rope", "alibi")
# Releases 4.49 to 4.57 compute those of BERT and its relatives; the code of 5.0 has none of it any more.
COMPUTED_BEFORE = "5"
# Names that people give to the prompts of queries and of documents; encode_query and encode_document read their own.
OF_ROLES: dict[TextKind, tuple[str, ...]] = {
    "query": ("query", "queries"),
    "document": ("document", "passage", "corpus"),
}
POSITIONS_NOT_COMPUTED = Rule(
    "positions_not_computed",
    problem_if="config.json declares a `position_embedding_type` that the installed transformers does not compute for "
    "this architecture",
    reason="it loads without a word, and every vector is another",
)
PROMPT_NOT_PICKED = Rule(
    "prompt_not_picked",
    look_if="a prompt for queries, or documents, has a name that `encode_query` and `encode_document` do not look "
    "for, and they have none of their own",
    reason="whoever asks for documents as such gets them without it",
)


def not_computed(checkpoint: Checkpoint) -> Iterator[Finding]:
    """A problem if it moves vectors, something to look at if callers can make up for it."""
    yield from _positions(checkpoint)
    yield from _prompts(checkpoint)


def _positions(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Relative positions that config.json declares, of a model that has none."""
    declared = getattr(checkpoint.model.config.get_text_config(), "position_embedding_type", None)
    if not isinstance(declared, str) or declared == "absolute":
        return
    if any(part in name for name, _ in checkpoint.model.named_modules() for part in RELATIVE):
        return
    import transformers

    yield POSITIONS_NOT_COMPUTED.finding(
        "problem",
        f'config.json declares "position_embedding_type": "{declared}", which transformers {transformers.__version__} '
        f"does not compute for {type(checkpoint.model).__name__}: it reads absolute positions in its place.",
        "Every vector is another than in training, and nothing says so when it is loaded.",
        f"Serve it with a version that computes them: pip install 'transformers<{COMPUTED_BEFORE}'",
    )


def _prompts(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Prompts for queries, or documents, that are declared under other names than those that are looked for."""
    for role, (name, prompt) in prompts_not_picked(checkpoint).items():
        yield PROMPT_NOT_PICKED.finding(
            "look",
            f"Nothing picks the prompt that {SETTINGS} declares as {name!r} ({prompt!r}): encode_{role} looks "
            f"for {role!r} and puts nothing.",
            f"The {role} that training saw had it before it.",
            f"Name it {role!r} in {SETTINGS}, or have callers say it: encode(texts, prompt_name={name!r}), or here "
            f"--{role}-prompt {name}",
        )


def prompts_not_picked(checkpoint: Checkpoint) -> dict[TextKind, tuple[str, str]]:
    """Of each role whose own prompt is not declared, the name and text of one that is meant for it."""
    settings = read_settings(checkpoint.resolved.folder)
    declared, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    found: dict[TextKind, tuple[str, str]] = {}
    for role, words in OF_ROLES.items():
        if declared.get(role) or checkpoint.reading(role).prompt.text:
            continue
        for name, text in declared.items():
            is_meant = any(word in name.lower() for word in words) and name not in (*ALWAYS_DECLARED, default)
            if text and is_meant:
                found.setdefault(role, (name, text))
    return found
