"""A user's training loop made twice from the same seeds: by hand in eager PyTorch, and by `planner.run`.

The two share what the user writes (model, loss, batches, edits between steps) and nothing else. What came of them is
compared bit by bit.
"""

from __future__ import annotations

import copy
import random
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from threading import Timer
from typing import Any, Literal

import numpy as np
import torch
from bits import Bits, bits_of, difference, number_bits
from torch import Tensor, nn

import planner

STEPS = 5
#: A loop that takes longer than this is stopped, and has failed.
SECONDS = 120.0
_SENTENCES = 2
_LONGEST = 700


class EagerError(Exception):
    """The loop by hand fails, so there is nothing to compare with."""


def _nothing(_: int) -> None:
    return None


@dataclass
class Loop:
    """A training loop as a user writes it.

    Args:
        model, optimizer, batches: fresh; a batch for each step. The first one is also the step's own.
        loss: of the model and a batch.
        scheduler: is stepped after every step.
        before: what the user does before each step, given its number.
        after: what the user does after each step, given its number and loss.
        around: what the user writes around the whole loop (`with ...:`).
        parts: a batch as micro-batches, for the loop by hand; as many as `options["micro_batches"]`.
        options: more arguments of `TrainStep`: `clip_norm`, `micro_batches`, `autocast`.
        also: what to compare besides model, optimizer and generators.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Sequence[Any]
    loss: Callable[[Any, Any], Tensor]
    scheduler: Any = None
    before: Callable[[int], object] = _nothing
    after: Callable[[int, float], object] | None = None
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    parts: Callable[[Any], list[Any]] | None = None
    options: dict[str, Any] | None = None
    also: object = None


@dataclass(frozen=True)
class Outcome:
    """What came of a loop.

    Args:
        kind: `"refused"` with a StowageError, `"crashed"` with another exception.
        detail: what differs, or what was said.
        seconds: that the run by Stowage took.
    """

    kind: Literal["equal", "refused", "different", "crashed"]
    detail: str = ""
    seconds: float = 0.0


def outcome(make: Callable[[], Loop], seed: int = 0, *, recheck: bool = True) -> Outcome:
    """Make a loop both ways and compare.

    Args:
        make: makes the loop, all of it anew.
        seed: for the generators of PyTorch, Python and NumPy.
        recheck: whether the step is captured again and compared now and then, which finds what no guard sees.

    Raises:
        EagerError: the loop by hand fails, which is the loop's own mistake.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected, bits, _ = _made(make, seed, _by_hand)
        except Exception as error:
            raise EagerError(f"eager PyTorch fails: {type(error).__name__}: {error}") from error
        begun, losses = time.perf_counter(), []
        try:
            losses, found, stopped = _made(make, seed, lambda loop: _planned(loop, losses, recheck=recheck))
        except planner.StowageError as error:
            return _refusal(str(error), expected, losses, time.perf_counter() - begun)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})"
            return Outcome("crashed", what, time.perf_counter() - begun)
        seconds = time.perf_counter() - begun
        if stopped:
            return Outcome("crashed", f"no end after {SECONDS:.0f} s", seconds)
        differs = _unlike(expected, losses) + difference(bits, found)
        if differs:
            return Outcome("different", ", ".join(differs[:8]), seconds)
        return Outcome("equal", "", seconds)


def _refusal(said: str, expected: list[float], losses: list[float], seconds: float) -> Outcome:
    """A refusal has to be short, and may come after a wrong step only if it says from which one on."""
    sentences = len(re.findall(r"[.!?] +[A-Z]", said)) + 1
    if "\n" in said or "Traceback" in said or sentences > _SENTENCES or len(said) > _LONGEST:
        return Outcome("crashed", f"not a sentence: {said}", seconds)
    differs = _unlike(expected[: len(losses)], losses)
    if differs and not re.search(r"\b(from|since|after) step \d", said):
        return Outcome("different", f"{', '.join(differs)}, and only then: {said}", seconds)
    return Outcome("refused", said, seconds)


def _unlike(expected: list[float], losses: list[float]) -> list[str]:
    pairs = zip(expected, losses, strict=False)
    wrong = [f"loss {number}" for number, (a, b) in enumerate(pairs) if number_bits(a) != number_bits(b)]
    return wrong if len(expected) == len(losses) else [*wrong, f"{len(losses)} steps of {len(expected)}"]


def _made(
    make: Callable[[], Loop], seed: int, way: Callable[[Loop], tuple[list[float], bool]]
) -> tuple[list[float], Bits, bool]:
    with settings_kept():
        _seed(seed)
        loop = make()
        _seed(seed + 1)
        with loop.around():
            losses, stopped = way(loop)
        scheduled = None if loop.scheduler is None else loop.scheduler.state_dict()
        return losses, bits_of(loop.model, loop.optimizer, (scheduled, loop.also)), stopped


def _by_hand(loop: Loop) -> tuple[list[float], bool]:
    losses = []
    options = loop.options or {}
    for number in range(STEPS):
        loop.before(number)
        batch = loop.batches[number]
        loop.optimizer.zero_grad(set_to_none=True)
        total = None
        parts = [batch] if loop.parts is None else loop.parts(batch)
        for part in parts:
            with torch.autocast("cpu", options["autocast"]) if "autocast" in options else nullcontext():
                loss = loop.loss(loop.model, part)
            share = loss / len(parts) if len(parts) > 1 else loss
            share.backward()
            total = share.detach() if total is None else total + share.detach()
        if "clip_norm" in options:
            nn.utils.clip_grad_norm_(loop.model.parameters(), options["clip_norm"], foreach=False)
        loop.optimizer.step()
        if loop.scheduler is not None:
            loop.scheduler.step()
        assert total is not None
        losses.append(float(total))
        if loop.after is not None:
            loop.after(number, losses[-1])
    return losses, False


def _planned(loop: Loop, losses: list[float], *, recheck: bool) -> tuple[list[float], bool]:
    step = planner.TrainStep(
        loop.model,
        loop.batches[0],
        loss=loop.loss,
        optimizer=loop.optimizer,
        scheduler=loop.scheduler,
        **(loop.options or {}),
    )
    run = planner.run(step, steps=0, check=False, recheck=recheck)
    watch = Timer(SECONDS, run.cancel)
    watch.daemon = True
    watch.start()
    try:
        for number, loss in enumerate(run.steps(_given(loop))):
            losses.append(loss)
            if loop.after is not None:
                loop.after(number, loss)
        return losses, run.progress.state == "cancelled"
    finally:
        watch.cancel()


def _given(loop: Loop) -> Iterator[Any]:
    for number in range(STEPS):
        loop.before(number)
        yield loop.batches[number]


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)  # as `torch.manual_seed`, which notes its caller's stack for each device
    random.seed(seed)
    np.random.seed(seed)


@contextmanager
def settings_kept() -> Iterator[None]:
    """Afterwards PyTorch's settings and its random numbers are as before, whatever a loop has changed."""
    threads, dtype, drawn = torch.get_num_threads(), torch.get_default_dtype(), torch.get_rng_state()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    fill, precision = torch.utils.deterministic.fill_uninitialized_memory, torch.get_float32_matmul_precision()
    mkldnn, anomaly = torch.backends.mkldnn.enabled, torch.is_anomaly_enabled()
    autocast = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()
    others = random.getstate(), copy.deepcopy(np.random.get_state())
    sdpa = torch.backends.cuda
    kernels = sdpa.flash_sdp_enabled(), sdpa.mem_efficient_sdp_enabled(), sdpa.math_sdp_enabled()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        torch.set_default_device(None)
        torch.set_rng_state(drawn)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn)
        torch.utils.deterministic.fill_uninitialized_memory = fill
        torch.set_float32_matmul_precision(precision)
        torch.backends.mkldnn.enabled = mkldnn
        torch.set_anomaly_enabled(anomaly)
        torch.set_autocast_enabled("cpu", autocast[0])
        torch.set_autocast_dtype("cpu", autocast[1])
        torch.set_autocast_cache_enabled(autocast[2])
        torch.clear_autocast_cache()
        random.setstate(others[0])
        np.random.set_state(others[1])
        sdpa.enable_flash_sdp(kernels[0])
        sdpa.enable_mem_efficient_sdp(kernels[1])
        sdpa.enable_math_sdp(kernels[2])
