"""Plan where every tensor of a PyTorch step lives, and when; then run the plan inside a memory budget."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from planner.errors import StowageError

#: Public names and the subpackage that defines each; "" marks a subpackage itself. All are imported on first access.
_HOME = {
    "SGD": "step",
    "Adam": "step",
    "AdamW": "step",
    "InferenceStep": "step",
    "TrainStep": "step",
    "apply": "",
    "capture": "",
    "compare_plans": "plan",
    "fit": "",
    "graph": "",
    "levers": "",
    "machine": "",
    "memory": "",
    "pack": "memory",
    "partition": "",
    "plan": "",
    "plan_swaps": "swap",
    "profile": "",
    "run": "",
    "run_workers": "run",
    "search_partition": "partition",
    "search_swaps": "swap",
    "selftest": "",
    "snapshot": "",
    "swap": "",
    "units": "",
    "validate": "plan",
    "zoo": "",
}

__all__ = ["StowageError", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'planner' has no attribute {name!r}; it has {', '.join(__all__)}")
    home = _HOME[name]
    return getattr(import_module(f"planner.{home}"), name) if home else import_module(f"planner.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
