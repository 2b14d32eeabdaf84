"""What the hub says of a repository or an organisation: one small question each, nothing fetched."""

from __future__ import annotations

import threading
from fnmatch import fnmatchcase

from embaudit.checkpoint.files import one_line
from embaudit.checkpoint.reference import ANSWER_SECONDS
from embaudit.errors import CheckpointError, HubUnreachable
from embaudit.watch.watch_list import OrganisationEntry

# huggingface_hub's listings try again by themselves for half a minute, and wait for ever on a hub that is silent.
LISTING_SECONDS = 40.0
NO_ANSWER = "Nothing was changed; the next watch tries again."


def current_commit(name: str, revision: str | None) -> str:
    """The commit that a branch or tag of a repository stands for now.

    Raises:
        CheckpointError: if there is no such repository or revision, or it may not be read.
        HubUnreachable: if the hub gives no answer.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        DisabledRepoError,
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        commit = HfApi().model_info(name, revision=revision, timeout=ANSWER_SECONDS).sha
    except RevisionNotFoundError as error:
        raise CheckpointError(f"The hub has {name}, but no revision {revision!r} of it.") from error
    except (GatedRepoError, RepositoryNotFoundError, DisabledRepoError) as error:
        raise CheckpointError(f"The hub has no checkpoint {name}, or it is private, gated or disabled.") from error
    except HFValidationError as error:
        raise CheckpointError(f"{name} is not a valid hub id: {one_line(error)}") from error
    except Exception as error:  # the transport library's errors share no base with anything of ours
        raise _no_answer(name, error) from error
    if not commit:
        raise CheckpointError(f"The hub names no commit of {name}: the repository is empty.")
    return str(commit)


def list_organisation(entry: OrganisationEntry) -> list[str]:
    """The organisation's models that the entry asks for, the most recently changed first.

    Raises:
        HubUnreachable: if the hub gives no answer.
    """
    found: list[str] = []
    failure: list[Exception] = []

    def ask() -> None:
        from huggingface_hub import HfApi

        tags = [tag for tag in (entry.library, *entry.tags) if tag]
        try:
            # No limit here: the pattern is ours, and what it drops must not count.
            for model in HfApi().list_models(author=entry.name, filter=tags or None, sort="last_modified"):
                if fnmatchcase(model.id.rpartition("/")[2], entry.pattern):
                    found.append(model.id)
                if len(found) == entry.limit:
                    return
        except Exception as error:
            failure.append(error)

    listing = threading.Thread(target=ask, daemon=True)
    listing.start()
    listing.join(LISTING_SECONDS)
    if listing.is_alive():
        raise _no_answer(entry.name, TimeoutError(f"no answer within {LISTING_SECONDS:.0f} s"))
    if failure:
        raise _no_answer(entry.name, failure[0]) from failure[0]
    return found


def _no_answer(name: str, error: Exception) -> HubUnreachable:
    return HubUnreachable(
        f"The model hub gave no answer about {name}: {one_line(error)}",
        kept=NO_ANSWER,
        next_step="Check the network: embaudit doctor",
    )
