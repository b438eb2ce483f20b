"""Runs on a GPU that the CPU stands in for: run as a program, which prints what came of each as JSON."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn.functional import relu

from planner import run
from planner.capture import capture
from planner.machine import PRESETS
from planner.progress import Progress
from planner.run import DEVICES, same_bits
from planner.run.devices.accelerator.accelerator_streams import AcceleratorStream
from planner.run.devices.cuda.cuda_driver import CudaDriver
from planner.selftest.self_test import results
from planner.selftest.stage_checks import Stages
from planner.step import SGD, AdamW, Step, TrainStep
from planner.swap import plan_swaps
from planner.zoo import load
from tests.gpu.program import refusal
from tests.gpu.stand_in import Runtime, stand_in
from tests.run.steps import convolutions, lstm, mlp
from widgets.session import Session


class Dropping(nn.Module):
    """Dropout as a GPU has it, one kernel, in two branches, either of which may go first."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow, self.last = nn.Linear(32, 96), nn.Linear(32, 24), nn.Linear(24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.native_dropout(relu(self.wide(x)), 0.5, True)[0]
        narrow = torch.native_dropout(relu(self.narrow(x)), 0.25, True)[0]
        return self.last(narrow + wide.reshape(len(x), 4, 24).sum(1) + torch.randn_like(narrow))


def dropping() -> TrainStep:
    torch.manual_seed(0)
    return TrainStep(Dropping(), torch.randn(16, 32), loss=lambda model, x: model(x).square().mean(),
                     optimizer=SGD(lr=0.01, momentum=0.9))  # fmt: skip


def scaled() -> TrainStep:
    """A gradient scaler whose scale is too large in the first two steps."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4))
    scaler = torch.amp.GradScaler("cpu", 2.0**127, growth_interval=2)
    return TrainStep(model, torch.randn(64, 32), loss=lambda model, x: 4 * (model(x) - 1).square().mean(),
                     optimizer=AdamW(lr=0.01), scaler=scaler)  # fmt: skip


STEPS: dict[str, Callable[[], Step]] = {
    "mlp": mlp, "convolutions": convolutions, "lstm": lstm, "dropping": dropping,
    "scaled": scaled,
    "gpt": lambda: load("gpt:layers=2,hidden=48,heads=4,sequence=16,vocabulary=64,batch=4,optimizer=adamw"),
}  # fmt: skip


def checked(make: Callable[[], Step], runtime: Runtime) -> dict[str, Any]:
    """Steps in the background by a plan that swaps, each compared with eager PyTorch's."""
    step = make()
    graph = capture(step, device="cuda", progress=False)
    plan = plan_swaps(graph, PRESETS["h100"], "65%", method="swap", time_limit=0.3, progress=False)
    result = run(step, plan, device="cuda", steps=3, check=True, progress=False).wait()
    return {
        "device": result.device, "checked": result.checked, "mismatches": result.mismatches,
        "compared": result.compared, "pinned": len(runtime.pinned), "swaps": len(plan.swap_ins),
        "peak": result.peak_bytes <= result.budget_bytes, "together": result.launched_together,
    }  # fmt: skip


def looped(make: Callable[[], Step]) -> dict[str, Any]:
    """A loop over batches, and the same steps by eager PyTorch: the model holds the same numbers on the host."""
    ours, eager = make(), make()
    batches = [eager.materialize().batch] * 4
    before = torch.cuda.default_generators[0].get_state()
    handle = run(ours, device="cuda", budget="80%", steps=0, check=False, progress=False)
    losses = [float(loss) for loss in handle.steps(batches)]
    after = torch.cuda.default_generators[0].get_state()
    torch.set_rng_state(before)
    expected = [float(eager.eager(batch)) for batch in batches]
    theirs = eager.state()
    return {
        "losses": losses == expected, "drawn": bool(torch.equal(after, torch.get_rng_state())),
        "different": [key for key, value in ours.state().items() if not same_bits(value, theirs[key])],
        "devices": sorted({value.device.type for value in ours.state().values()}),
    }  # fmt: skip


def written_back_late() -> dict[str, Any]:
    """Steps that are not checked, and the same by eager PyTorch; then the same again with a step that fails."""
    whole = []
    for make in (convolutions, scaled):
        ours, eager = make(), make()
        run(ours, device="cuda", budget="80%", steps=5, check=False, progress=False).wait()
        for _ in range(5):
            eager.eager()
        theirs = eager.state()
        whole += [key for key, value in ours.state().items() if not same_bits(value, theirs[key])]
    untouched = scaled()
    skipped = run(untouched, device="cuda", budget="80%", steps=2, check=False, progress=False).wait().skipped
    assert untouched.torch_optimizer is not None
    failing, before = convolutions(), convolutions().state()
    count = iter(range(10**9))

    def fails(function: Any, args: Any, kwargs: Any, launch: Any) -> None:
        if next(count) >= 400:  # after the second step, in which graphs are recorded
            raise RuntimeError("out of memory")
        launch(function, args, kwargs)

    launch = AcceleratorStream.launch
    with patch.object(AcceleratorStream, "launch", lambda stream, *call: fails(*call, partial(launch, stream))):
        told = refusal(lambda: run(failing, device="cuda", budget="80%", steps=9, check=False, progress=False).wait())
    changed = [key for key, value in failing.state().items() if not same_bits(value, before[key])]
    return {
        "different": whole,
        "skipped": [skipped, len(untouched.torch_optimizer.state)],
        "told": told,
        "changed": changed,
    }


def in_the_workbench() -> list[Any]:
    """What a run started in the Workbench ran on, and how many tensors differed."""
    session = Session(load("mlp:layers=4,hidden=64,batch=32"), device="cuda", machine="auto", budget="80%")
    _ = session.plan
    session.start_run(2)
    assert session.run is not None
    result = session.run.wait()
    session.close()
    return [result.device, result.compared > 20, len(result.mismatches)]


def tested() -> list[tuple[str, str, str]]:
    """The stages of the self test that need no kernels and no streams of a GPU."""
    stages = Stages("cuda", DEVICES["cuda"], ["convolutions"])
    kinds = ("kernels", "calls", "memory", "copies", "steps", "graphs", "peak")
    with patch("planner.selftest.stage_checks.missing_kernels", lambda *_: []):
        found = [*results([stage for stage in stages.in_order() if stage[0] in kinds], Progress())]
    return [(one.name, one.outcome, one.summary) for one in found]


def driver() -> dict[str, Any]:
    """What the driver notices of a call that waits, and leaves after one that cannot be recorded."""
    ours = CudaDriver()
    stream = ours.stream()

    def fails() -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    failed = ""
    try:
        ours.graph(stream, fails)
    except RuntimeError as error:
        failed = str(error)
    return {
        "waits": ours.host_waits(lambda: warnings.warn("called a synchronizing CUDA operation", stacklevel=1)),
        "goes on": ours.host_waits(lambda: warnings.warn("something else", stacklevel=1)),
        "failed": failed,
        "still recording": torch._C._len_torch_dispatch_stack(),
    }  # fmt: skip


def not_pinned(runtime: Runtime) -> str:
    """What a run says whose host memory may not be pinned."""
    runtime.failing = 2
    try:
        return refusal(lambda: run(mlp(), device="cuda", budget="60%", check=False, progress=False).wait())
    finally:
        runtime.failing = 0


def main() -> None:
    runtime = stand_in()
    stream = torch.cuda.current_stream()
    torch.backends.cuda.enable_flash_sdp(False)  # which eager PyTorch would choose on the CPU
    print(json.dumps({
        "runs": {name: checked(make, runtime) for name, make in STEPS.items()},
        "loops": {name: looped(STEPS[name]) for name in ("convolutions", "dropping", "scaled")},
        "not pinned": not_pinned(runtime),
        "link": refusal(lambda: run(mlp(), device="cuda", link_bandwidth=1e9)),
        "stages": tested(),
        "workbench": in_the_workbench(),
        "late": written_back_late(),
        "driver": driver(),
        "left in the caller's stream": torch.cuda.current_stream() is stream,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
