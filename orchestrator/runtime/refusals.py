"""The half of asyncio's event loop that reaches outside, refused with the name of what to use instead.

A workflow is a function of its event sequence (protocol rule P3). Whatever a socket, a thread, a process or
a signal handler brings in is not in the history and would not come again in replay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from orchestrator.errors import InsideWorkflow

_ACTIVITY = "do this in an activity and await the activity"
_TASK = "use asyncio.create_task or asyncio.TaskGroup for work inside the workflow, and an activity for work outside"
_NO_LOOP = "the workflow's loop is run by the library; await what you need instead"
_SIGNAL = "send the workflow a signal with handle.signal(...) instead"

SUBSTITUTES: dict[str, str] = {
    **dict.fromkeys(
        (
            "getaddrinfo",
            "getnameinfo",
            "create_connection",
            "create_server",
            "create_unix_connection",
            "create_unix_server",
            "connect_accepted_socket",
            "create_datagram_endpoint",
            "sendfile",
            "start_tls",
            "connect_read_pipe",
            "connect_write_pipe",
            "subprocess_shell",
            "subprocess_exec",
            "add_reader",
            "remove_reader",
            "add_writer",
            "remove_writer",
            "sock_recv",
            "sock_recv_into",
            "sock_recvfrom",
            "sock_recvfrom_into",
            "sock_sendall",
            "sock_sendto",
            "sock_connect",
            "sock_accept",
            "sock_sendfile",
        ),
        _ACTIVITY,
    ),
    **dict.fromkeys(("run_in_executor", "set_default_executor"), _TASK),
    **dict.fromkeys(
        (
            "run_forever",
            "run_until_complete",
            "stop",
            "close",
            "shutdown_asyncgens",
            "shutdown_default_executor",
            "set_task_factory",
            "set_exception_handler",
            "set_debug",
        ),
        _NO_LOOP,
    ),
    **dict.fromkeys(("call_soon_threadsafe", "add_signal_handler", "remove_signal_handler"), _SIGNAL),
}
"""Methods of an event loop that workflow code may not call, and what to do instead."""


class RefusingLoop(asyncio.AbstractEventLoop):
    """An event loop that refuses every way to the outside."""


def _refusal(method: str, substitute: str) -> Callable[..., NoReturn]:
    def refuse(_self: RefusingLoop, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise InsideWorkflow(
            f"The event loop's {method}() reaches outside the workflow and would not be repeated alike in replay: "
            f"{substitute}."
        )

    refuse.__name__ = method
    return refuse


for _method, _substitute in SUBSTITUTES.items():
    setattr(RefusingLoop, _method, _refusal(_method, _substitute))
