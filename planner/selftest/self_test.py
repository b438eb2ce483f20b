"""The stages of a self test, in order, each of which needs what those before it have shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import torch

from planner.cancel import Cancelled
from planner.errors import StowageError, as_sentence, first_line
from planner.global_state_lock import global_state_lock
from planner.program import backend_of
from planner.progress import Progress, ShowProgress, reporting
from planner.run import DEVICES
from planner.selftest.environment import environment
from planner.selftest.repeatable_kernels import repeatable_kernels
from planner.selftest.report import Figures, Outcome, SelfTestReport, StageResult
from planner.selftest.sample_steps import STEPS
from planner.selftest.stage_checks import Stages


def selftest(device: str = "cpu", *, progress: ShowProgress = True) -> SelfTestReport:
    """Test whether plans leave eager PyTorch's numbers on a device of this computer, and stay inside their memory.

    Three small steps are captured, planned with copies in both directions, and made, call by call, whole, and with
    delays in every stream; then waits between the streams are left out, which must show. PyTorch's generator is as it
    was afterwards. It takes about a minute on a CPU.

    Args:
        device: `"cpu"`, or `"cuda"` for the current GPU.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.

    Returns:
        The report; the first stage that fails is its last.

    Raises:
        StowageError: there is no such device.
    """
    with reporting(progress) as report:
        return SelfTestReport(device, environment(), tuple(each_stage(device, report)))


def each_stage(device: str, report: Progress) -> Iterator[StageResult]:
    """The results of the stages, each as soon as there is one; the first that fails is the last.

    Args:
        device: PyTorch's name of its type.
        report: of the whole test.

    Raises:
        StowageError: there is no such device.
    """
    if device not in DEVICES:
        known = " or ".join(f'"{name}"' for name in DEVICES)
        raise StowageError(f'there is no device "{device}" to test; choose {known}')
    if missing := backend_of(device).missing():
        raise StowageError(f"there is nothing to test on {device} here, because {missing}")
    stages = Stages(device, DEVICES[device], list(STEPS))
    yield from results(stages.in_order(), report)


def results(stages: Sequence[tuple[str, float, Stage]], report: Progress) -> Iterator[StageResult]:
    """Run stages until one fails.

    Args:
        stages: the name of each, its share of the time, and what runs it.
        report: of all of them.
    """
    total, done = sum(share for _, share, _ in stages), 0.0
    for number, (name, share, run) in enumerate(stages, 1):
        part = report.part(done / total, (done + share) / total, f"stage {number}, {name}")
        begin = perf_counter()
        outcome: Outcome
        figures: Figures
        try:
            with (
                global_state_lock(), torch.random.fork_rng(devices=[]), repeatable_kernels(),
                torch.inference_mode(False), torch.enable_grad(),  # whatever the caller has switched off
            ):  # fmt: skip
                outcome, summary, figures = run(part)
        except Cancelled:
            raise
        except StowageError as error:
            outcome, summary, figures = "failed", as_sentence(error).rstrip("."), {}
        except Exception as error:  # whatever a device that is wrong raises
            outcome, summary, figures = "failed", f"{type(error).__name__}: {first_line(error)}", {}
        yield StageResult(number, name, outcome, summary, figures, perf_counter() - begin)
        if outcome == "failed":
            return
        done += share


#: Runs a stage: what became of it, a summary, and figures.
Stage = Callable[[Progress], tuple[Outcome, str, Figures]]
