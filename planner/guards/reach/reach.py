"""What a step's Python code can reach, starting from the model and the loss: values and their containers.

The traversal follows attributes, containers, closures, default arguments, hooks, and the globals, methods and class
attributes that the code names. It calls no code of the user's, neither properties nor operators. Of very large
containers it reads only the size, and it ends after a maximum number of values, so that its cost is bounded.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from planner.guards import comparison_keys
from planner.guards.comparison_keys import Value
from planner.guards.containers import (
    MISSING,
    ClosureCell,
    Container,
    ContextVariable,
    DictItems,
    Function,
    Slots,
    State,
)  # fmt: skip
from planner.guards.library_state import is_optimizer, of_optimizer, of_process
from planner.guards.reach.boundaries import is_opaque
from planner.guards.reach.callables import children_of_function, unnamed_methods
from planner.guards.reach.namespaces import Namespaces, functions_of
from planner.guards.reach.reading import dict_of, plain_attributes, slots_of
from planner.guards.reach.records import (
    OTHER_CONTENTS,
    Record,
    record_of_array,
    record_of_container,
    record_of_library_object,
    record_of_state,
)  # fmt: skip
from planner.guards.referenced_names import of_library
from planner.torch_private import hook_tables, storage_identity

_MOST_VALUES = 200_000
#: Attributes of `nn.Module` itself; the tensors, modules and hooks among them are visited separately.
_MODULE_ATTRIBUTES = frozenset(vars(nn.Module()))
_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
)  # fmt: skip


class Reach:
    """Everything that a step's code can reach.

    Args:
        model: the module.
        loss: the function called with it, or None.

    Attributes:
        containers: every container, so that its contents can be read again and restored.
        objects: modules and other objects whose attributes are in these containers, and whose class may change.
        values: by path, what is compared of each value.
        tensors: by path, every tensor.
        owned: the `id`s of the tensors that a module holds as its parameters and buffers.
    """

    def __init__(self, model: nn.Module, loss: object = None) -> None:
        self.containers: list[Container] = []
        self.objects: list[object] = []
        self.values: dict[str, Value] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.owned: set[int] = set()
        self._seen: dict[int, object] = {}
        self._numbers: dict[str, itertools.count[int]] = {}  # by path, those that may still be free
        self._path_of_tensor: dict[int, str] = {}
        self._path_of_memory: dict[int, str] = {}
        self._noted_forwards: set[int] = set()  # library classes of modules whose own `forward` has been noted
        self._namespaces = Namespaces()
        self._optimizers: list[tuple[str, object]] = []
        self._queue: deque[tuple[str, Any]] = deque([("", model)])
        if loss is not None:
            self._queue.append(("loss", loss))
        for kind, hooks in hook_tables(None).items():
            self._visit_hooks(f"{kind} of all modules", hooks)
        self._drain()
        self._follow_names()
        self._visit_library_states()

    def _drain(self) -> None:
        queue = self._queue
        while queue:
            path, value = queue.popleft()
            if len(self.values) > _MOST_VALUES:
                queue.clear()
                return
            self._visit(path, value)

    # one branch per kind of value: what can change about it determines how it is recorded
    def _visit(self, path: str, value: Any) -> None:
        if path in self.values:  # for example, of two functions with the same name
            path = self._distinct(path)
        if comparison_keys.is_plain(value):
            self.values[path] = comparison_keys.plain(value)
            return
        if isinstance(value, torch.Tensor):
            self._visit_tensor(path, value)
            return
        if isinstance(value, tuple | frozenset):
            self.values[path] = comparison_keys.structure(value)
            kind: Any = tuple if isinstance(value, tuple) else frozenset
            members = kind.__iter__(value)
            self._add_children((f"{path}[{position}]", item) for position, item in enumerate(members))
            if type(value) in (tuple, frozenset) or hasattr(value, "_fields"):
                return
        if id(value) in self._seen:
            self.values[path] = comparison_keys.identity(value)
            return
        self._seen[id(value)] = value
        if isinstance(value, nn.Module):
            self._visit_module(path, value)
        elif isinstance(value, FunctionType):
            self._visit_function(path, value)
        elif isinstance(value, MethodType):
            self._seen.pop(id(value))  # created anew on every access
            self.values[path] = comparison_keys.identity(value.__func__)
            self._queue += [(path, value.__func__), (f"{path}.__self__", value.__self__)]
        elif isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | type | None):
            self.values[path] = comparison_keys.identity(value)
            self._queue.append((f"{path}.__self__", value.__self__))
        elif isinstance(value, functools.partial):
            self.values[path] = comparison_keys.structure(value)
            self._queue += [(path, value.func), (f"{path}.args", value.args), (f"{path}.keywords", value.keywords)]
        elif isinstance(value, CellType):
            self._visit_variable(path, ClosureCell(path, value))
        elif isinstance(value, type):
            self._visit_class(path, value)
        elif isinstance(value, ModuleType):
            self.values[path] = comparison_keys.identity(value)
            if not of_library(value.__name__):
                self._namespaces.add_scope(value, value.__name__)
        else:
            self._visit_object(path, value)

    def _distinct(self, path: str) -> str:
        """The path with the least number that makes it new: in a large library hundreds of values share a name."""
        numbers = self._numbers.setdefault(path, itertools.count(2))
        return next(name for number in numbers if (name := f"{path} ({number})") not in self.values)

    def _visit_tensor(self, path: str, value: torch.Tensor) -> None:
        first_path = self._path_of_tensor.setdefault(id(value), path)
        shared = path
        if value.layout is torch.strided and not is_lazy(value):
            shared = self._path_of_memory.setdefault(storage_identity(value.untyped_storage()), path)
        self.values[path] = comparison_keys.tensor(value, first_path, shared)
        self.tensors[path] = value

    def _visit_object(self, path: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._add(path, record_of_array(path, value))
        elif issubclass(type(value), dict | list | deque | set):
            self._add(path, record_of_container(path, value))
            self._visit_own_attributes(path, value)
        elif isinstance(value, tuple | frozenset):  # of a subclass; its items have been visited
            self._visit_own_attributes(path, value)
        elif (number := comparison_keys.as_plain(value)) is not None:
            self.values[path] = comparison_keys.plain(number)
            self._visit_own_attributes(f"{path}, a {type(value).__name__}", value)
        elif (record := record_of_library_object(path, value)) is not None:
            self._add(path, record)
        elif is_optimizer(value):
            self.values[path] = comparison_keys.identity(value)
            self._optimizers.append((path, value))
        elif isinstance(value, ContextVar):
            self._visit_variable(path, ContextVariable(path, value))
        elif isinstance(value, weakref.ref):
            self.values[path] = comparison_keys.structure(value)
            state = State(path, lambda: plain_attributes(value), None)
            self._add(f"{path}()", record_of_state(state, OTHER_CONTENTS))
        elif is_opaque(value):
            self.values[path] = comparison_keys.identity(value)
        else:
            self.values[path] = comparison_keys.structure(value)
            self._visit_attributes(path, value)

    def _add(self, path: str, record: Record) -> None:
        self.values[path] = record.value
        if record.container is not None:
            self.containers.append(record.container)
        self._queue.extend(record.children)

    def _visit_own_attributes(self, path: str, value: Any) -> None:
        """Visit the attributes that a user's class adds to a class of Python's own."""
        if not of_library(type(value).__module__):
            shown = self.values.get(path)
            self._visit_attributes(path, value)
            if shown is not None:
                self.values[path] = shown

    def _visit_attributes(self, path: str, value: Any) -> None:
        kind = type(value)
        self.objects.append(value)
        if isinstance(table := dict_of(value), dict):
            self.containers.append(DictItems(path, table))
            self._add_children((f"{path}.{name}", item) for name, item in list(dict.items(table)))
        names = [name for base in kind.__mro__ for name in slots_of(base)]
        if names:
            slots = Slots(path, value, names)
            self.containers.append(slots)
            pairs = zip(names, slots.contents(), strict=True)
            self._add_children((f"{path}.{name}", item) for name, item in pairs if item is not MISSING)
        elif not isinstance(table, dict):
            self.values[path] = comparison_keys.identity(value)
        self._visit_class(f"{path}'s class", kind)

    def _visit_module(self, path: str, module: nn.Module) -> None:
        self.values[f"{path or 'model'}"] = comparison_keys.identity(type(module), f"a {type(module).__name__}")
        self.objects.append(module)
        own = f"{path}." if path else ""
        table = vars(module)
        self.containers.append(DictItems(path or "model", table))
        for name in ("_parameters", "_buffers", "_modules"):
            self.containers.append(DictItems(path or "model", table[name]))
            self._add_children((own + key, item) for key, item in table[name].items() if item is not None)
            self.owned.update(map(id, table[name].values()))
        for name in _HOOKS:
            hooks = table.get(name)
            if hooks is not None:
                self._visit_hooks(f"{path or 'model'}.{name.strip('_')}", hooks)
        self._add_children(
            (f"{path or 'model'}.{name}", item) for name, item in table.items() if name not in _MODULE_ATTRIBUTES
        )
        self.values[f"{path or 'model'}.training"] = comparison_keys.plain(module.training)
        self._follow_class(type(module))
        for base in type(module).__mro__:
            if of_library(base.__module__) and id(base) not in self._noted_forwards and "forward" in vars(base):
                self._noted_forwards.add(id(base))
                self._add_values(functions_of(base.__name__, base, ["forward"]))
                self._queue.append((f"{base.__name__}.forward()", vars(base)["forward"]))

    def _visit_hooks(self, path: str, hooks: dict[int, Any]) -> None:
        self.containers.append(DictItems(path, hooks))
        self._add_children((f"{path}[{index}]", hook) for index, hook in enumerate(hooks.values()))

    def _visit_function(self, path: str, function: FunctionType) -> None:
        self.values[path] = comparison_keys.identity(function.__code__, f"another function ({function.__qualname__})")
        defining_module = function.__globals__.get("__name__")  # functools.wraps exchanges __module__
        if defining_module is not None and of_library(defining_module):
            return
        self._namespaces.add_function(function)
        self.containers += [Function(path, function), DictItems(f"{function.__name__}()", vars(function))]
        self._add_children(children_of_function(function))

    def _visit_variable(self, path: str, variable: ClosureCell | ContextVariable) -> None:
        self.containers.append(variable)
        (value,) = variable.contents()
        if value is MISSING:
            self.values[path] = Value("missing", None, "not assigned")
        else:
            self._queue.append((path, value))

    def _visit_class(self, path: str, kind: type) -> None:
        self.values[path] = comparison_keys.identity(kind)
        self._follow_class(kind)

    def _follow_class(self, kind: type) -> None:
        """Visit the methods that are called without being named."""
        if self._namespaces.add_scope(kind, kind.__name__):
            self._add_children(unnamed_methods(kind))

    def _add_children(self, pairs: Iterator[tuple[str, Any]]) -> None:
        self._queue.extend(pairs)

    def _follow_names(self) -> None:
        """Look up the names that the code uses in its namespaces, until nothing new is found."""
        while True:
            for path, value in self._namespaces.look_up():
                if value is MISSING:
                    self.values[path] = Value("missing", None, "not assigned")
                else:
                    self._queue.append((path, value))
            if not self._queue:
                break
            self._drain()
        for found in self._namespaces.library_functions():
            self._add_values(found)
        self.containers.extend(self._namespaces.containers())

    def _add_values(self, found: tuple[Container, dict[str, Value]] | None) -> None:
        if found is not None:
            container, values = found
            self.containers.append(container)
            self.values.update(values)

    def _visit_library_states(self) -> None:
        names = self._namespaces.names
        states = [state for path, value in self._optimizers for state in of_optimizer(path, value, names)]
        for found in (*states, *of_process(names)):
            self._add_values(found)
