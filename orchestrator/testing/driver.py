"""What runs the engine in a test: everything that is ready, and then time.

A driver does three things. ``drain`` runs what is ready: messages in the order they were published, then
what the agenda holds for this instant. ``skip`` moves the clock to the next instant at which something is
due; it is called only when nothing is ready, so time never passes work by. ``advance`` moves the clock by
hand, through everything that falls due on the way.

The engine is made for many workers, so several threads may drain at once (async tests do: each awaiting
coroutine has a thread behind it). Time is moved by one of them, and only while no other thread is at work.
An activity runs inside the drain that started it. What it calls itself (a signal, another result, an
advance) is part of that work, also on a thread that inherited its context, and is never waited for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from orchestrator.engine.core import Engine
from orchestrator.engine.decision import decide
from orchestrator.engine.sweep import sweep
from orchestrator.errors import EnvironmentStuck
from orchestrator.store import activities, sweeps, timers
from orchestrator.testing.agenda import Agenda
from orchestrator.testing.transport import FollowedTransport
from orchestrator.transport.messages import Message, RunActivity
from orchestrator.types import ManualClock, Micros

_SHORT = 0.001
"""Real seconds between two looks at what other threads do."""

_work: ContextVar[tuple[object, ...]] = ContextVar("orchestrator_testing_work", default=())
"""The drains that the running code is part of, outermost first."""


class Driver:
    """Runs an engine whose clock, transport and agenda are the test's own.

    Args:
        engine: The engine.
        clock: The clock of its database.
        transport: Its transport.
        agenda: What is noted for later.
        run_activity: Runs the attempt that a message offers.
        step_limit: Most messages and moves of time between two calls from outside.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        clock: ManualClock,
        transport: FollowedTransport,
        agenda: Agenda,
        run_activity: Callable[[RunActivity], None],
        step_limit: int,
    ) -> None:
        self.done = 0
        """How many things were run, and moves of time made, since the beginning."""
        self._engine = engine
        self._clock = clock
        self._transport = transport
        self._agenda = agenda
        self._run_activity = run_activity
        self._step_limit = step_limit
        self._steps = 0
        self._working: set[object] = set()
        self._mover = threading.RLock()
        self._ticked_at = clock.now()

    def follow(self) -> None:
        """Runs what was just published, unless this is part of a drain, which comes to it by itself."""
        if not self._working.isdisjoint(_work.get()):
            return
        self._steps = 0
        self.drain()

    def drain(self) -> int:
        """Runs everything that is ready, without moving time; returns how many things that were."""
        count = 0
        with self._at_work():
            while True:
                message = self._transport.pop()
                action = self._agenda.pop_due(self._clock.now()) if message is None else None
                if message is not None:
                    self._handle(message)
                elif action is not None:
                    action()
                else:
                    return count
                count += 1
                self._count_step()

    def skip(self, at_most: Micros | None = None) -> bool:
        """Moves the clock to the next instant at which something is due.

        Args:
            at_most: Where to stop; None goes as far as there is something.

        Returns:
            False when nothing is due by then; the clock then stands at ``at_most``.
        """
        with self._mover:
            if self._others_work():
                time.sleep(_SHORT)
                return True
            if self._transport.waiting() or self._is_due(self._agenda.next_due()):
                return True
            due = self._next_due()
            if due is None or (at_most is not None and due > at_most):
                if at_most is not None:
                    self._move_to(at_most)
                return False
            self._count_step()
            self._move_to(due)
            return True

    def tick(self) -> None:
        """Runs what stands in the database to be woken, without moving time."""
        with self._mover:
            self._move_to(self._clock.now())
        self.follow()

    def advance(self, until: Micros) -> None:
        """Moves the clock to an instant, running everything that falls due on the way."""
        self._steps = 0
        self.drain()
        while self._clock.now() < until:
            with self._mover:
                due = self._next_due()
                self._count_step()
                self._move_to(until if due is None else min(due, until))
            self.drain()

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        mark = object()
        self._working.add(mark)
        token = _work.set((*_work.get(), mark))
        try:
            yield
        finally:
            _work.reset(token)
            self._working.discard(mark)

    def _others_work(self) -> bool:
        return not self._working.issubset(_work.get())

    def _handle(self, message: Message) -> None:
        if isinstance(message, RunActivity):
            self._run_activity(message)
        else:
            decide(self._engine, message.run_id)

    def _move_to(self, instant: Micros) -> None:
        self._clock.advance_to(instant)
        now = self._clock.now()
        # The interval is what has passed, so that the sweep's own clock goes as far as this one jumps.
        with self._at_work():
            sweep(self._engine, interval_us=now - self._ticked_at, look_ahead=False)
        self._ticked_at = now

    def _is_due(self, instant: Micros | None) -> bool:
        return instant is not None and instant <= self._clock.now()

    def _next_due(self) -> Micros | None:
        with self._engine.db.read() as conn:
            beat = activities.next_heartbeat_check(conn)
            instants = (
                self._agenda.next_due(),
                timers.next_due(conn),
                activities.next_due(conn),
                None if beat is None else self._ticked_at + beat - sweeps.clock(conn),
            )
        return min((instant for instant in instants if instant is not None), default=None)

    def _count_step(self) -> None:
        self.done += 1
        self._steps += 1
        if self._steps > self._step_limit:
            raise EnvironmentStuck(
                f"{self._step_limit:,} decisions, attempts and moves of time went by and the test still waits: some "
                "workflow goes on for ever. Cancel it in the test, or raise step_limit of the WorkflowEnvironment."
            )
