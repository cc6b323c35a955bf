"""Retry arithmetic: exact, overflow-safe, and the same for a given attempt wherever it is computed."""

from __future__ import annotations

import hashlib
import math

from orchestrator.types import Attributes, Micros


def next_delay(policy: Attributes, attempt: int, key: str) -> Micros:
    """Returns the delay before the attempt that follows ``attempt``, in microseconds.

    ``initial × coefficient^(attempt−1)``, capped, then made shorter by up to ``jitter`` of itself. The
    jitter is drawn from a hash of ``key`` and the attempt, so that a repeated computation agrees.

    Args:
        policy: A :class:`~orchestrator.model.options.RetryPolicy` in stored form.
        attempt: Number of the attempt that failed, from 1.
        key: Identity of the activity, for example ``<run id>/<number>``.
    """
    initial, cap = int(policy["initial_us"]), int(policy["cap_us"])
    delay = _grown(initial, float(policy["coefficient"]), attempt - 1, cap)
    digest = hashlib.blake2b(f"{key}.{attempt}".encode(), digest_size=8).digest()
    share = int.from_bytes(digest, "big") / 2**64
    return delay - int(delay * float(policy["jitter"]) * share)


def _grown(initial: Micros, coefficient: float, power: int, cap: Micros) -> Micros:
    # Compared as logarithms: coefficient**power overflows long before a float comparison could cap it.
    if initial == 0 or cap == 0:
        return 0
    if power <= 0 or coefficient == 1.0:
        return min(initial, cap)
    if math.log(initial) + power * math.log(coefficient) >= math.log(cap):
        return cap
    return min(cap, int(initial * math.pow(coefficient, power)))


def resend_delay(count: int, first: Micros, cap: Micros) -> Micros:
    """Returns how long to wait for a claim after the ``count``-th publish: doubling up to a cap."""
    return min(cap, first << min(count, 32))
