"""Views of plans in a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_FIGURES = (
    "address_map", "compare_methods", "compare_peaks", "compare_plans", "compare_speeds", "dataflow", "fit", "holders",
    "level_bytes", "levers", "live_memory", "memory_by_kind", "module_graph", "pareto", "partition_splits",
    "peak_icicle", "predicted_and_measured", "schedule_and_pool", "search_history", "snapshot_map", "streams",
    "tensor_blocks", "worker_memory",
)  # fmt: skip
_ROOMS = ("figures", "info")
_STATIC = ("save_html",)
_LIVE = ("watch", "watch_run")
_PANELS = ("GraphView", "MemoryMap", "PartitionView", "RunPanel", "SearchPanel", "StreamView")
_WORKBENCH = ("Workbench",)

__all__ = [*_WORKBENCH, *_PANELS, *_FIGURES, *_LIVE, *_STATIC, *_ROOMS]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"widgets.{name}")
    if name in _FIGURES:
        return getattr(import_module("widgets.figures"), name)
    if name in _STATIC:
        return getattr(import_module("widgets.panels.saving"), name)
    if name in _WORKBENCH:
        return getattr(import_module("widgets.panels.workbench"), name)
    if name in _PANELS:
        return getattr(import_module("widgets.panels.panel"), name)
    if name in _LIVE:
        return getattr(import_module("widgets.figures.live.watch"), name)
    raise AttributeError(f"module 'widgets' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
