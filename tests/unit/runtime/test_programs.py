"""Random programs: the same commands live, in replay, after every restart, and in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.unit.runtime.harness import new_instance
from tests.unit.runtime.programs import drive, loaded, stored

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("block", range(10))
def test_every_random_program_replays_cleanly_and_goes_on_alike_after_restarts(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        run = drive(seed)
        run.replayed()
        assert stored(drive(seed, restarts=True)) == stored(run), f"seed {seed}: a restart changed what the code did"


@pytest.mark.parametrize("seed", range(1000, 1015))
def test_each_prefix_of_a_history_leads_to_the_same_next_commands(seed: int) -> None:
    run = drive(seed, events=25)
    history = run.history
    for index, event in enumerate(history):
        if event.body.IS_COMMAND:
            continue
        instance = new_instance(run.definition, seed, run_id=run.run_id)
        instance.replay(history[:index])
        issued = [command.event() for command in instance.apply(event.body, event.at)]
        following = []
        for later in history[index + 1 :]:
            if not later.body.IS_COMMAND:
                break
            following.append(later.body)
        # A side effect that is live again has another value; all else is the same.
        assert [(type(body), getattr(body, "number", 0)) for body in issued] == [
            (type(body), getattr(body, "number", 0)) for body in following
        ]


def test_the_programs_are_not_trivial() -> None:
    kinds: dict[str, int] = {}
    for seed in range(60):
        for event in drive(seed).history:
            kinds[event.kind] = kinds.get(event.kind, 0) + 1
    for kind in (
        "ActivityScheduled",
        "ActivityCancelRequested",
        "TimerStarted",
        "TimerCancelled",
        "TimerFired",
        "SignalWaitOpened",
        "SideEffectRecorded",
        "CancelRequested",
        "RunCompleted",
    ):
        assert kinds.get(kind, 0) >= 3, kinds


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_twenty_processes_with_other_hash_seeds_make_and_replay_the_same_histories() -> None:
    seeds = range(2000, 2040)
    here = {str(seed): stored(drive(seed)) for seed in seeds}
    text = json.dumps(here)

    def elsewhere(hash_seed: int) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-m", "tests.unit.runtime.programs"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        result: dict[str, object] = json.loads(done.stdout)
        return result

    with ThreadPoolExecutor(2) as pool:
        for hash_seed, made in enumerate(pool.map(elsewhere, range(20))):
            assert made == json.loads(text), f"PYTHONHASHSEED={hash_seed}"


def test_a_history_survives_its_stored_form() -> None:
    run = drive(7)
    assert loaded(json.loads(json.dumps(stored(run)))) == run.history
