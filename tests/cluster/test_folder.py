"""The sweep's folder: one driver at a time, and what a killed one left is ended."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deep20ray_cluster.errors import OutputError, RunLocked
from deep20ray_cluster.folder import SweepFolder, descendants, end_processes, hold, make_folder, open_folder

SLEEP = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.fixture
def sleeper() -> Iterator[psutil.Process]:
    process = subprocess.Popen(SLEEP, stdin=subprocess.PIPE)
    yield psutil.Process(process.pid)
    process.kill()
    process.communicate()


def leave(folder: SweepFolder, processes: object, epoch: int = 3) -> None:
    folder.lock.write_text(json.dumps({"epoch": epoch, "processes": processes}) + "\n")


def test_a_second_driver_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "sweep")
    with hold(folder), pytest.raises(RunLocked, match="another driver is at work"), hold(folder):
        pass
    with hold(folder):
        pass


def test_the_lock_goes_with_a_killed_holder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    script = (
        "import sys, pathlib\n"
        "from deep20ray_cluster.folder import SweepFolder, hold\n"
        "with hold(SweepFolder(pathlib.Path(sys.argv[1]))):\n"
        "    print('held', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(RunLocked), hold(folder):
        pass
    holder.kill()
    holder.communicate()
    with hold(folder) as held:
        assert held.epoch == 2


def test_what_a_killed_driver_left_is_ended_before_the_folder_is_given(tmp_path: Path, sleeper: psutil.Process) -> None:
    folder = make_folder(tmp_path)
    leave(folder, [[sleeper.pid, sleeper.create_time()]])
    with hold(folder) as held:
        assert not sleeper.is_running()
        assert held.epoch == 4


@pytest.mark.parametrize("later", [-1.0, 1.0])
def test_a_process_that_only_has_the_same_number_lives_on(tmp_path: Path, sleeper: psutil.Process, later: float) -> None:
    folder = make_folder(tmp_path)
    leave(folder, [[sleeper.pid, sleeper.create_time() + later]])
    with hold(folder):
        assert sleeper.is_running()


def test_what_is_gone_already_is_no_trouble(sleeper: psutil.Process) -> None:
    started = sleeper.create_time()
    sleeper.kill()
    sleeper.wait()
    assert end_processes([(sleeper.pid, started), (2**22 + 1, 1.0)]) == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"epoch": 1}', '{"epoch": 1, "processes": [1]}', "\x00\xff", "{}\n{}"])
def test_a_spoilt_lock_is_taken_all_the_same(tmp_path: Path, text: str) -> None:
    folder = make_folder(tmp_path)
    folder.lock.write_text(text)
    with hold(folder) as held:
        assert held.epoch >= 1


def test_processes_are_noted_whole_whatever_stood_there_before(tmp_path: Path, sleeper: psutil.Process) -> None:
    folder = make_folder(tmp_path)
    with hold(folder) as held:
        held.record([(number, 1.5) for number in range(50)])
        held.record(descendants())
        noted = json.loads(folder.lock.read_text())
        assert [sleeper.pid, sleeper.create_time()] in noted["processes"]
        # A kill between the write and the cut leaves the rest of a longer note behind the line.
        with folder.lock.open("a") as file:
            file.write("1.5], [9, 1.5]]}\n")
    with hold(folder) as held:
        assert held.epoch == 2


def test_a_folder_that_holds_a_sweep_is_not_taken_for_another(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    folder.plan.write_text("{}")
    with pytest.raises(OutputError, match=f"already holds a sweep; go on with `deep20ray resume {tmp_path}`"):
        make_folder(tmp_path)


def test_a_folder_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"can't be written \(Not a directory\); choose another"):
        make_folder(tmp_path / "file" / "out")
    with pytest.raises(OutputError, match=r"can't be written \(File exists\); choose another"):
        make_folder(tmp_path / "file")


def test_a_folder_without_a_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no sweep here"):
        open_folder(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(OutputError, match="no sweep here"):
        open_folder(tmp_path)


def test_a_driver_that_ended_by_an_error_leaves_nothing_to_be_ended(tmp_path: Path, sleeper: psutil.Process) -> None:
    folder = make_folder(tmp_path)
    with pytest.raises(ZeroDivisionError), hold(folder) as held:
        held.record(descendants())
        raise ZeroDivisionError
    with hold(folder):
        assert sleeper.is_running(), "a child of the program that uses the driver"
