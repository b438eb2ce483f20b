"""Plans and timelines with something replaced: their fields, and the queues and spans of their lanes by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from planner.plan import COMPUTE, SWAP_IN, SWAP_OUT, MemorySamples, SwapPlan, Timeline

_QUEUES = {"order": COMPUTE, "swap_outs": SWAP_OUT, "swap_ins": SWAP_IN}
_SPANS = {"compute": COMPUTE, "swap_out": SWAP_OUT, "swap_in": SWAP_IN}


def replace(subject: Any, **changes: Any) -> Any:
    """Like `dataclasses.replace`, with `order`, `swap_outs`, `compute`, `sample_bytes` and so on as further names."""
    if isinstance(subject, SwapPlan):
        queues = {lane: changes.pop(name) for name, lane in _QUEUES.items() if name in changes}
        if queues:
            changes["queues"] = {**subject.queues, **queues}
    if isinstance(subject, Timeline):
        spans = {lane: changes.pop(name) for name, lane in _SPANS.items() if name in changes}
        if spans:
            changes["spans"] = {**subject.spans, **spans}
        samples = (changes.pop("sample_seconds", None), changes.pop("sample_bytes", None))
        if any(part is not None for part in samples):
            old = subject.memory[0]
            changes["memory"] = {0: MemorySamples(*(o if s is None else s for o, s in zip(old, samples, strict=True)))}
    return dataclasses.replace(subject, **changes)
