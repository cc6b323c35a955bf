"""What can go wrong with the demo itself."""

from __future__ import annotations


class DemoFailed(RuntimeError):
    """Something that the demo needs did not happen; the message says what."""


class ServerFailed(DemoFailed):
    """A server process ended by itself; the message holds the end of its log."""
