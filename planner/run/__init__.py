"""Running a plan on a device, to the bit and to the byte."""

from planner.rooms import make_callable
from planner.run.compare import same_bits
from planner.run.cpu import CpuDevice
from planner.run.device import Device, Stream
from planner.run.executor import Executor, StepRecord
from planner.run.footprint import TooLargeError
from planner.run.handle import Run, RunProgress
from planner.run.monitor import Snapshot
from planner.run.result import RunResult, Stopped
from planner.run.running import run

make_callable(__name__)

__all__ = [
    "CpuDevice", "Device", "Executor", "Run", "RunProgress", "RunResult", "Snapshot", "StepRecord", "Stopped",
    "Stream", "TooLargeError", "run", "same_bits",
]  # fmt: skip
