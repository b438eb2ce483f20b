"""What each stage does with the steps that are tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress

from planner.program import Program
from planner.progress import Progress
from planner.run import CallChecks, check_separate_calls
from planner.selftest.absent_capture import unlike_calls
from planner.selftest.copy_rates import MakeDevice, copy_rates
from planner.selftest.eager_comparison import DelayedSteps, EagerResults, StepComparison, expected, make_steps
from planner.selftest.missing_kernels import missing_kernels
from planner.selftest.report import Figures, Outcome
from planner.selftest.sample_steps import PlannedStep, planned_step
from planner.selftest.sanitized import sanitized
from planner.selftest.watched_device import StreamWork
from planner.units import format_bytes, several

_STEPS, _STRESSED = 3, 2  # how many are made, and with delays
_SEEDS, _WAITS, _TRIES = 20, 8, 4
#: At least this share of the waits left out must show; some only keep an op off memory that no kernel of it touches.
_SHOWN = 0.75
_DELAYED = 0.7  # share of the time of the runs with delays; in the rest, waits are left out
_PROBE_BYTES = 512

Found = tuple[Outcome, str, Figures]


class Stages:
    """The stages, which share the steps and what eager PyTorch makes of them.

    Args:
        device: PyTorch's name of its type.
        make_device: makes a device of so many bytes in its arena and in its host slab.
        names: of the steps.
        seeds, waits: how many runs with delays a step has, and how many waits are left out in turn.
    """

    def __init__(
        self, device: str, make_device: MakeDevice, names: Sequence[str], *, seeds: int = _SEEDS, waits: int = _WAITS
    ) -> None:
        self._device, self._make_device, self._names = device, make_device, names
        self._seeds, self._waits = seeds, waits
        self._tested: list[PlannedStep] = []
        self._made: list[StepComparison] = []
        self._checks: list[CallChecks] = []

    def in_order(self) -> list[tuple[str, float, Callable[[Progress], Found]]]:
        """The name of each stage, its share of the time, and what runs it."""
        return [
            ("kernels", 10.0, self.kernels),
            ("calls", 5.0, self.calls),
            ("memory", 3.0, self.memory),
            ("copies", 3.0, self.copies),
            ("steps", 3.0, self.steps),
            ("races", 40.0, self.races),
            ("sanitizer", 3.0 if self._device == "cuda" else 0.1, self.sanitizer),
            ("graphs", 1.0, self.graphs),
            ("peak", 0.1, self.peak),
        ]

    def kernels(self, progress: Progress) -> Found:
        """Every operator of the steps has a kernel."""
        for number, name in enumerate(self._names):
            share = number / len(self._names)
            self._tested.append(planned_step(name, self._device, progress.part(share, share + 1 / len(self._names))))
        programs: list[Program] = [tested.graph.program for tested in self._tested]
        targets = {call.target for program in programs for call in program.calls}
        missing = missing_kernels(targets, self._device)
        if missing:
            return "failed", f"PyTorch has no kernel for {self._device} of {', '.join(missing)}", {}
        figures = {"operators": len(targets), "ops": sum(len(tested.graph.ops) for tested in self._tested)}
        steps = several(len(self._tested), "step")
        said = f"all {len(targets)} operators of {steps} have one for {self._device}"
        if self._device == "cuda":
            figures["unlike"] = sum(map(unlike_calls, self._tested))
            said += f"; without it, {figures['unlike']} of {figures['ops']} calls are captured as others"
        return "passed", said, figures

    def calls(self, progress: Progress) -> Found:
        """Every call alone has the bits of its operator, and writes nothing else."""
        for tested, part in self._parts(progress):
            device = self._make_device(tested.plan.peak_bytes, tested.plan.host_bytes)
            try:
                self._checks.append(
                    check_separate_calls(
                        tested.graph, tested.plan, device, tested.step.state(), tested.step.batch_leaves(), part
                    )
                )
            finally:
                device.close()
        faults = [fault for checks in self._checks for fault in checks.faults]
        calls = sum(checks.calls for checks in self._checks)
        figures = {"calls": calls, "tensors": sum(checks.compared for checks in self._checks), "faults": len(faults)}
        if faults:
            return "failed", f"{len(faults)} of {several(calls, 'call')} are wrong, first {faults[0]}", figures
        return "passed", f"{calls} calls, each alone, have eager's bits and write nothing else", figures

    def memory(self, _: Progress) -> Found:
        """No call holds more memory of its own than its plan counts for it."""
        over = [each for checks in self._checks for each in checks.over]
        figures = {"scratch_bytes": max(checks.scratch_bytes for checks in self._checks), "over": len(over)}
        if over:
            return "failed", f"{several(len(over), 'call')} took more memory than planned, first {over[0]}", figures
        most = format_bytes(figures["scratch_bytes"])
        return "passed", f"no call holds more of its own than planned, {most} at most", figures

    def copies(self, progress: Progress) -> Found:
        """Every byte that is copied arrives; how fast."""
        rates = copy_rates(self._make_device)
        progress(1.0)
        text = {name: f"{format_bytes(rate)}/s" for name, rate in rates.items()}
        return "passed", (
            f"{text['in_bytes_per_second']} in, {text['out_bytes_per_second']} out; at once "
            f"{text['in_both_bytes_per_second']} and {text['out_both_bytes_per_second']}"
        ), rates  # fmt: skip

    def steps(self, progress: Progress) -> Found:
        """Steps have eager PyTorch's bits."""
        for tested, part in self._parts(progress):
            self._made.append(make_steps(tested, expected(tested, _STEPS), self._make_device))
            part(1.0)
        different = [
            f"{name} of {tested.name}"
            for tested, made in zip(self._tested, self._made, strict=True)
            for name in made.different
        ]
        compared = sum(made.compared for made in self._made)
        figures = {"tensors": compared, "different": len(different)}
        if different:
            return (
                "failed",
                f"{len(different)} of {compared} tensors differ from eager's, first {different[0]}",
                figures,
            )
        steps = f"{_STEPS} steps of {several(len(self._tested), 'model')}"
        return "passed", f"{compared} tensors after {steps} have eager's bits", figures

    def races(self, progress: Progress) -> Found:
        """Steps with delays in the streams have eager PyTorch's bits, and lose them where a wait is left out."""
        runs = tried = shown = 0
        left_out: list[tuple[PlannedStep, EagerResults, dict[int, StreamWork]]] = []
        for tested, part in self._parts(progress.part(0.0, _DELAYED)):
            wanted = expected(tested, _STRESSED)
            with closing(DelayedSteps(tested, wanted, self._make_device)) as steps:
                for seed in range(self._seeds):
                    part(0.6 * seed / self._seeds)
                    made, runs = steps.make(seed), runs + 1
                    if made.different:
                        found = f"{made.different[0]} of {tested.name} differs from eager's where streams are delayed"
                        return "failed", f"{found}, with seed {seed}", {"seed": seed, "different": len(made.different)}
                late_works = sorted(set(steps.needed.values()))
                for number, late in enumerate(late_works):
                    part(0.6 + 0.4 * number / len(late_works))
                    made, runs = steps.make(0, late), runs + 1
                    if made.different:
                        found = f"{made.different[0]} of {tested.name} differs from eager's"
                        return "failed", f"{found} where work {late.number} of {late.stream} is late", {"runs": runs}
                left_out.append((tested, wanted, self._sample(steps.needed)))
        parts, usable = self._parts(progress.part(_DELAYED, 1.0)), True
        for (tested, wanted, sample), (_, part) in zip(left_out, parts, strict=True):
            showed, usable = self._leave_out(tested, wanted, sample, part)
            tried, shown = tried + len(showed), shown + sum(showed)
            if not usable:
                break
        figures = {"runs": runs, "waits": tried, "shown": shown}
        if shown < _SHOWN * tried:
            return "failed", (
                f"{tried - shown} of {tried} waits that were left out did not show, so the runs with delays say "
                "little; test again with fewer other programs running"
            ), figures  # fmt: skip
        found = f"{runs} runs with delays have eager's bits; of {tried} waits left out {shown} showed"
        if not usable:
            found += ", the last by an error after which this process cannot use the device"
        return "passed", found, figures

    def _leave_out(
        self, tested: PlannedStep, wanted: EagerResults, sample: Mapping[int, StreamWork], progress: Progress
    ) -> tuple[list[bool], bool]:
        """Leave out waits in turn; returns of each whether it showed, and whether the device is still usable."""
        showed: list[bool] = []
        steps, usable = DelayedSteps(tested, wanted, self._make_device), True
        try:
            for wait, late in sample.items():
                progress(len(showed) / len(sample))
                showed.append(steps.shows_without(wait, late, _TRIES))
                usable = self._usable()
                if not usable:  # an index that is read too early ends the use of a GPU by this process
                    break
        finally:
            with nullcontext() if usable else suppress(RuntimeError):
                steps.close()
        return showed, usable

    def _usable(self) -> bool:
        """Whether the device still does anything."""
        try:
            device = self._make_device(_PROBE_BYTES, _PROBE_BYTES)
            try:
                device.compute.fill(device.arena, 0)
                device.synchronize()
            finally:
                device.close()
        except RuntimeError:
            return False
        return True

    def sanitizer(self, _: Progress) -> Found:
        """PyTorch's sanitizer finds no access of one stream that another's is not ordered with."""
        if self._device != "cuda":
            return "skipped", f"the CUDA sanitizer looks at the streams of a GPU, and this is {self._device}", {}
        found = sanitized(self._device, self._names)
        steps = several(len(self._names), "model")
        return ("failed", found, {}) if found else ("passed", f"PyTorch's sanitizer finds no race in {steps}", {})

    def graphs(self, progress: Progress) -> Found:
        """Steps whose calls are launched together, as graphs of the device, have eager PyTorch's bits."""
        if not self._records_graphs():
            return "skipped", f"{self._device} records no graphs, so that there is none to compare", {}
        together: list[str] = []
        for tested, part in self._parts(progress):
            made = make_steps(tested, expected(tested, _STEPS), self._make_device, graphs=True)
            part(1.0)
            if made.different:
                found = f"{made.different[0]} of {tested.name} differs from eager's where calls are launched together"
                return "failed", f"{found}, {made.launched_together}", {"different": len(made.different)}
            together.append(made.launched_together)
        refused = [f"{tested.name}: {text}" for tested, text in zip(self._tested, together, strict=True)
                   if text.startswith("none")]  # fmt: skip
        if refused:
            return "failed", f"calls cannot be launched together: {refused[0]}", {"refused": len(refused)}
        return "passed", f"steps have eager's bits with {'; '.join(together)}", {}

    def _records_graphs(self) -> bool:
        device = self._make_device(_PROBE_BYTES, _PROBE_BYTES)
        try:
            return device.graph_recorder is not None
        finally:
            device.close()

    def peak(self, _: Progress) -> Found:
        """The arena is used up to the planned byte and no further."""
        used = {tested.name: made.peak_bytes for tested, made in zip(self._tested, self._made, strict=True)}
        planned = {tested.name: tested.plan.peak_bytes + tested.graph.outside_bytes for tested in self._tested}
        figures = {f"{name} {kind}_bytes": each[name] for name in used for kind, each in
                   (("used", used), ("planned", planned))}  # fmt: skip
        for name, size in used.items():
            if size > planned[name]:
                return "failed", f"{name} uses {size:,} bytes of the {planned[name]:,} that are planned", figures
        most = max(used, key=lambda name: used[name])
        return "passed", f"{format_bytes(used[most])} of {format_bytes(planned[most])} planned, by {most}", figures

    def _parts(self, progress: Progress) -> Iterator[tuple[PlannedStep, Progress]]:
        for number, tested in enumerate(self._tested):
            share = number / len(self._tested)
            yield tested, progress.part(share, share + 1 / len(self._tested))

    def _sample(self, needed: Mapping[int, StreamWork]) -> dict[int, StreamWork]:
        """Some waits, spread over a step."""
        numbers = list(needed)
        count = min(self._waits, len(numbers))
        return {number: needed[number] for number in (numbers[k * len(numbers) // count] for k in range(count))}
