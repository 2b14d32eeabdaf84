"""What is new of a source: folders and repositories that change, break, vanish and come back. No audit runs here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_hub import FakeHub

from embaudit.questions.audit import AuditSettings
from embaudit.watch.history import History, WatchedRevision
from embaudit.watch.look import (
    BASELINE,
    Source,
    SourceState,
    checkpoint_folders,
    every_source,
    local_source,
    look,
    read_content,
)
from embaudit.watch.watch_list import OrganisationEntry, WatchList, list_organisation

Put = Callable[[Path, int], Path]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
A, B, C = "a" * 40, "b" * 40, "c" * 40


def audited(history: History, finding: SourceState, hours: int = 0, audit_id: str | None = None) -> WatchedRevision:
    """Put a finding on record as a watch does, once its audit is done."""
    when = NOON + timedelta(hours=hours)
    return history.put(
        WatchedRevision(
            source=finding.source.name,
            revision=finding.revision,
            parameters_key=finding.source.settings.key,
            parameters=finding.source.settings.model_dump(mode="json"),
            checkpoint_id=finding.checkpoint_id,
            status=finding.status or "audited",
            reason=finding.reason,
            audit_id=finding.audit_id or audit_id or f"audit of {finding.checkpoint_id}",
            first_seen=when,
            last_seen=when,
        )
    )


def repository(name: str = "owner/name", branch: str | None = None, **settings: object) -> Source:
    source = name if branch is None else f"{name}@{branch}"
    return Source(kind="hub", name=source, place=name, branch=branch, settings=AuditSettings(**settings))  # type: ignore[arg-type]


def ask(source: Source, history: History) -> SourceState:
    return look(source, history, content_of=read_content)


# ---- folders ----


def test_a_folder_is_new_once(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    source, history = local_source(put(tmp_path / "m", 0), settings), History()
    first = ask(source, history)
    assert first.needs_audit
    assert first.is_new
    assert first.revision == first.checkpoint_id
    assert first.reference == str(tmp_path / "m")
    audited(history, first)
    again = ask(source, history)
    assert (again.status, again.is_new, again.audit_id) == ("audited", False, f"audit of {first.checkpoint_id}")


def test_a_readme_makes_nothing_new_and_weights_do(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    source, history = local_source(put(tmp_path / "m", 0), settings), History()
    before = audited(history, ask(source, history))
    (tmp_path / "m" / "README.md").write_text("# Better described")
    assert not ask(source, history).needs_audit
    put(tmp_path / "m", 1)
    changed = ask(source, history)
    assert changed.needs_audit
    assert changed.checkpoint_id != before.checkpoint_id
    assert history.previous(source.name, source.settings.key, str(changed.checkpoint_id)) == before


def test_the_same_content_elsewhere_is_known(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    history = History()
    first = audited(history, ask(local_source(put(tmp_path / "m", 0), settings), history))
    copy = ask(local_source(put(tmp_path / "copy", 0), settings), history)
    assert (copy.status, copy.audit_id) == ("known", first.audit_id)
    assert str(tmp_path / "m") in str(copy.reason)


def test_other_settings_make_a_new_baseline_and_say_so(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    history = History()
    source = local_source(put(tmp_path / "m", 0), settings)
    audited(history, ask(source, history))
    other = source.model_copy(update={"settings": settings.model_copy(update={"seed": 1})})
    found = ask(other, history)
    assert found.needs_audit
    assert found.reason == BASELINE
    assert history.previous(source.name, other.settings.key, "other content") is None


def test_a_pooling_in_the_settings_is_another_checkpoint(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    source = local_source(put(tmp_path / "m", 0), settings)
    other = source.model_copy(update={"settings": AuditSettings(pooling="cls")})
    assert ask(source, History()).checkpoint_id != ask(other, History()).checkpoint_id


def test_a_link_is_watched_by_its_name(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    link, history = tmp_path / "current", History()
    link.symlink_to(put(tmp_path / "v1", 0))
    source = local_source(link, settings)
    audited(history, ask(source, history))
    link.unlink()
    link.symlink_to(put(tmp_path / "v2", 1))
    found = ask(source, history)
    assert found.needs_audit
    assert found.source.name == str(link)
    assert history.previous(str(link), settings.key, str(found.checkpoint_id)) is not None


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("config.json", "has no config.json"),
        ("tokenizer.json", "has no tokenizer"),
        ("model.safetensors", "has no weights"),
        ("cut weights", "is incomplete"),
        ("cut config", "cannot be read as JSON"),
        ("gone", "There is no folder"),
    ],
)
def test_a_half_copied_folder_is_a_failure_with_a_reason(
    put: Put, tmp_path: Path, settings: AuditSettings, damage: str, words: str
) -> None:
    folder = put(tmp_path / "m", 0)
    source = local_source(folder, settings)
    if damage == "gone":
        shutil.rmtree(folder)
    elif damage.startswith("cut"):
        path = folder / ("config.json" if damage == "cut config" else "model.safetensors")
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    else:
        (folder / damage).unlink()
    found = ask(source, History())
    assert (found.status, found.revision, found.checkpoint_id) == ("gone" if damage == "gone" else "failed", "", None)
    assert words in str(found.reason)
    put(folder, 0)
    assert ask(source, History()).needs_audit, "the next look finds it whole"


def test_a_folder_that_changes_meanwhile_is_still_being_written(
    put: Put, tmp_path: Path, settings: AuditSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from embaudit.watch import look as module

    folder = put(tmp_path / "m", 0)
    describe = module.describe

    def slowly(*arguments: object) -> object:
        found = describe(*arguments)  # type: ignore[arg-type]
        (folder / "vocab.part").write_text("more is coming")
        return found

    monkeypatch.setattr(module, "describe", slowly)
    found = ask(local_source(folder, settings), History())
    assert found.status == "failed"
    assert "still being written" in str(found.reason)


def test_every_checkpoint_folder_of_a_folder(put: Put, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    put(runs / "step-2", 0)
    put(runs / "step-1", 1)
    put(runs / ".hidden", 1)
    (runs / "logs").mkdir()
    (runs / "logs" / "loss.csv").write_text("1")
    (runs / "half").mkdir()
    (runs / "half" / "model.safetensors").write_bytes(b"1")
    (runs / "notes.txt").write_text("not a folder")
    assert [path.name for path in checkpoint_folders(runs, "*")] == ["half", "step-1", "step-2"]
    assert [path.name for path in checkpoint_folders(runs, "step-*")] == ["step-1", "step-2"]


def test_a_folder_of_checkpoints_that_is_gone(listed: Callable[[str], WatchList], tmp_path: Path) -> None:
    entries = listed('[[folder]]\npath = "runs"\neach = true\n[[folder]]\npath = "other"')
    sources, (failed,) = every_source(entries, list_organisation)
    assert [source.name for source in sources] == [str(tmp_path / "other")]
    assert (failed.status, failed.source.name) == ("failed", str(tmp_path / "runs"))
    assert "No such file" in str(failed.reason)


# ---- the hub ----


def test_a_commit_that_was_seen_is_not_fetched_again(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    source, history = repository(), History()
    first = ask(source, history)
    assert first.needs_audit
    assert first.reference == f"owner/name@{first.revision}"
    audited(history, first)
    hub.requests.clear()
    assert not ask(source, history).needs_audit
    assert hub.requests == ["GET /api/models/owner/name"], "one small question"


def test_a_commit_of_the_same_content_is_unchanged(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    folder = hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    hub.commits["owner/name"] = A
    source, history = repository(), History()
    before = audited(history, ask(source, history))
    (folder / "README.md").write_text("# Better described")
    hub.commits["owner/name"] = B
    found = ask(source, history)
    assert (found.status, found.revision, found.audit_id) == ("unchanged", B, before.audit_id)
    assert found.is_new
    audited(history, found, hours=1)
    put(folder, 1)
    hub.commits["owner/name"] = C
    changed = ask(source, history)
    assert changed.needs_audit
    previous = history.previous(source.name, source.settings.key, str(changed.checkpoint_id))
    assert previous is not None
    assert previous.revision == B


def test_a_repository_that_goes_back_is_known(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    folder = hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    source, history = repository(), History()
    found = []
    for hours, (commit, seed) in enumerate(((A, 0), (B, 1), (C, 0))):
        put(folder, seed)
        hub.commits["owner/name"] = commit
        found.append(ask(source, history))
        audited(history, found[-1], hours=hours)
    assert [one.status for one in found] == [None, None, "known"]
    assert found[2].checkpoint_id == found[0].checkpoint_id
    newest = history.newest(source.name, source.settings.key)
    assert newest is not None
    assert newest.revision == C


def test_a_hub_that_is_down_is_unreachable_and_comes_back(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    for status in (500, 503, 429):
        hub.status = status
        found = ask(repository(), History())
        assert (found.status, found.revision) == ("unreachable", "")
        assert f"cannot be reached for checkpoint owner/name (status {status})" in str(found.reason)
    hub.status = 200
    assert ask(repository(), History()).needs_audit


def test_a_repository_that_is_not_there_is_a_failure(hub: FakeHub) -> None:
    found = ask(repository("owner/gone"), History())
    assert (found.status, found.reason) == (
        "failed",
        "The hub has no checkpoint owner/gone, or it is private or disabled.",
    )


def test_a_branch_that_is_not_there_is_a_failure(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    assert "no revision 'dev'" in str(ask(repository(branch="dev"), History()).reason)
    assert ask(repository(branch="v1"), History()).source.name == "owner/name@v1"


def test_weights_in_a_pickle_fail_with_their_commit(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    folder = hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    found = ask(repository(), History())
    assert found.status == "failed"
    assert len(found.revision) == 40
    assert "only as a pickle" in str(found.reason)


def test_without_fetching_a_new_commit_is_only_named(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    hub.repositories["owner/name"] = put(tmp_path / "repository", 0)
    found = look(repository(), History())
    assert (found.needs_audit, found.checkpoint_id, found.is_new) == (True, None, True)
    assert not any("resolve" in path for path in hub.requests)


def test_an_organisation_is_its_embedding_models(hub: FakeHub, put: Put, tmp_path: Path) -> None:
    folder = put(tmp_path / "repository", 0)
    for name, tags in (
        ("owner/e5-small", ["sentence-transformers", "en"]),
        ("owner/e5-base", ["sentence-transformers"]),
        ("owner/bge", ["sentence-transformers"]),
        ("owner/llm", ["transformers"]),
        ("other/e5-small", ["sentence-transformers"]),
    ):
        hub.repositories[name], hub.tags[name] = folder, tags

    def names(**entry: object) -> list[str]:
        return list_organisation(OrganisationEntry(name="owner", **entry))  # type: ignore[arg-type]

    assert names() == ["owner/e5-small", "owner/e5-base", "owner/bge"]
    assert names(pattern="e5-*") == ["owner/e5-small", "owner/e5-base"]
    assert names(pattern="b*", limit=1) == ["owner/bge"], "what the pattern drops does not count"
    assert names(limit=2) == ["owner/e5-small", "owner/e5-base"]
    assert names(tags=["en"]) == ["owner/e5-small"]
    assert names(library="", pattern="l*") == ["owner/llm"]


def test_a_repository_named_by_itself_is_not_watched_twice(
    hub: FakeHub, put: Put, tmp_path: Path, listed: Callable[[str], WatchList]
) -> None:
    for name in ("owner/a", "owner/b"):
        hub.repositories[name], hub.tags[name] = put(tmp_path / "repository", 0), ["sentence-transformers"]
    entries = listed(
        """
        [[organisation]]
        name = "owner"
        [[organisation]]
        name = "nobody"
        [[hub]]
        name = "owner/b"
        settings = { seed = 1 }
        [[hub]]
        name = "owner/b"
        settings = { seed = 1 }
        """
    )
    sources, (none,) = every_source(entries, list_organisation)
    assert [(source.name, source.settings.seed) for source in sources] == [("owner/b", 1), ("owner/a", 0)]
    assert (none.source.name, none.status) == ("nobody/*", "failed")


def test_an_organisation_whose_hub_is_silent(
    hub: FakeHub, listed: Callable[[str], WatchList], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embaudit.system.hub.LISTING_SECONDS", 0.3)
    hub.is_silent = True
    sources, (found,) = every_source(listed('[[organisation]]\nname = "owner"'), list_organisation)
    assert sources == []
    assert (found.source.name, found.status) == ("owner/*", "unreachable")
    assert "no answer within" in str(found.reason)


def test_a_clock_that_goes_backwards_makes_nothing_older(put: Put, tmp_path: Path, settings: AuditSettings) -> None:
    history = History()
    source = local_source(put(tmp_path / "m", 0), settings)
    audited(history, ask(source, history), hours=3)
    row = audited(history, ask(source, history), hours=-3)
    assert (row.first_seen, row.last_seen) == (NOON + timedelta(hours=3), NOON + timedelta(hours=3))
