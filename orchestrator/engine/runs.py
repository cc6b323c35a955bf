"""Starting, cancelling and terminating runs.

Starting is idempotent on the workflow id (DESIGN §1): the unique index over open runs is the referee, and
a start that loses the race reads the winner in a new statement. Cancel and terminate are messages to the
run: only a decision writes its history (P1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.engine.core import PYTHON_VERSION, Engine
from orchestrator.engine.decision import decide
from orchestrator.engine.targets import Target, find_run, open_leaf
from orchestrator.engine.wakeups import wake, wake_for_row, wake_message
from orchestrator.errors import Unavailable, WorkflowAlreadyStarted, WorkflowClosed
from orchestrator.model.options import IdReusePolicy
from orchestrator.model.payloads import Payload
from orchestrator.model.records import Attention, InboxKind, RunRecord, RunStatus, SignalKey
from orchestrator.store import inbox, runs, signals
from orchestrator.store.database import Connection
from orchestrator.version import VERSION

START_TRIES = 5
"""Each try lost means that somebody else's start or close of this id committed in between."""


@dataclass(frozen=True, kw_only=True)
class StartRequest:
    """A start as its caller gave it."""

    namespace: str
    workflow_id: str
    workflow_type: str
    queue: str
    input: Payload
    request_id: str | None = None
    id_reuse_policy: IdReusePolicy = IdReusePolicy.USE_EXISTING
    memo: bytes | None = None
    declared_signals: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class StartResult:
    """The run that answers a start; ``created`` tells whether this call made it."""

    run: RunRecord
    created: bool


def start(engine: Engine, request: StartRequest) -> StartResult:
    """Starts a run, or returns the one that the id and the policy name.

    Raises:
        WorkflowAlreadyStarted: The id is taken and the policy forbids another run.
    """
    if request.id_reuse_policy is IdReusePolicy.TERMINATE_EXISTING:
        _terminate_open(engine, request)
    result = engine.db.run(lambda conn: insert(engine, conn, request), what="start")
    if result.created:
        engine.transport.publish([wake_message(result.run, result.run.created_at)])
    return result


def start_within(engine: Engine, conn: Connection, request: StartRequest) -> StartResult:
    """Starts a run in the caller's own transaction; errors as :func:`start`.

    The wake-up is the caller's, after its commit (:func:`wake_started`); else the next tick of the sweep wakes it.
    """
    result = insert(engine, conn, request)
    if result.created:
        runs.update(conn, result.run.run_id, {"next_send_at": result.run.created_at, "send_count": 0})
    return result


def wake_started(engine: Engine, results: Iterable[StartResult]) -> None:
    """Wakes runs that were started within a transaction which is committed now."""
    wake(engine, [result.run.run_id for result in results if result.created])


def insert(engine: Engine, conn: Connection, request: StartRequest) -> StartResult:
    """Inserts a run in an open transaction, to be woken by the caller after its commit."""
    for _ in range(START_TRIES):
        existing = _existing(conn, request)
        if existing is not None:
            return StartResult(run=existing, created=False)
        record = _new_record(engine, conn, request)
        if runs.insert(conn, record):
            return StartResult(run=record, created=True)
    raise Unavailable(f"Workflow id {request.workflow_id!r} is started and closed by others all the time; try again.")


def _existing(conn: Connection, request: StartRequest) -> RunRecord | None:
    if request.request_id is not None:
        run = runs.find_request(conn, request.namespace, request.workflow_id, request.request_id)
        if run is not None:
            return run
    run = runs.find_open(conn, request.namespace, request.workflow_id)
    if run is not None:
        if _same(run, request):
            return run
        raise _taken(run, "is open with another type or input")
    run = runs.find_latest(conn, request.namespace, request.workflow_id)
    return None if run is None else _by_policy(run, request)


def _by_policy(run: RunRecord, request: StartRequest) -> RunRecord | None:
    policy = request.id_reuse_policy
    if policy is IdReusePolicy.USE_EXISTING:
        if _same(run, request):
            return run
        raise _taken(run, "has closed with another type or input")
    if policy is IdReusePolicy.REJECT_DUPLICATE:
        raise _taken(run, f"exists already ({run.status})")
    if policy is IdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY and run.status is RunStatus.COMPLETED:
        raise _taken(run, "has completed, and allow_duplicate_failed_only was asked for")
    return None


def _same(run: RunRecord, request: StartRequest) -> bool:
    return (run.workflow_type, run.input_digest) == (request.workflow_type, request.input.digest)


def _taken(run: RunRecord, why: str) -> WorkflowAlreadyStarted:
    return WorkflowAlreadyStarted(
        f"Workflow id {run.workflow_id!r} is taken: run {run.run_id} of type {run.workflow_type!r} {why}. "
        "Use another id, or another id_reuse_policy.",
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        workflow_type=run.workflow_type,
    )


def _new_record(engine: Engine, conn: Connection, request: StartRequest) -> RunRecord:
    run_id, now = engine.ids(), engine.db.now(conn)
    return RunRecord(
        run_id=run_id,
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        workflow_type=request.workflow_type,
        queue=request.queue,
        lineage_id=run_id,
        status=RunStatus.PENDING,
        attention=Attention.NONE,
        input=request.input.data,
        input_digest=request.input.digest,
        last_seq=0,
        decision_token="",
        created_at=now,
        request_id=request.request_id,
        memo=request.memo,
        declared_signals=request.declared_signals,
        next_send_at=now + engine.settings.micros("resend_after"),
        send_count=1,
        published_at=now,
        build_id=engine.settings.build_id,
        python_version=PYTHON_VERSION,
        engine_version=VERSION,
    )


def cancel(engine: Engine, target: Target, reason: str) -> str:
    """Asks a run to cancel itself; returns the run id that was asked.

    Raises:
        WorkflowNotFound: There is no such workflow or run.
        WorkflowClosed: It has ended already.
    """
    return _tell(engine, target, InboxKind.CANCEL, reason)


def terminate(engine: Engine, target: Target, reason: str) -> str:
    """Ends a run without running its code; returns its run id. Errors as :func:`cancel`.

    The decision that ends it needs no workflow code, so it is made right here when the run is free.
    """
    run_id = _tell(engine, target, InboxKind.TERMINATE, reason)
    decide(engine, run_id)
    return run_id


def _tell(engine: Engine, target: Target, kind: InboxKind, reason: str) -> str:
    once = _Once(key=f"\x1f{kind.value}/{engine.ids()}", kind=kind, reason=reason)
    run_id, row_id = engine.db.run(lambda conn: _insert_once(engine, conn, target, once), what=kind.value)
    if row_id is None:
        wake(engine, [run_id])
    else:
        wake_for_row(engine, run_id, row_id)
    return run_id


@dataclass(frozen=True, kw_only=True)
class _Once:
    """A cancel or terminate call. Its key is one that no signal can have: signal ids hold no control character."""

    key: str
    kind: InboxKind
    reason: str


def _insert_once(engine: Engine, conn: Connection, target: Target, once: _Once) -> tuple[str, int | None]:
    """Inserts the message unless an earlier try of the same call did, whose commit was never answered."""
    run = find_run(conn, target)
    signals.enter_gate_shared(conn, run.lineage_id)
    known = signals.key(conn, run.lineage_id, once.key)
    if known is not None:
        return known.run_id, None
    leaf = open_leaf(conn, run.lineage_id)
    if leaf is None:
        raise WorkflowClosed(f"The {target} has ended ({run.status}); there is nothing left to {once.kind.value}.")
    now = engine.db.now(conn)
    name = once.kind.value
    key = SignalKey(lineage_id=run.lineage_id, signal_id=once.key, name=name, digest="", run_id=leaf.run_id, at=now)
    signals.insert_key(conn, key)
    resend_at = now + engine.settings.micros("resend_after")
    row_id = inbox.insert(conn, leaf.run_id, once.kind, attrs={"reason": once.reason}, now=now, next_send_at=resend_at)
    return leaf.run_id, row_id


def _terminate_open(engine: Engine, request: StartRequest) -> None:
    def open_run() -> RunRecord | None:
        with engine.db.read() as conn:
            return runs.find_open(conn, request.namespace, request.workflow_id)

    run = open_run()
    if run is None or (request.request_id is not None and run.request_id == request.request_id):
        return
    target = Target(namespace=run.namespace, workflow_id=run.workflow_id, run_id=run.run_id)
    try:
        terminate(engine, target, "replaced by a start with terminate_existing")
    except WorkflowClosed:
        return
    _await_closed(engine, lambda: (now_open := open_run()) is None or now_open.run_id != run.run_id)


def _await_closed(engine: Engine, closed: Callable[[], bool]) -> None:
    deadline = engine.monotonic() + 2 * engine.settings.decision_timeout.total_seconds()
    while not closed():
        if engine.monotonic() > deadline:
            raise Unavailable("The run that holds this workflow id did not end in time; try the start again.")
        engine.sleep(0.01)
