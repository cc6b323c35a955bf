"""Free TCP ports for servers that tests start."""

import random
import socket

# Below Linux's range for outgoing connections: a port taken from there may be somebody's source
# port by the time a stopped server wants it back.
FIRST, LAST = 20_000, 32_000


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on now."""
    choice = random.SystemRandom()
    for _ in range(200):
        port = choice.randint(FIRST, LAST)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port between {FIRST} and {LAST} on 127.0.0.1")
