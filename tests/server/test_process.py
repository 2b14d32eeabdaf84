"""Commands in processes as shells, containers and supervisors start them: streams, encodings, homes, folders."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit
from some_rows import mostly_slow

MAIN = [sys.executable, "-m", "embaudit"]
# An account that does not exist.
NOBODY = 54_321


@pytest.fixture(scope="module")
def warehouse_once(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One published audit of a checkpoint whose name is beyond ASCII and Latin-1."""
    path = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("warehouse")))
    put_audit(path, audit_record(), plausible_rows(source="/models/ம-é-𝒳"), measure_runs(), [expectation()])
    return path


@pytest.fixture
def environment(tmp_path: Path, warehouse_once: Path) -> dict[str, str]:
    """A home, and a copy of that warehouse."""
    warehouse = shutil.copy(warehouse_once, tmp_path / "warehouse.duckdb")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "LC_", "PYTHON"))}
    return {**plain, "EMBAUDIT_HOME": str(tmp_path / "home"), "EMBAUDIT_WAREHOUSE": str(warehouse)}


def shell(line: str, environment: dict[str, str], folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which ``embaudit`` is this one."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'embaudit() {{ {shlex.join(MAIN)} "$@"; }}; {line}'],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
        **options,  # type: ignore[call-overload]
    )


def is_quiet(result: subprocess.CompletedProcess[str]) -> None:
    assert "Traceback" not in result.stderr, result.stderr
    assert "Exception ignored" not in result.stderr, result.stderr


QUERY = "embaudit query 'SELECT range AS n FROM range(20000)' --format csv"


@pytest.mark.parametrize(
    ("line", "code"),
    mostly_slow(
        [
            (f"{QUERY} | head -1", 0),
            ("embaudit --help >/dev/full", 2),
            *(
                pytest.param(line, code, marks=pytest.mark.slow)
                for line, code in (
                    ("embaudit show | head -1", 0),
                    ("embaudit show nothing 2>&1 | true", 2),
                    ("embaudit gate latest --policy strict.toml | true", 1),
                    ("embaudit show <&- >&- 2>&-", 0),
                    ("embaudit show >/dev/full", 2),
                    # What is said about the work may be lost.
                    ("embaudit show nothing 2>/dev/full", 2),
                    ("embaudit show --full | true", 0),
                    ("embaudit list checkpoints | true", 0),
                    ("embaudit --help | true", 0),
                    ("embaudit audti 2>&1 | true", 2),
                    ("embaudit gate latest --policy strict.toml --json | head -1", 1),
                    ("embaudit show >&-", 0),
                    ("embaudit show 2>&-", 0),
                    ("embaudit show <&-", 0),
                    ("embaudit show nothing >&- 2>&-", 2),
                    ("embaudit gate latest --policy strict.toml >&- 2>&- <&-", 1),
                    (f"{QUERY} >/dev/full", 2),
                    ("embaudit gate latest --policy strict.toml >/dev/full", 2),
                    ("embaudit show 2>/dev/full", 0),
                )
            ),
        ],
        1,
    ),
)
def test_streams(line: str, code: int, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "strict.toml").write_text('name = "strict"\n[require]\nprofiles = ["paper"]\n')
    result = shell(line, environment, tmp_path)
    assert result.returncode == code, result.stderr
    is_quiet(result)
    if "/dev/full" in line and code == 2 and "2>" not in line:
        assert "The output cannot be written" in result.stderr


@pytest.mark.parametrize(
    ("words", "encoding"),
    [
        (("audit", "./ம"), "utf-16"),
        *(
            pytest.param(words, encoding, marks=pytest.mark.slow)
            for words, encoding in (
                (("show", "--full"), "ascii"),
                (("show", "--full"), "cp1252"),
                (("show", "--full"), "utf-16"),
                (("audit", "./ம"), "ascii"),
                (("audit", "./ம"), "cp1252"),
            )
        ),
    ],
)
def test_a_terminal_that_cannot_show_a_character(
    words: tuple[str, ...], encoding: str, environment: dict[str, str], tmp_path: Path
) -> None:
    result = subprocess.run(
        [*MAIN, *words],
        env={**environment, "PYTHONIOENCODING": encoding},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    printed = (result.stdout + result.stderr).decode(encoding, "replace")
    assert result.returncode == (2 if "ம" in words[-1] else 0), printed
    assert "Traceback" not in printed
    assert "ம" in printed or "\\u0bae" in printed or "0bae" in printed


def test_json_stays_json_where_the_terminal_has_no_such_characters(environment: dict[str, str], tmp_path: Path) -> None:
    line = "PYTHONIOENCODING=ascii embaudit query \"SELECT 'ம-é-𝒳' AS name\" --format json"
    assert json.loads(shell(line, environment, tmp_path).stdout) == [{"name": "ம-é-𝒳"}]


def test_a_module_that_can_be_run(environment: dict[str, str], tmp_path: Path) -> None:
    assert "Start with: embaudit check" in shell("embaudit --help", environment, tmp_path).stdout


def test_a_bug_has_a_code_of_its_own_and_its_traceback(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import sys, embaudit.cli.main as m\n"
        "m.cli.commands['list'].load = lambda: 1 / 0\n"
        "sys.argv = ['embaudit', 'list']; m.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert "ZeroDivisionError" in result.stderr
    assert "report it" in result.stderr


def test_a_current_folder_that_is_gone(environment: dict[str, str], tmp_path: Path) -> None:
    environment["EMBAUDIT_HOME"] = ".embaudit"
    del environment["EMBAUDIT_WAREHOUSE"]
    gone = tmp_path / "gone"
    gone.mkdir()
    result = shell('rmdir "$PWD"; embaudit show', environment, gone)
    assert result.returncode == 2, result.stderr
    is_quiet(result)
    assert "current folder no longer exists" in result.stderr


@pytest.fixture(scope="session")
def as_nobody() -> list[str]:
    """Words that start a command as a user without an account, who may write no more than others may."""
    words = ["unshare", "--user", f"--map-user={NOBODY}"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs user namespaces to be another user: {error}")
    return words


@pytest.mark.slow
@pytest.mark.parametrize("home", [None, "/", "/nowhere"])
def test_a_user_without_an_account(as_nobody: list[str], home: str | None, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], **({} if home is None else {"HOME": home})}
    result = subprocess.run(
        [*as_nobody, *MAIN, "ingest", "sts", "sample"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    is_quiet(result)
    assert [path.name for path in tmp_path.iterdir()] == [".embaudit"]


@pytest.mark.parametrize(
    "words",
    [
        ("ingest", "sts", "sample"),
        pytest.param(("audit", "packaged:all-MiniLM-L6-v2"), marks=pytest.mark.slow),
        pytest.param(("show",), marks=pytest.mark.slow),
    ],
)
def test_a_current_folder_that_cannot_be_written(as_nobody: list[str], words: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    result = subprocess.run(
        [*as_nobody, *MAIN, *words],
        env={"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert result.returncode == 2, result.stderr
    is_quiet(result)
    if words != ("show",):
        assert "EMBAUDIT_HOME" in result.stderr


@pytest.mark.slow
def test_a_server_for_a_command_with_closed_streams(environment: dict[str, str], tmp_path: Path) -> None:
    result = shell("embaudit ingest sts sample <&- >&- 2>&-", environment, tmp_path)
    assert result.returncode == 0
    counted = shell("embaudit query 'SELECT count(*) AS n FROM corpus' --format json", environment, tmp_path)
    assert json.loads(counted.stdout)[0]["n"] >= 1


def test_an_interrupt_that_a_library_turns_into_an_error_of_its_own(environment: dict[str, str]) -> None:
    """As pydantic's serializer does, without a cause."""
    code = (
        "import os, signal, sys, embaudit.cli.main as m\n"
        "def load():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        signal.sigtimedwait([signal.SIGUSR1], 5)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
        "    raise ValueError('KeyboardInterrupt: ')\n"
        "m.cli.commands['list'].load = load\n"
        "sys.argv = ['embaudit', 'list']; m.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (130, "\nInterrupted.\n")


def test_ctrl_c_at_once_after_another(environment: dict[str, str], tmp_path: Path) -> None:
    """The second one ends the command even where the first is swallowed."""
    code = (
        "import os, signal, sys\n"
        "from embaudit.cli.process import prepare_process\n"
        "prepare_process()\n"
        "for _ in range(2):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        signal.sigtimedwait([signal.SIGUSR1], 5)\n"
        "    except KeyboardInterrupt:\n"
        "        print('swallowed')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (130, "swallowed\n")


FORGETS = {
    "deleted": "class Object:\n    def __del__(self):\n        press()\nObject()",
    "weakly referenced": "class Object: pass\none = Object()\nreference = weakref.ref(one, lambda _: press())\ndel one",
    "collected": "gc.callbacks.append(lambda phase, _: (gc.callbacks.clear(), press()))\ngc.collect()",
    "called from C": "ctypes.CFUNCTYPE(None)(press)()",
}


# A machine on which the timer has run before the thread that started it goes on.
BUSY = """
import threading
start = threading.Timer.start
def start_late(timer):
    threading.Timer.start = start
    start(timer)
    timer.join()
    sum(range(10))
threading.Timer.start = start_late
"""


@pytest.mark.parametrize("machine", ["", BUSY], ids=["idle", "busy"])
@pytest.mark.parametrize("place", FORGETS)
def test_an_interrupt_is_not_lost_where_python_forgets_what_is_raised(
    place: str, machine: str, environment: dict[str, str]
) -> None:
    """What is raised there is printed, and the command would go on."""
    code = f"""
import ctypes, gc, signal, time, weakref
from embaudit.cli.process import prepare_process
prepare_process()
{machine}
def press():
    signal.raise_signal(signal.SIGINT)
    sum(range(10))
{FORGETS[place]}
print("went on", flush=True)
try:
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["went on", "interrupted"]
    assert done.stderr == ""
