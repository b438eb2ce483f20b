"""A graph for the page: ops, storages and modules as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.graph import Graph, Module, Phase, Tensor, module_tree
from planner.memory import lifetimes
from widgets.info import GROUP_OF, STACK, get_forward_of, get_source_lines, get_step_facts, get_touches
from widgets.messages.message import Message, message

_TIMES = " \N{MULTIPLICATION SIGN} "
_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


def graph_message(graph: Graph, step_peak_bytes: int, phrases: Sequence[str] = (), runnable: bool = True) -> Message:
    """Pack a graph.

    Args:
        graph: the step.
        step_peak_bytes: its peak memory with nothing swapped.
        phrases: facts for the header that the graph does not contain.
        runnable: whether the step it was captured from is available, so that it can be run.
    """
    facts = get_step_facts(graph, tuple(phrases))
    modules, parents = _walked(module_tree(graph))
    touches, unswapped = get_touches(graph), lifetimes(graph)
    targets = _numbered([op.target for op in graph.ops])
    whole = {tensor.storage: _layout(tensor) for tensor in reversed(graph.tensors) if tensor.base < 0}
    storage_layout = [whole.get(storage.id, "") for storage in graph.storages]
    op_layout = [_layout(graph.tensors[op.outputs[0]]) if op.outputs else "" for op in graph.ops]
    lines = get_source_lines(graph)
    layouts, sources = _numbered([*storage_layout, *op_layout]), _numbered([*lines.of_op, *lines.of_storage])
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
        "layouts": list(layouts),
        "sources": list(sources),
        "storage_names": [storage.name for storage in graph.storages],
        "module_labels": [module.name or facts.name for module in modules],
        "module_kinds": [module.kind for module in modules],
        "module_paths": [module.path for module in modules],
        "facts": list(facts.phrases),
        "runnable": runnable,
        "device": graph.device,
    }
    return message("graph", content, {
        "op_target": ("i4", [targets[op.target] for op in graph.ops]),
        "op_module": ("i4", op_module),
        "op_phase": ("i4", [_PHASES.index(op.phase) for op in graph.ops]),
        "op_layout": ("i4", [layouts[layout] for layout in op_layout]),
        "op_source": ("i4", [sources[line] for line in lines.of_op]),
        "op_forward": ("i4", get_forward_of(graph)),
        "op_working_set": ("f8", touches.bytes),
        "op_touch_start": ("i4", touches.start),
        "op_touch": ("i4", touches.storage),
        "op_read_count": ("i4", touches.reads),
        "storage_kind": ("i4", [STACK.index(GROUP_OF[storage.kind]) for storage in graph.storages]),
        "storage_bytes": ("f8", [storage.bytes for storage in graph.storages]),
        "storage_module": ("i4", storage_module),
        "storage_birth": ("i4", unswapped.birth),
        "storage_end": ("i4", unswapped.end),
        "storage_layout": ("i4", [layouts[layout] for layout in storage_layout]),
        "storage_source": ("i4", [sources[line] for line in lines.of_storage]),
        "module_parent": ("i4", parents),
        "module_alike": ("i4", [module.isomorphic_group for module in modules]),
    })  # fmt: skip


def _numbered(texts: Sequence[str]) -> dict[str, int]:
    """The distinct texts, each with its number."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


def _layout(tensor: Tensor) -> str:
    """Shape and dtype as text."""
    return f"{_TIMES.join(map(str, tensor.shape)) or 'scalar'} {tensor.dtype}"


def _walked(root: Module) -> tuple[list[Module], list[int]]:
    """All modules, parents before children, and the position of each module's parent."""
    modules, parents = [root], [-1]
    stack = [(child, 0) for child in reversed(root.children)]
    while stack:
        module, parent = stack.pop()
        parents.append(parent)
        here = len(modules)
        modules.append(module)
        stack += [(child, here) for child in reversed(module.children)]
    return modules, parents
