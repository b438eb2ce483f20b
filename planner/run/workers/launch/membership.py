"""A rank's connection to the others, made anew for a run that goes on after it has been left."""

from __future__ import annotations

from collections.abc import Callable

from planner.run.workers.communication.tcp import Tcp
from planner.run.workers.launch.environment import launched
from planner.run.workers.launch.ranks import Ranks
from planner.run.workers.launch.rendezvous import meet


class Membership:
    """This process among the ranks of its launch.

    Attributes:
        launch: what the launcher says.
        tcp: to the other ranks, once this one has joined them.

    Raises:
        StowageError: the launcher's environment is incomplete.
    """

    def __init__(self) -> None:
        self.launch = launched()
        self.tcp: Tcp
        self._ranks: Ranks | None = None

    @property
    def ranks(self) -> Ranks:
        """All of them; this one has joined them."""
        assert self._ranks is not None
        return self._ranks

    def join(self, check_cancelled: Callable[[], object]) -> None:
        """Find the others, if this rank is not with them.

        Args:
            check_cancelled: called periodically, also from now on while this rank waits for others; may raise.

        Raises:
            StowageError: they cannot be found.
        """
        if self._ranks is None or self._ranks.left:
            found = meet(self.launch, check_cancelled)
            self._ranks = Ranks(self.launch.rank, self.launch.ranks, found.control, check_cancelled)
            self.tcp = Tcp(found.data, self._ranks.check)
        self._ranks.check_cancelled = check_cancelled

    def fail(self, why: str) -> None:
        """Tell the others that this rank has failed, and leave them."""
        if self._ranks is not None:
            self._ranks.fail(why)
            self.tcp.close()
