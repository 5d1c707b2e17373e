from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from tritonpy_engine_rpc.processes import SETTLED_S, Backoff, describe_exit, open_parent_pipe


def test_the_first_restart_is_immediate():
    assert Backoff().after_death_s(0.0) == 0


def test_workers_that_die_early_restart_after_at_most_one_second():
    backoff = Backoff()
    assert [backoff.after_death_s(1.0) for _ in range(6)] == [0, 0.25, 0.5, 1, 1, 1]


def test_a_long_life_makes_the_next_restart_immediate_again():
    backoff = Backoff()
    for _ in range(5):
        backoff.after_death_s(0.0)
    assert backoff.after_death_s(SETTLED_S - 1) > 0
    assert backoff.after_death_s(SETTLED_S) == 0
    assert backoff.after_death_s(0.0) == 0.25


def test_failed_starts_are_retried_with_increasing_delays():
    backoff = Backoff()
    delays = [backoff.after_failed_start_s() for _ in range(40)]
    assert delays[:4] == [0.25, 0.5, 1, 2]
    assert delays == sorted(delays)
    assert delays[-1] == 30


def test_a_successful_start_resets_the_delay():
    backoff = Backoff()
    for _ in range(8):
        backoff.after_failed_start_s()
    backoff.after_death_s(1.0)
    assert backoff.after_failed_start_s() == 0.25


def test_each_worker_has_a_descriptor_of_its_own_of_one_pipe() -> None:
    one, other = open_parent_pipe(), open_parent_pipe()
    try:
        assert one != other
        assert os.fstat(one).st_ino == os.fstat(other).st_ino
        assert not select.select([one], [], [], 0)[0]  # open and without data
    finally:
        os.close(one)
        os.close(other)


def test_the_pipe_closes_only_at_the_end_of_the_process() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from tritonpy_engine_rpc.processes import open_parent_pipe\n"
        "end = open_parent_pipe()\n"
        "os.set_inheritable(end, True)\n"
        "watcher = subprocess.Popen([sys.executable, '-c', f'import os; os.read({end}, 1); print(\"cut\")'],"
        " pass_fds=[end], stdout=1)\n"
        "print(watcher.poll(), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["None", "cut"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, "it exited with an unknown status"),
        (0, "it exited with status 0"),
        (137, "it exited with status 137"),
        (-11, "it was killed by signal 11 (SIGSEGV)"),
        (-6, "it was killed by signal 6 (SIGABRT)"),
        (-9, "it was killed by signal 9 (SIGKILL), possibly because the system was out of memory"),
        (-250, "it was killed by signal 250"),
    ],
)
def test_a_status_is_described(status, text):
    assert describe_exit(status) == text
