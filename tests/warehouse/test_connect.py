"""Opening the warehouse: one writer, readers that can do no harm, and locks that are waited for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hostile_sql import CHANGING, HARMLESS, REACHING, SETTING
from own_processes import Start
from some_rows import mostly_slow

from embaudit.warehouse import connect
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.write import transaction
from embaudit.words.errors import StorageError, WarehouseError

HOLDER = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reader")
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold(process: Start) -> Start:
    """Another process that keeps the warehouse open until its standard input is closed."""

    def start(path: Path, mode: str = "writer") -> subprocess.Popen[str]:
        holder = process(HOLDER, path, mode)
        holder.says("holding")
        return holder

    return start


class Locks:
    """Every lock that an opening met; what happens at the first one is up to the test."""

    def __init__(self, real: Callable[[BaseException], bool]) -> None:
        self.real, self.met = real, 0
        self.at_the_first: Callable[[], object] = lambda: None

    def __call__(self, error: BaseException) -> bool:
        if not self.real(error):
            return False
        self.met += 1
        if self.met == 1:
            self.at_the_first()
        return True


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Locks:
    found = Locks(connect._is_locked)
    monkeypatch.setattr(connect, "_is_locked", found)
    return found


@pytest.fixture(scope="module")
def filled_once(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one row in ``audit_corpus``."""
    path = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("filled")))
    with open_writer(path, 0) as connection:
        connection.execute("INSERT INTO audit_corpus VALUES ('a1', 'sts', 's1')")
    return path


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled_once, tmp_path / "filled.duckdb"))


@pytest.mark.parametrize("mode", ["writer", "reader"])
def test_a_lock_is_waited_for(filled: Path, hold: Callable, locks: Locks, mode: str) -> None:
    locks.at_the_first = hold(filled, mode).communicate
    with open_writer(filled, 60) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(1,)]
    assert locks.met == 1


def test_a_lock_that_is_kept_ends_in_a_paragraph(filled: Path, hold: Callable, locks: Locks) -> None:
    hold(filled)
    says = r"Another process has had .* open for 1 s"
    with pytest.raises(WarehouseError, match=says) as caught, open_writer(filled, 0.6):
        pass
    assert locks.met > 1
    assert "all staged results are kept" in caught.value.kept
    assert "run the same command again" in caught.value.next_step
    # No waiting means one try; a reader says something else.
    locks.met = 0
    with pytest.raises(WarehouseError, match="Another process"), open_writer(filled, 0):
        pass
    assert locks.met == 1
    with pytest.raises(WarehouseError, match="open for writing") as caught, open_reader(filled, wait_seconds=0.3):
        pass
    assert "staged" not in str(caught.value)


def test_a_reader_and_a_writer_in_one_process_wait_for_each_other(filled: Path, locks: Locks) -> None:
    reading, released = threading.Event(), threading.Event()

    def read() -> None:
        with open_reader(filled):
            reading.set()
            released.wait(60)

    reader = threading.Thread(target=read)
    reader.start()
    assert reading.wait(60)
    locks.at_the_first = released.set
    with open_writer(filled, 60) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(1,)]
    assert locks.met >= 1
    reader.join()


def test_readers_read_side_by_side(filled: Path, hold: Callable) -> None:
    hold(filled, "reader")
    with open_reader(filled, wait_seconds=0) as connection:
        assert connection.execute("SELECT name FROM audit_corpus").fetchall() == [("sts",)]


def test_readers_of_one_process_share_the_file_and_may_both_change_nothing(filled: Path) -> None:
    """A flow's steps run in threads, and DuckDB opens a file once for a process."""
    with open_reader(filled) as first, open_reader(filled) as second:
        for connection in (first, second):
            assert connection.execute("SELECT name FROM audit_corpus").fetchall() == [("sts",)]
            with pytest.raises(duckdb.Error, match="locked"):
                connection.execute("SET memory_limit = '100GB'")


def test_a_reader_changes_nothing_and_reaches_nothing_else(filled: Path, tmp_path: Path) -> None:
    """The connection itself, whatever looks at a question before it does."""
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    words = {"secret": tmp_path / "secret.csv", "folder": tmp_path, "parquet": tmp_path / "none.parquet"}
    local_frame = [1, 2]
    before, files = filled.read_bytes(), sorted(tmp_path.rglob("*"))
    with open_reader(filled) as connection:
        for sql in {*REACHING, *CHANGING, *SETTING, "FROM local_frame"} - HARMLESS:
            with pytest.raises(duckdb.Error):
                connection.execute(sql.format(**words)).fetchall()
            assert sorted(tmp_path.rglob("*")) == files, sql
    assert filled.read_bytes() == before
    assert local_frame


@pytest.mark.parametrize("opened", [lambda path: open_writer(path, 0), lambda path: open_reader(path)])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, locks: Locks, opened: Callable) -> None:
    path = tmp_path / "notes.duckdb"
    path.write_text("these are notes, no database\n" * 1_000)
    before = path.read_bytes()
    with pytest.raises(WarehouseError, match="is not a DuckDB database") as caught, opened(path):
        pass
    assert "--warehouse" in caught.value.next_step
    assert path.read_bytes() == before
    assert locks.met == 0


@pytest.mark.parametrize("opened", [lambda path: open_writer(path, 5), lambda path: open_reader(path)])
def test_a_damaged_database_is_not_mistaken_for_a_locked_one(filled: Path, locks: Locks, opened: Callable) -> None:
    """DuckDB's message says "block", which has "lock" in it."""
    content = bytearray(filled.read_bytes())
    content[4_096 : 4_096 + 400] = bytes(400)
    content[8_192 : 8_192 + 400] = bytes(400)
    filled.write_bytes(content)
    with pytest.raises(WarehouseError) as caught, opened(filled):
        pass
    assert "Another process" not in str(caught.value)
    assert locks.met == 0


def test_a_folder_is_no_warehouse(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="is not a DuckDB database"), open_writer(tmp_path, 0):
        pass
    with pytest.raises(WarehouseError, match="is a folder"), open_reader(tmp_path):
        pass


def test_a_missing_warehouse_is_not_made_by_reading_it(no_warehouse: Path) -> None:
    with pytest.raises(WarehouseError, match="There is no warehouse at") as caught, open_reader(no_warehouse):
        pass
    assert "embaudit audit" in caught.value.next_step
    assert not no_warehouse.parent.exists()


def test_another_database_is_no_warehouse(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS a")
    with pytest.raises(WarehouseError, match="not an embaudit warehouse"), open_reader(path):
        pass


def test_a_place_that_cannot_be_written_is_a_storage_error() -> None:
    """/proc takes no files from anybody, root included."""
    if not Path("/proc/self").is_dir():
        pytest.skip("needs /proc")
    with pytest.raises((StorageError, WarehouseError)) as caught, open_writer(Path("/proc/embaudit/w.duckdb"), 0):
        pass
    assert "/proc/embaudit" in str(caught.value)


def test_a_read_only_file_system_is_a_storage_error(tmp_path: Path, filled: Path, small_disk: Callable) -> None:
    # Every table takes its pages, empty or not.
    disk = small_disk(4 + filled.stat().st_size // 1024**2)
    path = disk.folder / "warehouse.duckdb"
    path.write_bytes(filled.read_bytes())
    subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True)
    with open_reader(path) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(1,)]
    with pytest.raises(StorageError, match="Cannot write the warehouse") as caught, open_writer(path, 0):
        pass
    assert "permission" in caught.value.next_step


def test_a_transaction_is_all_or_nothing(filled: Path) -> None:
    with open_writer(filled, 0) as connection:
        with pytest.raises(KeyboardInterrupt), transaction(connection):  # noqa: PT012 - interrupted on its way
            connection.execute("DELETE FROM audit_corpus")
            raise KeyboardInterrupt
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(1,)]
        with transaction(connection):
            connection.execute("DELETE FROM audit_corpus")
    with open_reader(filled) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(0,)]


def test_a_failing_statement_reports_itself_and_not_the_rollback(filled: Path) -> None:
    twice = "INSERT INTO audit_corpus VALUES ('a1', 'sts', 'twice')"
    with (
        pytest.raises(WarehouseError, match="Duplicate key") as caught,
        open_writer(filled, 0) as connection,
        transaction(connection),
    ):
        connection.execute(twice)
    assert "Staged results are kept" in caught.value.kept


def test_what_a_killed_writer_committed_is_read_back(filled: Path, process: Callable) -> None:
    """Its rows are in the write-ahead log only; readers replay it without writing."""
    code = """
import os, sys, signal
from pathlib import Path
from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.write import transaction
with open_writer(Path(sys.argv[1]), 0) as connection:
    with transaction(connection):
        connection.execute("INSERT INTO audit_corpus VALUES ('a2', 'sts', 's1')")
    connection.execute("BEGIN; INSERT INTO audit_corpus VALUES ('a3', 'sts', 's1')")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert process(code, filled).wait() == -9
    assert Path(f"{filled}.wal").exists()
    with open_reader(filled) as connection:
        assert connection.execute("SELECT audit_id FROM audit_corpus ORDER BY 1").fetchall() == [("a1",), ("a2",)]
    assert os.access(filled, os.R_OK)


CREATOR = """
import sys
from pathlib import Path
from embaudit.warehouse import connect

def wait_if(moment):
    if moment == sys.argv[2]:
        print("here", flush=True)
        sys.stdin.read()

real_migrate, real_link = connect.migrate, Path.hardlink_to

def migrate(*arguments):
    found = real_migrate(*arguments)
    wait_if("created")
    return found

def hardlink_to(path, target):
    wait_if("closed")
    real_link(path, target)
    wait_if("linked")

connect.migrate, Path.hardlink_to = migrate, hardlink_to
with connect.open_writer(Path(sys.argv[1]), 0):
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["created", "closed", "linked"])
def test_a_new_warehouse_appears_whole(no_warehouse: Path, process: Start, moment: str) -> None:
    """Killed at any moment of its creation, nothing is there, or a warehouse that opens."""
    creator = process(CREATOR, no_warehouse, moment)
    creator.says("here")
    creator.kill_9()
    assert no_warehouse.exists() == (moment == "linked")
    with open_writer(no_warehouse, 5) as connection:
        assert connection.execute("SELECT count(*) FROM audit").fetchall() == [(0,)]


def test_a_failure_while_it_is_created_leaves_nothing(no_warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(connect, "migrate", fail)
        with pytest.raises(KeyboardInterrupt), open_writer(no_warehouse, 0):
            pass
    assert list(no_warehouse.parent.iterdir()) == []


@pytest.mark.parametrize("quicker", mostly_slow([True, False], 1))
def test_without_a_hard_link_it_appears_or_another_one_stays(
    no_warehouse: Path, filled: Path, monkeypatch: pytest.MonkeyPatch, quicker: bool
) -> None:
    """Another process was quicker, or the file system has no links."""

    def refuse(path: Path, _: Path) -> None:
        if quicker:
            shutil.copy(filled, path)
            raise FileExistsError
        raise PermissionError

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with open_writer(no_warehouse, 0) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(int(quicker),)]
    assert [file.name for file in no_warehouse.parent.iterdir()] == [no_warehouse.name]


@pytest.mark.slow
def test_three_processes_may_create_it_at_once(no_warehouse: Path, process: Start) -> None:
    code = """
import sys
from pathlib import Path
from embaudit.warehouse.connect import open_writer
with open_writer(Path(sys.argv[1]), 120) as connection:
    connection.execute("INSERT INTO audit_corpus VALUES (?, 'sts', 's1')", [sys.argv[2]])
"""
    for one in [process(code, no_warehouse, name) for name in ("a1", "a2", "a3")]:
        assert one.wait() == 0, one.stderr.read() if one.stderr else ""
    with open_reader(no_warehouse) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(3,)]
    assert [file.name for file in no_warehouse.parent.iterdir()] == [no_warehouse.name]


def test_an_interrupted_writer_rolls_back_and_lets_go(filled: Path, process: Start) -> None:
    code = """
import sys, threading
from pathlib import Path
from embaudit.warehouse.connect import open_writer
from embaudit.warehouse.write import transaction
try:
    with open_writer(Path(sys.argv[1]), 0) as connection, transaction(connection):
        connection.execute("DELETE FROM audit_corpus")
        # A moment later, when DuckDB is at work.
        threading.Timer(0.1, print, ["working"], {"flush": True}).start()
        connection.execute("SELECT count(*) FROM range(100000000000) r(i) WHERE i % 7 = 3")
except KeyboardInterrupt:
    sys.exit(130)
"""
    writer = process(code, filled)
    writer.says("working")
    writer.send_signal(signal.SIGINT)
    assert writer.wait(timeout=120) == 130
    with open_reader(filled, wait_seconds=0) as connection:
        assert connection.execute("SELECT count(*) FROM audit_corpus").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("given", "kept_to"), mostly_slow([("1", 1), ("3,1", 3), ("", None), ("0", None), ("many", None)], 1)
)
def test_the_number_of_threads_that_was_asked_for_is_kept_to(
    given: str, kept_to: int | None, empty_warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect() as usual:
        expected = kept_to or usual.execute("SELECT current_setting('threads')").fetchall()[0][0]
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    for opened in (
        open_reader(empty_warehouse),
        open_writer(empty_warehouse, 0),
        connect.open_source(empty_warehouse, 0),
        open_writer(tmp_path / "new.duckdb", 0),
    ):
        with opened as connection:
            assert connection.execute("SELECT current_setting('threads')").fetchall() == [(expected,)]
