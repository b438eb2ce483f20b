"""A graph for the page: ops, storages and modules as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.graph import Graph, Module, Phase, module_tree
from widgets.canvas.columns import Message, message
from widgets.info.facts import get_facts
from widgets.info.groups import GROUP_OF, STACK
from widgets.info.touches import get_touches, get_twins

_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


def graph_message(graph: Graph, step_peak_bytes: int, phrases: Sequence[str] = ()) -> Message:
    """Pack a graph.

    Args:
        graph: the step.
        step_peak_bytes: what it takes when nothing is swapped.
        phrases: facts for the header that the graph does not know.
    """
    facts = get_facts(graph, tuple(phrases))
    modules, parents = _walked(module_tree(graph))
    touches = get_touches(graph)
    targets = {target: number for number, target in enumerate(dict.fromkeys(op.target for op in graph.ops))}
    op_module, storage_module = np.zeros(len(graph.ops), np.int32), np.zeros(len(graph.storages), np.int32)
    for number, module in enumerate(modules):
        op_module[list(module.ops)] = number
        storage_module[list(module.storages)] = number
    content = {
        "name": facts.name,
        "samples": facts.samples,
        "parameters": facts.parameters,
        "step_peak_bytes": step_peak_bytes,
        "targets": list(targets),
        "storage_names": [storage.name for storage in graph.storages],
        "module_labels": [module.name or facts.name for module in modules],
        "module_kinds": [module.kind for module in modules],
        "module_paths": [module.path for module in modules],
        "facts": list(facts.phrases),
    }
    return message("graph", content, {
        "op_target": ("i4", [targets[op.target] for op in graph.ops]),
        "op_module": ("i4", op_module),
        "op_phase": ("i4", [_PHASES.index(op.phase) for op in graph.ops]),
        "op_twin": ("i4", get_twins(graph)),
        "op_working_set": ("f8", touches.bytes),
        "op_touch_start": ("i4", touches.start),
        "op_touch": ("i4", touches.storage),
        "op_read_count": ("i4", touches.reads),
        "storage_kind": ("i4", [STACK.index(GROUP_OF[storage.kind]) for storage in graph.storages]),
        "storage_bytes": ("f8", [storage.bytes for storage in graph.storages]),
        "storage_module": ("i4", storage_module),
        "module_parent": ("i4", parents),
        "module_alike": ("i4", [module.alike for module in modules]),
    })  # fmt: skip


def _walked(root: Module) -> tuple[list[Module], list[int]]:
    """All modules, parents before children, and the position of each one's parent."""
    modules, parents = [root], [-1]
    stack = [(child, 0) for child in reversed(root.children)]
    while stack:
        module, parent = stack.pop()
        parents.append(parent)
        here = len(modules)
        modules.append(module)
        stack += [(child, here) for child in reversed(module.children)]
    return modules, parents
