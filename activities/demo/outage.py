"""One side's outage: its server process is killed in the middle of its work, stays dead for a while, and is started again.

Both sides meet the same outage at the same point of their own work, so that neither is hit when it has nothing to lose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from activities.demo.progress import running_steps, share_done
from activities.demo.settings import THREADS
from activities.demo.sides import Side
from activities.orders.models import Order

KILL_AT = 0.4
DEAD_FOR = 1.5

# A kill between two steps shows nothing: wait for a moment with most threads in a step, but not for ever.
_LOOKS, _LOOKS_FOR_MANY, _PAUSE = 20, 200, 0.01


class Phase(Enum):
    """Where in its outage a side is."""

    STARTING = auto()
    WORKING = auto()
    DEAD = auto()
    RESTARTING = auto()
    BACK = auto()


class Outage:
    """Leads one side through its phases, one ``tend()`` at a time. Instants are seconds since the epoch."""

    def __init__(
        self, side: Side, orders: Sequence[Order], *, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._side = side
        self._orders = orders
        self._clock, self._sleep = clock, sleep
        self._looks = 0
        self.phase = Phase.STARTING
        self.killed_pid = 0
        self.killed_at = 0.0
        self.back_at = 0.0
        self.share = 0.0
        self.running = 0

    def tend(self) -> Phase | None:
        """Do what is due, and return the phase that began by it, if one did.

        Raises:
            ServerFailed: when the server process ended by itself.
        """
        match self.phase:
            case Phase.STARTING | Phase.RESTARTING:
                return self._welcome()
            case Phase.WORKING:
                return self._kill_in_the_middle()
            case Phase.DEAD:
                return self._restart()
            case Phase.BACK:
                self._side.process.check()
                return None

    def _welcome(self) -> Phase | None:
        if not self._side.process.is_ready():
            return None
        self.back_at = self._clock()
        return self._enter(Phase.WORKING if self.phase is Phase.STARTING else Phase.BACK)

    def _kill_in_the_middle(self) -> Phase | None:
        self._side.process.check()
        for _ in range(_LOOKS):
            tracks = self._side.tracks(self._orders)
            self.share, self.running = share_done(tracks), running_steps(tracks)
            if self.share < KILL_AT:
                return None
            self._looks += 1
            if self.running >= (THREADS - 1 if self._looks < _LOOKS_FOR_MANY else 1):
                self.killed_pid = self._side.kill()
                self.killed_at = self._clock()
                return self._enter(Phase.DEAD)
            self._sleep(_PAUSE)
        return None

    def _restart(self) -> Phase | None:
        if self._clock() < self.killed_at + DEAD_FOR:
            return None
        self._side.process.start()
        return self._enter(Phase.RESTARTING)

    def _enter(self, phase: Phase) -> Phase:
        self.phase = phase
        return phase
