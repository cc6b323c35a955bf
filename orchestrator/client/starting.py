"""Making a start of what its caller gave; everything is checked before anything is read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.client.arguments import check_optional_id, check_optional_name, encode
from orchestrator.engine.runs import StartRequest
from orchestrator.errors import InvalidArgument, UnknownWorkflowType
from orchestrator.model.names import check_choice, check_id, check_name
from orchestrator.model.options import IdReusePolicy
from orchestrator.runtime.definition import WorkflowDefinition

if TYPE_CHECKING:
    from orchestrator.engine.core import Engine


def find_definition(
    engine: Engine, run: Callable[..., Any] | str, queue: str | None
) -> tuple[str, WorkflowDefinition | None]:
    """Returns the name of a workflow type, and its code if this process has it.

    A type that is known elsewhere only can be started by name, with its queue.

    Raises:
        InvalidArgument: It is no workflow, or a name that is not known here and has no queue.
    """
    if not isinstance(run, str):
        definition = engine.registry.resolve(run)
        return definition.name, definition
    name = check_name(run, "run")
    try:
        return name, engine.registry.get(name)
    except UnknownWorkflowType:
        if queue is not None:
            return name, None
        known = sorted(engine.registry.names())
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(map(repr, known)) or 'none'}."
        raise InvalidArgument(
            "run",
            f"no workflow type {name!r} is known in this process; {hint} Import its module, or give the queue of the "
            "workers that know it: queue=, at the prompt --queue.",
        ) from None


def start_request(
    engine: Engine,
    run: Callable[..., Any] | str,
    args: Sequence[object],
    *,
    id: str | None,  # noqa: A002 - the argument's public name
    queue: str | None,
    id_reuse_policy: IdReusePolicy | str,
    request_id: str | None,
    memo: Any,
) -> tuple[StartRequest, WorkflowDefinition | None]:
    """Returns a checked start, and the workflow's code if this process has it.

    Raises:
        InvalidArgument: One of the arguments is refused; it is named.
    """
    workflow_id = engine.ids() if id is None else check_id(id, "id")
    explicit_queue = check_optional_name(queue, "queue")
    policy = check_choice(id_reuse_policy, "id_reuse_policy", IdReusePolicy)
    name, definition = find_definition(engine, run, explicit_queue)
    if definition is not None:
        explicit_queue = explicit_queue or definition.queue
    request = StartRequest(
        namespace=engine.settings.namespace,
        workflow_id=workflow_id,
        workflow_type=name,
        queue=engine.transport.decision_queue(explicit_queue),
        input=encode(engine, args, None if definition is None else definition.signature),
        request_id=check_optional_id(request_id, "request_id"),
        id_reuse_policy=policy,
        memo=None if memo is None else engine.converter.encode(memo, argument="memo").data,
        declared_signals=None if definition is None else definition.declared_signals(),
    )
    return request, definition
