"""Recording of what the compute stream of an accelerator launches."""

from __future__ import annotations

from collections.abc import Callable

from planner.run.devices.accelerator.accelerator_streams import AcceleratorStream
from planner.run.devices.accelerator.driver import Driver


class AcceleratorGraphRecorder:
    """Records launches of a stream as graphs.

    Args:
        driver: the accelerator.
        compute: the stream.
    """

    def __init__(self, driver: Driver, compute: AcceleratorStream) -> None:
        self._driver, self._compute = driver, compute

    def record(self, issue: Callable[[], None]) -> Callable[[], None]:
        """Record what `issue` launches on the compute stream, without doing it; the streams are empty.

        Returns:
            What launches all of it; a launch for the compute stream.

        Raises:
            RuntimeError: something cannot be recorded.
        """
        return self._driver.graph(self._compute.stream, issue)

    def host_waits(self, issue: Callable[[], None]) -> bool:
        """Call `issue`, and return whether the host waited for the accelerator meanwhile."""
        return self._driver.host_waits(issue)
