"""A port of this computer for a server that a test starts."""

import random
import socket

#: Below those that systems give to whoever connects to somewhere: one of theirs may be taken before the server is up.
PORTS = range(15_000, 32_000)


def free_port() -> int:
    """One that nobody listens at."""
    draw = random.SystemRandom()  # several test processes look for one at the same time
    while True:
        port = draw.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
