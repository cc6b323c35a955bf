"""A whole engine under a test's hand: real database, real engine, no broker, a clock that stands still.

Nothing happens by itself: a test starts and signals runs, then drives wake-ups, activity attempts and sweep
ticks in the order it wants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from orchestrator.config import Settings
from orchestrator.engine import attempts, runs, signals
from orchestrator.engine.attempts import Claim, Refusal, Ticket, WorkerIdentity
from orchestrator.engine.core import Engine
from orchestrator.engine.decision import decide
from orchestrator.engine.observers import ActivityNotice, Observer, RunNotice
from orchestrator.engine.runs import StartRequest, StartResult
from orchestrator.engine.signals import SignalRequest, SignalResult
from orchestrator.engine.sweep import SweepReport, sweep
from orchestrator.engine.targets import Target
from orchestrator.model.events import Event
from orchestrator.model.failures import decode_failure, failure_from_exception
from orchestrator.model.options import IdReusePolicy
from orchestrator.model.payloads import CallSignature, PayloadConverter
from orchestrator.model.records import ActivityRecord, InboxRow, RunRecord, RunStatus, WorkerRecord
from orchestrator.runtime.registry import WorkflowRegistry
from orchestrator.store import activities, history, workers
from orchestrator.store import runs as run_rows
from orchestrator.store.database import Database
from orchestrator.transport.memory import MemoryTransport
from orchestrator.transport.messages import RunActivity
from orchestrator.types import ManualClock, to_micros

ME = WorkerIdentity(worker_id="worker-1", pid=100, pid_started=1)
NS = "default"


@dataclass
class Recorder(Observer):
    """Keeps every notice it is told."""

    notices: list[tuple[str, RunNotice | ActivityNotice]] = field(default_factory=list)

    def run_started(self, notice: RunNotice) -> None:
        self.notices.append(("run_started", notice))

    def run_closed(self, notice: RunNotice) -> None:
        self.notices.append(("run_closed", notice))

    def run_blocked(self, notice: RunNotice) -> None:
        self.notices.append(("run_blocked", notice))

    def activity_failed(self, notice: ActivityNotice) -> None:
        self.notices.append(("activity_failed", notice))

    def names(self) -> list[str]:
        return [name for name, _ in self.notices]


class World:
    """One engine and its surroundings.

    Args:
        url: The database.
        registry: The workflow types it knows; default: all that the process has defined.
        **settings: Settings other than the defaults.
    """

    def __init__(self, url: str, registry: WorkflowRegistry, **settings: Any) -> None:
        self.clock = ManualClock()
        self.transport = MemoryTransport()
        self.observer = Recorder()
        self.functions: dict[str, Callable[..., Any]] = {}
        self.calls: list[tuple[str, list[Any]]] = []
        self.db = Database.open(url, clock=self.clock, pool_size=settings.get("pool_size", 5))
        self.converter = PayloadConverter()
        self.engine = Engine(
            db=self.db,
            transport=self.transport,
            registry=registry,
            converter=self.converter,
            settings=Settings(database_url=url, **settings),
            observers=[self.observer],
            sleep=lambda seconds: self.clock.advance_to(self.clock.now() + int(seconds * 1_000_000)),
            monotonic=lambda: self.clock.now() / 1_000_000,
        )
        self.alive()

    def alive(self, identity: WorkerIdentity = ME, *, pids: tuple[tuple[int, int], ...] | None = None) -> None:
        """Writes a sign of life of a worker."""
        record = WorkerRecord(
            worker_id=identity.worker_id,
            hostname="test",
            namespace=NS,
            queues=("celery",),
            pids=((identity.pid, identity.pid_started),) if pids is None else pids,
            tasks=(),
            workflows=(),
            build_id="",
            seen_clock=0,
            seen_at=self.clock.now(),
            started_at=self.clock.now(),
        )
        with self.db.write() as conn:
            workers.upsert(conn, record)

    # --- what callers do ------------------------------------------------------------------------

    def start(self, workflow: str, *args: Any, id: str = "w", **options: Any) -> StartResult:
        payload = self.converter.encode_args(args, [Any] * len(args), names=[f"arg{i}" for i in range(len(args))])
        policy = IdReusePolicy(options.pop("id_reuse_policy", "use_existing"))
        request = StartRequest(
            namespace=options.pop("namespace", NS),
            workflow_id=id,
            workflow_type=workflow,
            queue="celery",
            input=payload,
            id_reuse_policy=policy,
            **options,
        )
        return runs.start(self.engine, request)

    def target(self, id: str = "w", run_id: str | None = None) -> Target:
        return Target(namespace=NS, workflow_id=id, run_id=run_id)

    def signal(self, name: str, *args: Any, id: str = "w", signal_id: str | None = None) -> SignalResult:
        payload = self.converter.encode_args(args, [Any] * len(args), names=[f"arg{i}" for i in range(len(args))])
        request = SignalRequest(
            target=self.target(id), name=name, signal_id=signal_id or self.engine.ids(), payload=payload
        )
        return signals.send(self.engine, request)

    def cancel(self, id: str = "w", reason: str = "asked") -> str:
        return runs.cancel(self.engine, self.target(id), reason)

    def terminate(self, id: str = "w", reason: str = "asked") -> str:
        return runs.terminate(self.engine, self.target(id), reason)

    # --- what workers do ------------------------------------------------------------------------

    def decisions(self) -> None:
        """Handles every waiting wake-up, and those that come of it; activities stay where they are."""
        while (message := self.transport.pop(decisions_only=True)) is not None:
            decide(self.engine, message.run_id)

    def work(self, limit: int = 10_000) -> None:
        """Handles every message, activities included, until none is left."""
        for _ in range(limit):
            message = self.transport.pop()
            if message is None:
                return
            if isinstance(message, RunActivity):
                self.attempt(message)
            else:
                decide(self.engine, message.run_id)
        raise AssertionError("messages never run out")

    def next_attempt(self) -> RunActivity:
        """Takes the oldest activity message, after handling all wake-ups."""
        self.decisions()
        message = self.transport.pop()
        assert isinstance(message, RunActivity), message
        return message

    def claim(self, message: RunActivity, worker: WorkerIdentity = ME, **ticket: Any) -> Claim | Refusal:
        return attempts.claim(
            self.engine,
            Ticket(
                run_id=message.run_id,
                number=message.number,
                attempt=message.attempt,
                nonce=message.nonce,
                published_at=message.published_at,
                **ticket,
            ),
            worker,
        )

    def claimed(self, message: RunActivity | None = None, worker: WorkerIdentity = ME) -> Claim:
        claim = self.claim(message or self.next_attempt(), worker)
        assert isinstance(claim, Claim), claim
        return claim

    def attempt(self, message: RunActivity) -> None:
        """Claims and runs one attempt of a registered function."""
        claim = self.claim(message)
        if isinstance(claim, Refusal):
            return
        args, kwargs = self.converter.decode_call(claim.input, CallSignature.untyped())
        self.calls.append((claim.name, args))
        try:
            result = self.functions[claim.name](*args, **kwargs)
        except Exception as error:
            attempts.fail(self.engine, claim, failure_from_exception(error))
        else:
            attempts.complete(self.engine, claim, self.encode(result))

    def tick(self, delta: timedelta = timedelta(seconds=1), *, look_ahead: bool = False) -> SweepReport | None:
        """Moves the clock and runs one tick of the sweep; the worker stays alive."""
        self.clock.advance_to(self.clock.now() + to_micros(delta))
        self.alive()
        return sweep(self.engine, look_ahead=look_ahead)

    # --- what can be seen -----------------------------------------------------------------------

    def encode(self, value: Any) -> bytes:
        return self.converter.encode(value).data

    def run(self, id: str = "w") -> RunRecord:
        with self.db.read() as conn:
            record = run_rows.find_latest(conn, NS, id)
        assert record is not None
        return record

    def status(self, id: str = "w") -> RunStatus:
        return self.run(id).status

    def result(self, id: str = "w") -> Any:
        record = self.run(id)
        assert record.result is not None, (record.status, self.failure(id))
        return self.converter.decode(record.result)

    def failure(self, id: str = "w") -> str:
        failure = self.run(id).failure
        return "" if failure is None else f"{(f := decode_failure(self.converter, failure)).type}: {f.message}"

    def events(self, id: str = "w") -> list[Event]:
        with self.db.read() as conn:
            return history.read(conn, self.run(id).run_id)

    def kinds(self, id: str = "w") -> list[str]:
        return [event.kind for event in self.events(id)]

    def activity(self, number: int, id: str = "w") -> ActivityRecord:
        with self.db.read() as conn:
            row = activities.get(conn, self.run(id).run_id, number)
        assert row is not None
        return row

    def inbox(self, id: str = "w") -> list[InboxRow]:
        with self.db.lock_run(self.run(id).run_id) as lock:
            assert lock is not None
            return lock.inbox(10_000)
