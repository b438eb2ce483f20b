"""Execution of a plan on a device, bit-exact and within the planned bytes."""

from planner.callable_package import make_callable
from planner.run.checkpoint.load import load_checkpoint
from planner.run.checks.brought_state import brought_to
from planner.run.checks.eager_reference import same_bits
from planner.run.checks.separate_calls import CallChecks, check_separate_calls
from planner.run.checks.thread_settings import TorchContext
from planner.run.devices.cpu import CpuDevice
from planner.run.devices.device import RuntimeDevice, RuntimeStream
from planner.run.devices.registry import DEVICES
from planner.run.executor.executor import Executor, StepRecord
from planner.run.handle import Run
from planner.run.loop.gpu_memory import GpuMemory
from planner.run.loop.monitor import Snapshot
from planner.run.loop.result import RunResult, Stopped
from planner.run.loop.run_handle import RunProgress
from planner.run.prepare.footprint import TooLargeError
from planner.run.running import run
from planner.run.workers.processes.pool import WorkerFailedError
from planner.run.workers.run_workers import run_workers
from planner.run.workers.workers_log import WorkersStep
from planner.run.workers.workers_result import WorkersResult
from planner.run.workers.workers_run import WorkersRun

make_callable(__name__)

__all__ = [
    "DEVICES",
    "CallChecks",
    "CpuDevice",
    "Executor",
    "GpuMemory",
    "Run",
    "RunProgress",
    "RunResult",
    "RuntimeDevice",
    "RuntimeStream",
    "Snapshot",
    "StepRecord",
    "Stopped",
    "TooLargeError",
    "TorchContext",
    "WorkerFailedError",
    "WorkersResult",
    "WorkersRun",
    "WorkersStep",
    "brought_to",
    "check_separate_calls",
    "load_checkpoint",
    "run",
    "run_workers",
    "same_bits",
]  # fmt: skip
