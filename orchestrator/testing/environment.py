"""The workflow environment: the real engine in memory, without a broker, on a clock that skips."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, TypeVarTuple, overload

import celery

from orchestrator.activity.calls import ActivityCalls
from orchestrator.client.arguments import check_timeout
from orchestrator.client.client import WorkflowClient
from orchestrator.client.handle import WorkflowHandle
from orchestrator.client.twins import Pause, twin
from orchestrator.client.views import HistoryEvent
from orchestrator.engine.core import Engine
from orchestrator.engine.observers import Observer
from orchestrator.errors import EnvironmentStuck, Unavailable
from orchestrator.model.names import check_callable, check_duration, check_instance, check_instant, check_int
from orchestrator.runtime.context import refuse_inside_workflow
from orchestrator.store.memory import fresh_database
from orchestrator.testing.agenda import Agenda
from orchestrator.testing.building import make_engine
from orchestrator.testing.calls import ActivityCall
from orchestrator.testing.database import EnvironmentDatabase
from orchestrator.testing.driver import Driver
from orchestrator.testing.running import ActivityRunner
from orchestrator.testing.stubs import UNSET, make_stub
from orchestrator.testing.transport import FollowedTransport
from orchestrator.testing.waits import what_runs_wait_for
from orchestrator.types import SECOND, ManualClock, RunCoroutine, to_datetime

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W")
Ts = TypeVarTuple("Ts")

START = datetime(2030, 1, 1, tzinfo=UTC)
"""Where the clock of an environment begins, unless it is told otherwise."""

GRACE = 0.2
"""Real seconds that an async wait gives other coroutines to act, before it is said to wait for nothing."""


class WorkflowEnvironment(WorkflowClient):
    """A client whose workflows run in this process: real code, real engine, a database in memory, no broker.

    What is ready runs at once: a start, signal or cancel returns when everything it set off has come to rest.
    ``result`` and ``run`` move the clock when nothing is ready, to the next instant at which something is due,
    so ``workflow.sleep(timedelta(days=3))`` takes milliseconds. Activities run in the caller's thread (async
    ones on the loop that all of them share), unless they are stubbed.

    It has all of :class:`~orchestrator.client.WorkflowClient` (``start``, ``get_handle``, ``list``, and the
    handles), ``a``-prefixed twins for async tests included. Use it as a context manager, or call ``close``.

    Args:
        app: The Celery app whose ``orchestrator_…`` settings hold and whose plain tasks may be called; default no
            settings, and the tasks of the current app. Its database and broker are never touched.
        start_time: First instant of the clock, an aware datetime; default the first of January 2030.
        observers: Told what happens, as in production.
        step_limit: Most decisions, attempts and moves of time between two calls, so that a workflow that goes on
            for ever ends its test.

    Raises:
        InvalidArgument: An argument is refused; it is named.
        ConfigurationError: A setting of the app is wrong.
    """

    def __init__(
        self,
        app: celery.Celery | None = None,
        *,
        start_time: datetime = START,
        observers: Sequence[Observer] = (),
        step_limit: int = 10_000,
    ) -> None:
        if app is not None:
            check_instance(app, "app", celery.Celery, "your Celery app, or None")
        super().__init__(self._while_open, sleep=self._wait)
        self._closed = False
        self._began = check_instant(start_time, "start_time")
        self._clock, self._agenda, transport = ManualClock(self._began), Agenda(), FollowedTransport()
        database = fresh_database(self._clock, EnvironmentDatabase)
        self._built = make_engine(
            app, database, transport, observers=observers, sleep=self._wait, monotonic=self._monotonic
        )
        self._activities = ActivityRunner(
            self._built, agenda=self._agenda, app=celery.current_app if app is None else app, settle=self._settle
        )
        self._driver = Driver(
            self._built,
            clock=self._clock,
            transport=transport,
            agenda=self._agenda,
            run_activity=self._activities.run,
            step_limit=check_int(step_limit, "step_limit", minimum=1),
        )
        transport.follow = self._driver.follow
        database.committed = self._driver.tick
        self._thread = threading.get_ident()
        self._seen = threading.local()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the environment and forgets everything in it."""
        self._closed = True
        self._built.db.dispose()

    # --- running workflows ---------------------------------------------------------------------------

    @overload
    def run(
        self,
        run: Callable[[*Ts], Coroutine[Any, Any, R]],
        /,
        *args: *Ts,
        id: str | None = None,
        timeout: timedelta | float | None = None,
    ) -> R: ...
    @overload
    def run(
        self,
        run: Callable[[W, *Ts], RunCoroutine[R]],
        /,
        *args: *Ts,
        id: str | None = None,
        timeout: timedelta | float | None = None,
    ) -> R: ...
    @overload
    def run(self, run: str, /, *args: Any, id: str | None = None, timeout: timedelta | float | None = None) -> Any: ...
    def run(
        self,
        run: Any,
        /,
        *args: object,
        id: str | None = None,  # noqa: A002 - the field's standard name
        timeout: timedelta | float | None = None,
    ) -> Any:
        """Starts a workflow and returns its result, skipping time.

        Args:
            run: A function decorated with ``@workflow.defn``, a class's ``@workflow.run`` method, or a type's name.
            *args: The workflow's arguments.
            id: Workflow id; default a fresh one.
            timeout: Longest wait on the environment's clock; None waits as long as something can happen.

        Raises:
            WorkflowFailed: It failed, or ended in another way that is no result; see ``handle.result``.
            WorkflowBlocked: It is blocked by an error in its code.
            EnvironmentStuck: It waits for something that will not happen.
            UnknownActivity: It calls an activity that is neither defined nor stubbed.
            TimeoutError: It is not done in time.
        """
        check_timeout(timeout)
        return self.start(run, *args, id=id).result(timeout=timeout)

    arun = twin(run)

    def result(self, handle: WorkflowHandle[Any, R], timeout: timedelta | float | None = None) -> R:
        """Returns a workflow's result, skipping time; the same as ``handle.result``. Errors as :meth:`run`."""
        check_instance(handle, "handle", WorkflowHandle, "the handle of a workflow")
        return handle.result(timeout=timeout)

    aresult = twin(result)

    # --- time ----------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The present instant on the environment's clock, in UTC."""
        return to_datetime(self._clock.now())

    def advance(self, duration: timedelta | float) -> None:
        """Moves the clock by hand, running everything that falls due on the way.

        Called from an activity or a stub, the activity takes that long: its time-outs pass, and workflows go on.

        Args:
            duration: A timedelta, or seconds.

        Raises:
            InvalidArgument: It is negative, or no duration.
        """
        refuse_inside_workflow("env.advance")
        self._driver.advance(self._clock.now() + check_duration(duration, "duration"))

    aadvance = twin(advance)

    def sleep(self, seconds: float) -> None:
        """Lets time pass on the environment's clock: what ``time.sleep`` is replaced by in activities under test."""
        self.advance(seconds)

    def call_later(self, delay: timedelta | float, action: Callable[[], object]) -> None:
        """Notes what happens later, when the clock comes there: a person's answer, another system's message.

        Args:
            delay: From now, a timedelta or seconds.
            action: Called without arguments, for example ``lambda: handle.signal("approve", "ann")``. What it
                raises ends the test.

        Raises:
            InvalidArgument: An argument is refused; it is named.
        """
        delay_us = check_duration(delay, "delay")
        self._agenda.add(self._clock.now() + delay_us, check_callable(action, "action"))

    # --- activities ----------------------------------------------------------------------------------

    @overload
    def stub(
        self, activity: ActivityCalls[P, R], /, *, returns: R, takes: timedelta | float = timedelta(0)
    ) -> None: ...
    @overload
    def stub(
        self,
        activity: ActivityCalls[..., Any] | str,
        /,
        *,
        raises: Exception | type[Exception],
        takes: timedelta | float = timedelta(0),
    ) -> None: ...
    @overload
    def stub(
        self,
        activity: ActivityCalls[P, R],
        /,
        *,
        side_effect: Callable[P, R] | Callable[P, Coroutine[Any, Any, R]] | Iterable[R | Exception | type[Exception]],
        takes: timedelta | float = timedelta(0),
    ) -> None: ...
    @overload
    def stub(
        self,
        activity: str,
        /,
        *,
        returns: Any = ...,
        side_effect: Callable[..., Any] | Iterable[Any] = ...,
        takes: timedelta | float = timedelta(0),
    ) -> None: ...
    def stub(
        self,
        activity: Any,
        /,
        *,
        returns: Any = UNSET,
        raises: Any = UNSET,
        side_effect: Any = UNSET,
        takes: timedelta | float = timedelta(0),
    ) -> None:
        """Puts something in the place of an activity, for all its calls from now on.

        Give one of ``returns``, ``raises`` and ``side_effect``. Retries, time-outs and the storing of arguments and
        results are the real ones.

        Args:
            activity: An activity, a Celery task as ``activity.of(task)``, or a name, which need not be defined here.
            returns: Its result.
            raises: The error that every attempt raises. ``WorkerLost`` is an attempt whose process dies.
            side_effect: Called with the activity's arguments in its place; ``def`` or ``async def``, its assertions
                end the test. Or a list of results and exceptions, one for each attempt.
            takes: How long an attempt lasts on the environment's clock; its outcome counts unless it timed out.

        Raises:
            InvalidArgument: An argument is refused; it is named.
            PayloadError: ``returns`` does not fit the activity's type of result.
        """
        name, definition = self._activities.resolve(activity)
        self._activities.stubs[name] = make_stub(
            name,
            returns=returns,
            raises=raises,
            side_effect=side_effect,
            takes=takes,
            result_hint=Any if definition is None else definition.result_hint,
            converter=self._built.converter,
        )

    def calls(self, activity: ActivityCalls[..., Any] | str | None = None) -> list[ActivityCall]:
        """Returns the attempts of an activity so far, in order, stubbed or not; of all activities without one.

        Raises:
            InvalidArgument: It is no activity, or a name that nothing has here.
        """
        if activity is None:
            return list(self._activities.calls)
        name, _ = self._activities.resolve(activity, must_exist=True)
        return [call for call in self._activities.calls if call.activity == name]

    # --- the application -------------------------------------------------------------------------------

    @contextmanager
    def stand_in_for(self, client: WorkflowClient) -> Iterator[None]:
        """Lets another client, such as your app's Orchestrator, reach this environment inside the block.

        So code that calls ``durable.start(...)`` or ``durable.get_handle(...)`` itself (a view, an activity) is tested
        as it is, without database and broker. Handles made before the block reach it too. What it starts or signals
        with ``connection=`` takes effect at once; whether its transaction is rolled back later is not seen.

        Args:
            client: Your ``durable``.
        """
        check_instance(client, "client", WorkflowClient, "your Orchestrator")
        parts = ("_engine_provider", "_sleep", "_uncommitted")
        saved = {name: getattr(client, name) for name in parts}
        client.__dict__.update({name: getattr(self, name) for name in parts})
        try:
            yield
        finally:
            client.__dict__.update(saved)

    # --- looking ---------------------------------------------------------------------------------------

    def history(self, handle: WorkflowHandle[Any, Any]) -> list[HistoryEvent]:
        """Returns the whole history of a run, oldest event first."""
        check_instance(handle, "handle", WorkflowHandle, "the handle of a workflow")
        events: list[HistoryEvent] = []
        cursor: int | None = 0
        while cursor is not None:
            page = handle.history(after=cursor)
            events += page.events
            cursor = page.next_cursor
        return events

    # ---------------------------------------------------------------------------------------------------

    def _while_open(self) -> Engine:
        if self._closed:
            raise Unavailable("This WorkflowEnvironment is closed; make another, or ask for the result before its end.")
        return self._built

    def _monotonic(self) -> float:
        # Counted from the beginning, where a float still tells microseconds apart.
        return (self._clock.now() - self._began) / SECOND

    def _settle(self) -> None:
        self._driver.drain()

    def _wait(self, seconds: float) -> None:
        """What waits between two looks at a run: runs what is ready, else moves time."""
        if self._driver.drain():
            return
        left = seconds.left if isinstance(seconds, Pause) else None
        until = None if left is None else self._clock.now() + math.ceil(left * SECOND)
        if self._driver.skip(until) or until is not None or self._something_happens():
            return
        raise EnvironmentStuck(
            "Nothing more will happen: no activity, timer or message is under way. What is open:\n"
            f"{what_runs_wait_for(self)}\n"
            "Send what is waited for before you ask for the result, or note it with env.call_later(delay, action)."
        )

    def _something_happens(self) -> bool:
        """Tells whether anything was done since this thread looked last, or is done in the next moments."""
        # In an async test a coroutine waits in a thread of its own, while others have yet to act.
        end = time.monotonic() + (0 if threading.get_ident() == self._thread else GRACE)
        before = getattr(self._seen, "done", None)
        while (done := self._driver.done) == before and time.monotonic() < end:
            time.sleep(0.001)
        self._seen.done = done
        return done != before
