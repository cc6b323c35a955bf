"""Processes are told apart by pid and start time."""

import os
import subprocess
import sys

from orchestrator.worker import identity
from tests.support.waiting import wait_until


def test_a_living_process_has_a_start_time_that_stays():
    started = identity.process_started(os.getpid())
    assert started is not None
    assert identity.is_alive(os.getpid(), started)
    assert not identity.is_alive(os.getpid(), started + 1)


def test_a_process_that_has_ended_or_is_a_zombie_does_not_live():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = identity.process_started(child.pid)
    assert started is not None
    child.kill()
    wait_until(lambda: identity.process_started(child.pid) is None)  # still a zombie: nobody has waited for it
    child.wait()
    assert identity.process_started(child.pid) is None
    assert not identity.is_alive(child.pid, started)


def test_children_inherit_the_workers_id_and_have_their_own_pid():
    identity.renew()
    mine = identity.identity()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        theirs = identity.identity()
        os.write(write, f"{theirs.worker_id} {theirs.pid}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    worker, pid = os.read(read, 200).decode().split()
    assert worker == mine.worker_id
    assert int(pid) == child != mine.pid


def test_each_worker_start_has_an_id_of_its_own():
    assert identity.renew() != identity.renew()
