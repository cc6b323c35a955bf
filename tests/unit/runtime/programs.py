"""Random workflow programs and random events for them, each made from a seed.

Run as a program it prints the history that a seed leads to, after replaying the one it is given.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from orchestrator import workflow
from orchestrator.errors import ActivityError
from orchestrator.model import events as ev
from tests.unit.runtime.harness import Run, act

SIGNALS = ("red", "green")


class Program:
    """A workflow that does what its seed says; the seed is its input."""

    def __init__(self) -> None:
        self.pokes = 0
        self.made = 0

    @workflow.run
    async def run(self, seed: int) -> list[str]:
        choices = random.Random(seed)
        trace: list[str] = []
        for _ in range(choices.randint(2, 5)):
            await self.step(choices.getrandbits(32), 3, trace)
        return trace

    @workflow.signal
    def poke(self) -> None:
        self.pokes += 1

    @workflow.signal
    async def ask(self, name: str) -> None:
        await act(name)
        self.pokes += 1

    async def step(self, seed: int, depth: int, trace: list[str]) -> str:
        choices = random.Random(seed)
        self.made += 1
        kinds = [self.activity, self.nap, self.signal, self.condition, self.value]
        if depth > 0:
            kinds += [self.together, self.group, self.first, self.limited, self.guarded, self.completed]
        kind = choices.choice(kinds)
        result = str(await kind(choices, depth - 1, trace))
        trace.append(result)
        return result

    async def activity(self, choices: random.Random, _depth: int, _trace: list[str]) -> Any:
        try:
            return await act(f"a{choices.randint(1, 9)}", choices.random())
        except ActivityError as error:
            return error.message

    async def nap(self, choices: random.Random, _depth: int, _trace: list[str]) -> str:
        await choices.choice([asyncio.sleep, workflow.sleep])(choices.choice([0, 0.5, 3, 60]))
        return workflow.now().isoformat()

    async def signal(self, choices: random.Random, _depth: int, _trace: list[str]) -> Any:
        try:
            return await workflow.wait_for_signal(choices.choice(SIGNALS), timeout=choices.choice([None, 1, 100]))
        except TimeoutError:
            return "no signal"

    async def condition(self, choices: random.Random, _depth: int, _trace: list[str]) -> str:
        wanted = self.pokes + choices.randint(0, 2)
        try:
            await workflow.wait_condition(lambda: self.pokes >= wanted, timeout=choices.choice([None, 2]))
        except TimeoutError:
            return "no poke"
        return f"poked {self.pokes}"

    async def value(self, choices: random.Random, _depth: int, _trace: list[str]) -> str:
        number = workflow.side_effect(lambda: random.getrandbits(16), name="dice")
        return f"{number} {workflow.uuid4()} {workflow.random().random()} {choices.random()}"

    def parts(self, choices: random.Random, depth: int, trace: list[str]) -> list[Any]:
        return [self.step(choices.getrandbits(32), depth, trace) for _ in range(choices.randint(1, 4))]

    async def together(self, choices: random.Random, depth: int, trace: list[str]) -> list[Any]:
        return list(await asyncio.gather(*self.parts(choices, depth, trace), return_exceptions=True))

    async def group(self, choices: random.Random, depth: int, trace: list[str]) -> str:
        async with asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(part) for part in self.parts(choices, depth, trace)]
        return ",".join(task.result() for task in made)

    async def first(self, choices: random.Random, depth: int, trace: list[str]) -> str:
        tasks = {asyncio.create_task(part) for part in self.parts(choices, depth, trace)}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
            await act("after cancel")
        return ",".join(task.result() for task in done)

    async def completed(self, choices: random.Random, depth: int, trace: list[str]) -> str:
        return ",".join([str(await part) for part in asyncio.as_completed(self.parts(choices, depth, trace))])

    async def limited(self, choices: random.Random, depth: int, trace: list[str]) -> str:
        try:
            async with asyncio.timeout(choices.choice([0, 1, 50])):
                return await self.step(choices.getrandbits(32), depth, trace)
        except TimeoutError:
            return "too late"

    async def guarded(self, choices: random.Random, depth: int, trace: list[str]) -> str:
        try:
            return await self.step(choices.getrandbits(32), depth, trace)
        except asyncio.CancelledError:
            await act("cleanup")
            raise
        finally:
            trace.append("finally")


def drive(seed: int, *, events: int = 40, restarts: bool = False) -> Run:
    """Drives the program of a seed with events of the same seed."""
    choices, moments = random.Random(seed + 1), random.Random(seed + 2)
    run = Run(Program, seed, signals=dict.fromkeys(SIGNALS, Any), run_id=f"run-{seed}")
    # Side effects draw from the global generator; a history must be the same each time it is made.
    random.seed(seed)
    if choices.random() < 0.2:
        run.signal("poke")
    run.start()
    for _ in range(events):
        if run.closed:
            break
        if restarts and moments.random() < 0.3:
            run.restart()
        one_event(run, choices)
    return run


def one_event(run: Run, choices: random.Random) -> None:
    activities, timers = list(run.instance.open_activities), run.instance.open_timers
    kinds = ["signal", "poke"] + ["activity"] * 6 * bool(activities) + ["timer"] * 3 * bool(timers)
    kind = choices.choice([*kinds, "cancel"] if choices.random() < 0.05 else kinds)
    if kind == "activity":
        number = choices.choice(activities)
        if choices.random() < 0.2:
            run.fail(number, message=f"failed {number}")
        else:
            run.complete(number, choices.randint(0, 99), after=choices.random())
    elif kind == "timer":
        run.fire(min(timers, key=lambda number: (timers[number], number)))
    elif kind == "signal":
        run.signal(choices.choice(SIGNALS), choices.randint(0, 9))
    elif kind == "poke":
        run.signal(*choices.choice([("poke",), ("ask", "asked")]))
    else:
        run.cancel()


def stored(run: Run) -> list[Any]:
    """Returns a history as plain JSON."""
    lines = []
    for event in run.history:
        kind, attrs, payload = ev.to_stored(event.body)
        lines.append([event.seq, event.at, kind, attrs, payload.decode() if payload else None])
    return lines


def loaded(lines: list[Any]) -> list[ev.Event]:
    """Returns a history from plain JSON."""
    return [
        ev.Event(
            seq=seq, at=at, body=ev.from_stored(ev.SCHEMA_VERSION, kind, attrs, payload.encode() if payload else None)
        )
        for seq, at, kind, attrs, payload in lines
    ]


def main() -> None:
    """Replays the histories on standard input and prints those that this process makes."""
    given: dict[str, list[Any]] = json.load(sys.stdin)
    made = {}
    for seed, lines in given.items():
        run = drive(int(seed))
        run.replayed(events=loaded(lines))
        made[seed] = stored(run)
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
