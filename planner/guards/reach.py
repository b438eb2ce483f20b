"""What a step's Python code can reach, starting from the model and the loss: values and their containers.

The traversal follows attributes, containers, closures, default arguments, hooks, and the globals, methods and class
attributes that the code names. It calls no code of the user's, neither properties nor operators. Of very large
containers it reads only the size, and it ends after a maximum number of values, so that its cost is bounded.
"""

from __future__ import annotations

import array
import ctypes
import functools
import gc
import itertools
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
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
    Items,
    Names,
    SetItems,
    Slots,
    State,
    elements,
    generator,
)  # fmt: skip
from planner.guards.external_state import is_optimizer, of_optimizer, of_process
from planner.guards.referenced_names import (
    assigned_globals,
    imported,
    installed,
    names_in,
    names_in_strings,
    of_library,
    uses_dynamic_lookup,
)
from planner.torch_private import hook_tables, storage_identity

_MOST_VALUES = 200_000
_MOST_ENTRIES = 10_000
_MOST_ARRAY_BYTES = 1 << 24
#: Attributes of `nn.Module` itself; the tensors, modules and hooks among them are visited separately.
_MODULE_ATTRIBUTES = frozenset(vars(nn.Module()))
_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
)  # fmt: skip
#: Packages whose objects are compared by identity: their contents are large, private, or change without meaning.
_OPAQUE = frozenset({
    "logging", "threading", "_thread", "multiprocessing", "concurrent", "asyncio", "socket", "io", "_io", "weakref",
    "ctypes", "inspect", "importlib", "contextvars", "subprocess", "queue", "re", "pathlib", "abc", "typing", "types",
    "datetime", "time", "warnings", "contextlib", "planner", "widgets", "numba", "IPython", "ipykernel", "traitlets",
    "tqdm", "rich", "pytest", "_pytest",
})  # fmt: skip
_OPAQUE_TORCH = ("torch.optim", "torch.utils.data", "torch._", "torch.profiler", "torch.jit", "torch.fx")
#: Methods that PyTorch calls of a `torch.autograd.Function`, while code names only `apply`.
_FUNCTION_METHODS = frozenset({"forward", "backward", "setup_context", "vjp", "jvp", "vmap"})
_CACHE = type(functools.cache(len))
#: Description of a changed value that is compared as a whole.
_OTHER_CONTENTS = "of other contents"
_SIMPLE_DATA: Any = ctypes.c_int.__mro__[1]
_VIEWS: Any = type({}.keys()) | type({}.values()) | type({}.items())
_ITERATORS: tuple[Any, ...] = (
    itertools.count, itertools.cycle, itertools.islice, itertools.chain, itertools.repeat, itertools.accumulate,
    type(iter([])), type(iter(())), type(iter(range(0))), type(iter("")), enumerate, zip, map, filter, reversed,
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
        self._path_of_tensor: dict[int, str] = {}
        self._path_of_memory: dict[int, str] = {}
        self._names: set[str] = set()
        self._uses_dynamic_lookup = False  # whether attributes of the user's classes may be used without being named
        self._libraries: dict[int, ModuleType] = {}
        self._noted_forwards: set[int] = set()  # library classes of modules whose own `forward` has been noted
        self._globals: dict[int, tuple[dict[str, Any], set[str]]] = {}
        self._name_scopes: dict[int, tuple[Any, str]] = {}
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
            path = next(name for number in itertools.count(2) if (name := f"{path} ({number})") not in self.values)
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
                self._name_scopes[id(value)] = value, value.__name__
        else:
            self._visit_object(path, value)

    def _visit_tensor(self, path: str, value: torch.Tensor) -> None:
        first_path = self._path_of_tensor.setdefault(id(value), path)
        shared = path
        if value.layout is torch.strided and not is_lazy(value):
            shared = self._path_of_memory.setdefault(storage_identity(value.untyped_storage()), path)
        self.values[path] = comparison_keys.tensor(value, first_path, shared)
        self.tensors[path] = value

    def _visit_object(self, path: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._visit_array(path, value)
        elif issubclass(type(value), dict | list | deque | set):
            self._visit_container(path, value)
            self._visit_own_attributes(path, value)
        elif isinstance(value, tuple | frozenset):  # of a subclass; its items have been visited
            self._visit_own_attributes(path, value)
        elif (number := comparison_keys.as_plain(value)) is not None:
            self.values[path] = comparison_keys.plain(number)
            self._visit_own_attributes(f"{path}, a {type(value).__name__}", value)
        elif isinstance(value, bytearray | array.array | ctypes.Array | ctypes.Structure | _SIMPLE_DATA):
            self._visit_bytes(path, value)
        elif isinstance(value, threading.Event):
            self._visit_state(
                path, State(path, value.is_set, lambda on: value.set() if on else value.clear()), _OTHER_CONTENTS
            )
        elif isinstance(value, MappingProxyType | _VIEWS):
            self.values[path] = comparison_keys.structure(value)
            self._add_children((path, one) for one in gc.get_referents(value) if isinstance(one, dict))
        elif isinstance(value, weakref.WeakKeyDictionary | weakref.WeakValueDictionary):
            self.values[path] = comparison_keys.structure(value)
            self._queue.append((path, vars(value)["data"]))
        elif (state := generator(path, value) or _progress(path, value)) is not None:
            self._visit_state(path, state, "in another state")
        elif is_optimizer(value):
            self.values[path] = comparison_keys.identity(value)
            self._optimizers.append((path, value))
        elif isinstance(value, ContextVar):
            self._visit_variable(path, ContextVariable(path, value))
        elif isinstance(value, weakref.ref):
            self.values[path] = comparison_keys.structure(value)
            self._visit_state(f"{path}()", State(path, lambda: _plain_attributes(value), None), _OTHER_CONTENTS)
        elif isinstance(value, _CACHE):
            cache_state = State(path, lambda: value.cache_info().currsize, None)
            self.containers.append(cache_state)
            self.values[path] = Value(
                "cache", (comparison_keys.SameObject(value), *cache_state.contents()), "filled otherwise"
            )
            self._queue.append((path, value.__wrapped__))
        else:
            self.values[path] = comparison_keys.identity(value) if _opaque(value) else comparison_keys.structure(value)
            if not _opaque(value):
                self._visit_attributes(path, value)

    def _visit_state(self, path: str, state: State, shown: str) -> None:
        self.containers.append(state)
        self.values[path] = Value("state", state.contents()[0], shown)

    def _visit_bytes(self, path: str, value: Any) -> None:
        """Visit a value whose memory Python code writes to."""
        view = memoryview(value)
        if view.nbytes > _MOST_ARRAY_BYTES:
            self.values[path] = comparison_keys.identity(value)
        else:
            write = functools.partial(_write_bytes, value)
            self._visit_state(path, State(path, lambda: memoryview(value).tobytes(), write), _OTHER_CONTENTS)

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
        if isinstance(table := _dict_of(value), dict):
            self.containers.append(DictItems(path, table))
            self._add_children((f"{path}.{name}", item) for name, item in list(dict.items(table)))
        names = [name for base in kind.__mro__ for name in _slots(base)]
        if names:
            slots = Slots(path, value, names)
            self.containers.append(slots)
            pairs = zip(names, slots.contents(), strict=True)
            self._add_children((f"{path}.{name}", item) for name, item in pairs if item is not MISSING)
        elif not isinstance(table, dict):
            self.values[path] = comparison_keys.identity(value)
        self._visit_class(f"{path}'s class", kind)

    def _visit_array(self, path: str, value: np.ndarray[Any, Any]) -> None:
        if value.dtype.hasobject or value.nbytes > _MOST_ARRAY_BYTES:
            self.values[path] = comparison_keys.identity(value)
            return
        state = elements(path, value)
        self.containers.append(state)
        bits = (value.shape, value.dtype.str, state.contents()[0])
        self.values[path] = Value(np.ndarray, bits, f"a NumPy array {str(value.tolist())[:60]}")

    def _visit_container(self, path: str, value: Any) -> None:
        size = _size(value)
        if size > _MOST_ENTRIES:
            self.values[path] = Value(type(value), (comparison_keys.SameObject(value), size), f"of {size} entries")
            return
        self.values[path] = comparison_keys.structure(value)
        if issubclass(type(value), dict):
            self.containers.append(DictItems(path, value))
            self._add_children((f"{path}[{_key(key)}]", item) for key, item in list(dict.items(value)))
        elif issubclass(type(value), set):
            set_items = SetItems(path, value)
            self.containers.append(set_items)
            if all(map(comparison_keys.is_plain, set_items.contents())):
                self.values[path] = Value(
                    set, frozenset(map(comparison_keys.plain, set_items.contents())), "another set"
                )
            else:
                self._add_children((f"{path}[{index}]", item) for index, item in enumerate(set_items.contents()))
        else:
            items = Items(path, value)
            self.containers.append(items)
            self._add_children((f"{path}[{index}]", item) for index, item in enumerate(items.contents()))

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
                self._note_functions(base.__name__, base, ["forward"])
                self._queue.append((f"{base.__name__}.forward()", vars(base)["forward"]))

    def _visit_hooks(self, path: str, hooks: dict[int, Any]) -> None:
        self.containers.append(DictItems(path, hooks))
        self._add_children((f"{path}[{index}]", hook) for index, hook in enumerate(hooks.values()))

    def _visit_function(self, path: str, function: FunctionType) -> None:
        self.values[path] = comparison_keys.identity(function.__code__, f"another function ({function.__qualname__})")
        defining_module = function.__globals__.get("__name__")  # functools.wraps exchanges __module__
        if defining_module is not None and of_library(defining_module):
            return
        self.containers.append(Function(path, function))
        name, code = function.__name__, function.__code__
        self._names |= names_in(code)
        if not installed(str(defining_module).partition(".")[0]):
            self._names |= names_in_strings(code)
            self._uses_dynamic_lookup = self._uses_dynamic_lookup or uses_dynamic_lookup(code)
        assigned = assigned_globals(code)
        for module in imported(code, function.__globals__.get("__package__") or ""):
            if module in sys.modules and not of_library(module):
                self._queue.append((module, sys.modules[module]))
        globals_used = self._globals.setdefault(id(function.__globals__), (function.__globals__, set()))
        globals_used[1].update(assigned)
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if variable != "__class__":
                self._queue.append((f"{variable} in {name}()", cell))
        for index, item in enumerate(function.__defaults__ or ()):
            self._queue.append((f"default {index} of {name}()", item))
        for key, item in (function.__kwdefaults__ or {}).items():
            self._queue.append((f"default {key} of {name}()", item))
        self.containers.append(DictItems(f"{name}()", vars(function)))
        self._add_children((f"{name}.{key}", item) for key, item in vars(function).items())

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
        if id(kind) in self._name_scopes:
            return
        self._name_scopes[id(kind)] = kind, kind.__name__
        for base in kind.__mro__:
            if not of_library(base.__module__):
                unnamed = {name: item for name, item in vars(base).items() if _unnamed(kind, name)}
                for name, item in unnamed.items():
                    function = item.__func__ if isinstance(item, staticmethod | classmethod) else item
                    if isinstance(function, FunctionType):
                        self._queue.append((f"{base.__name__}.{name}", function))

    def _add_children(self, pairs: Iterator[tuple[str, Any]]) -> None:
        self._queue.extend(pairs)

    def _follow_names(self) -> None:
        """Look up the names that the code uses in its namespaces, until nothing new is found."""
        names_done: dict[int, set[str]] = {}
        namespaces: dict[int, tuple[str, Any, object]] = {}
        while True:
            for table, assigned in list(self._globals.values()):
                namespaces[id(table)] = "global ", table, None
                names_done.setdefault(id(table), set()).update(())
                self._look_up("global ", table, assigned | (self._names & table.keys()), names_done)
            for scope, label in list(self._name_scopes.values()):
                bases = scope.__mro__ if isinstance(scope, type) else (scope,)
                for base in bases:
                    if isinstance(base, type) and of_library(base.__module__):
                        continue
                    own = vars(base)
                    namespaces[id(base)] = f"{label}.", own, base
                    named = self._names & own.keys()
                    if (
                        self._uses_dynamic_lookup
                        and isinstance(base, type)
                        and not installed(base.__module__.partition(".")[0])
                    ):
                        named |= {name for name in own if not name.startswith("__")}
                    self._look_up(f"{label}.", own, named, names_done, id(base))
            if not self._queue:
                break
            self._drain()
        libraries = list(self._libraries.values())
        for library in libraries:  # and the named modules in them, which are appended during the loop
            self._note_functions(library.__name__, library, self._names)
            named_modules = (vars(library).get(name) for name in sorted(self._names & vars(library).keys()))
            new = [one for one in named_modules if isinstance(one, ModuleType) and id(one) not in self._libraries]
            libraries += new
            self._libraries |= {id(one): one for one in new}
        for key, (label, table, owner) in namespaces.items():
            if names_done.get(key):
                self.containers.append(Names(label, table, sorted(names_done[key]), owner))

    def _note_functions(self, label: str, owner: ModuleType | type, names: Iterable[str]) -> None:
        """Record the functions of a library that the code calls, which may be replaced by others."""
        table = vars(owner)
        known = sorted(table.keys() & names)  # a model's code has thousands of names, of which a library has few
        found = [name for name in known if isinstance(table[name], FunctionType | BuiltinFunctionType)]
        if not found:
            return
        self.containers.append(Names(f"{label}.", table, found, owner))
        self.values.update((f"{label}.{name}", comparison_keys.identity(table[name])) for name in found)

    def _visit_library_states(self) -> None:
        states = [state for path, value in self._optimizers for state in of_optimizer(path, value, self._names)]
        for container, found in (*states, *of_process(self._names)):
            self.containers.append(container)
            self.values.update(found)

    def _look_up(
        self,
        label: str,
        table: Mapping[str, Any],
        names: set[str],
        names_done: dict[int, set[str]],
        key: int | None = None,
    ) -> None:
        seen_names = names_done.setdefault(id(table) if key is None else key, set())
        for name in sorted(names - seen_names):
            seen_names.add(name)
            value = table.get(name, MISSING)
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            elif isinstance(value, property):
                value = value.fget
            if value is MISSING:
                self.values[f"{label}{name}"] = Value("missing", None, "not assigned")
            elif not _never_changes(value):
                self._queue.append((f"{label}{name}", value))
            elif isinstance(value, ModuleType):
                self._libraries[id(value)] = value


def _progress(path: str, value: Any) -> State | None:
    """The progress of an iterator, which can be read but not restored; None for anything else."""
    if isinstance(value, GeneratorType):
        return State(path, lambda: _suspended(value), None)
    if type(value) in _ITERATORS:
        return State(path, lambda: repr(_reduced_form(value)), None)
    return None


def _write_bytes(value: Any, bits: bytes) -> None:
    """Restore the memory of a Python array or a C number."""
    if memoryview(value).nbytes != len(bits):
        return
    if isinstance(value, bytearray | array.array):
        memoryview(value).cast("B")[:] = bits
    else:
        ctypes.memmove(ctypes.addressof(value), bits, len(bits))


def _plain_attributes(reference: weakref.ref[Any]) -> object:
    """The plain values among the attributes of an object, without keeping it alive; None once it is dead."""
    thing = reference()
    if thing is None:
        return None
    table = _dict_of(thing)
    items = list(dict.items(table)) if isinstance(table, dict) else []
    return tuple((name, comparison_keys.plain(item)) for name, item in items if comparison_keys.is_plain(item))


def _suspended(value: GeneratorType[Any, Any, Any]) -> object:
    """Where a generator function is suspended, and its plain local variables."""
    frame = value.gi_frame
    if frame is None:
        return None
    return frame.f_lasti, tuple((name, _number_in(item)) for name, item in frame.f_locals.items())


def _number_in(item: object) -> object:
    if comparison_keys.is_plain(item):
        return comparison_keys.plain(item)
    return repr(_reduced_form(item)) if type(item) in _ITERATORS else None


def _reduced_form(value: Any) -> object:
    try:
        return value.__reduce__()
    except TypeError:
        return None


def _opaque(value: Any) -> bool:
    module = getattr(type(value), "__module__", None)
    if not isinstance(module, str) or isinstance(value, BuiltinFunctionType):
        return True
    return (module.partition(".")[0] in _OPAQUE and type(value).__name__ != "SimpleNamespace") or module.startswith(
        _OPAQUE_TORCH
    )


def _never_changes(value: Any) -> bool:
    """Whether a named value is one that does not change: a library, or a function or class of a library."""
    if isinstance(value, ModuleType):
        return of_library(value.__name__)
    if isinstance(value, FunctionType | type | BuiltinFunctionType):
        return of_library(getattr(value, "__module__", None))
    return False


def _dict_of(value: Any) -> object:
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # a class may define its own
        return None


def _size(value: Any) -> int:
    kind = next(kind for kind in (dict, list, deque, set) if issubclass(type(value), kind))
    return int(kind.__len__(value))


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(
        f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names if name not in ("__dict__", "__weakref__")
    )  # fmt: skip


def _unnamed(kind: type, name: str) -> bool:
    """Whether Python or PyTorch calls a method of a class without any code naming it."""
    if issubclass(kind, nn.Module):
        return name == "forward" or (name.startswith("__") and name != "__init__")
    return name.startswith("__") or (issubclass(kind, torch.autograd.Function) and name in _FUNCTION_METHODS)


def _key(key: object) -> str:
    return repr(key)[:60] if comparison_keys.is_plain(key) else f"a {type(key).__name__}"
