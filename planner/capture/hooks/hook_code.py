"""Inspection of hook functions: what a hook can reach, and whether it can return anything but None.

No hook is called for this, since a hook that prints or counts would do so.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

_RETURNS, _CALLS = frozenset({"RETURN_VALUE", "RETURN_CONST"}), frozenset({"CALL", "CALL_FUNCTION_EX"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_FAST", "LOAD_FAST_CHECK"})
_STORES = frozenset({"STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL"})
_CONTAINERS = (list, dict, set, deque)
#: Calls that return None: methods of containers, built-in functions, and a method of tensors.
_SILENT_METHODS = frozenset({
    "append", "appendleft", "extend", "insert", "update", "add", "clear", "remove", "discard", "__setitem__",
})  # fmt: skip
_SILENT = (print, setattr, delattr)
_KEEPS_GRADIENT = "retain_grad"
#: Depth to which nested function calls are followed.
_DEPTH = 4
_UNKNOWN = object()
_INERT = (
    bool, int, float, complex, str, bytes, type(None), type, ModuleType, BuiltinFunctionType, torch.dtype, torch.device
)  # fmt: skip


def function_of(hook: object) -> FunctionType | None:
    """The Python function that a hook calls, through partials, methods and `__call__`; None if there is none."""
    while not isinstance(hook, FunctionType):
        if isinstance(hook, functools.partial):
            hook = hook.func
        elif isinstance(hook, MethodType):
            hook = hook.__func__
        elif isinstance(hook, BuiltinFunctionType) or not isinstance(type(hook).__call__, FunctionType):
            return None
        else:
            hook = type(hook).__call__
    return hook


def place(hook: object) -> str:
    """The name and place of a hook for messages: `record at train.py:12`."""
    function = function_of(hook)
    if function is None:
        return str(getattr(hook, "__qualname__", type(hook).__name__))
    name = function.__qualname__.replace(".<locals>", "").removesuffix(".__call__").rpartition(".")[2]
    code = function.__code__
    return f"{name} at {code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"


def package(hook: object) -> str:
    """The package that a hook is defined in: `torch`."""
    function = function_of(hook)
    return str(getattr(hook if function is None else function, "__module__", None) or "").partition(".")[0]


def reachable(hook: object) -> list[object]:
    """The objects that a function can change: those it is bound to or closes over, and the globals that it names."""
    found: dict[int, object] = {}
    waiting = [hook]
    while waiting:
        thing = waiting.pop()
        if id(thing) in found or isinstance(thing, _INERT):
            continue
        if isinstance(thing, tuple):
            waiting += thing
            continue
        found[id(thing)] = thing
        if isinstance(thing, functools.partial):
            waiting += [thing.func, *thing.args, *thing.keywords.values()]
        elif isinstance(thing, MethodType):
            waiting += [thing.__self__, thing.__func__]
        elif isinstance(thing, FunctionType):
            waiting += _named(thing)
    return [thing for thing in found.values() if not isinstance(thing, functools.partial | MethodType | FunctionType)]


def _named(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        yield _content(cell)
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    yield from (function.__globals__[name] for name in names if name in function.__globals__)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _read(code: CodeType) -> list[dis.Instruction]:
    return list(dis.get_instructions(code))


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is assigned to it yet
        return None


def stores(hook: object) -> bool:
    """Whether a function stores anything into an existing object, according to its bytecode."""
    function = function_of(hook)
    instructions = [] if function is None else [each for code in _codes(function.__code__) for each in _read(code)]
    return any(
        each.opname in _STORES or (each.opname in _ATTRIBUTES and each.argval in _SILENT_METHODS)
        for each in instructions
    )


def returns_nothing(hook: object, depth: int = _DEPTH) -> bool:
    """Whether a function can return nothing but None, according to its bytecode."""
    function = function_of(hook)
    if function is None:
        return _silent(hook)
    if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    code = _read(function.__code__)
    bound = hook.__self__ if isinstance(hook, MethodType) else hook if hook is not function else _UNKNOWN
    ends = [index for index, each in enumerate(code) if each.opname in _RETURNS]
    return all(_returns_none(code, index, function, bound, depth) for index in ends)


def _returns_none(code: list[dis.Instruction], end: int, function: FunctionType, bound: object, depth: int) -> bool:
    if code[end].is_jump_target:  # the end of a conditional expression
        return False
    last = code[end] if code[end].opname == "RETURN_CONST" else code[end - 1]
    if last.opname in ("RETURN_CONST", "LOAD_CONST"):
        return last.argval is None
    if last.opname not in _CALLS or depth == 0:
        return False
    called = _called(code, end)
    if called is None:
        return False
    if code[called].argval == _KEEPS_GRADIENT:
        return True
    callee = _value(code, called, function, bound)
    return callee is not _UNKNOWN and (_silent(callee) or (_python(callee) and returns_nothing(callee, depth - 1)))


def _python(callee: object) -> bool:
    return not isinstance(callee, type) and function_of(callee) is not None


def _silent(callee: object) -> bool:
    owner, name = getattr(callee, "__self__", None), getattr(callee, "__name__", "")
    return any(callee is each for each in _SILENT) or (isinstance(owner, _CONTAINERS) and name in _SILENT_METHODS)


def _called(code: list[dis.Instruction], end: int) -> int | None:
    """Find the instruction that loads the function whose result is returned, by the height of the stack."""
    height = 1
    for index in range(end - 1, -1, -1):
        each = code[index]
        if height == 2 and each.opname in _LOADS | _ATTRIBUTES:
            return index
        if each.opcode in (*dis.hasjrel, *dis.hasjabs) or each.is_jump_target:
            return None
        height -= dis.stack_effect(each.opcode, each.arg if each.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    return None


def _value(code: list[dis.Instruction], index: int, function: FunctionType, bound: object) -> object:
    """The value that an instruction pushes onto the stack, if it is known before the function runs."""
    if index < 0:
        return _UNKNOWN
    each = code[index]
    if each.opname in _ATTRIBUTES:
        return _attribute(_value(code, index - 1, function, bound), each.argval)
    if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        return function.__globals__.get(each.argval, getattr(builtins, each.argval, _UNKNOWN))
    if each.opname == "LOAD_DEREF" and each.argval in function.__code__.co_freevars:
        cells = function.__closure__ or ()
        return _content(cells[function.__code__.co_freevars.index(each.argval)])
    first = function.__code__.co_varnames[:1]
    return bound if each.opname in _LOADS and first == (each.argval,) else _UNKNOWN


def _attribute(owner: object, name: str) -> object:
    """Look up an attribute without running a property or `__getattr__`."""
    if owner is _UNKNOWN:
        return _UNKNOWN
    found: object = inspect.getattr_static(owner, name, _UNKNOWN)
    if isinstance(found, FunctionType) and not isinstance(owner, ModuleType | type):
        return MethodType(found, owner)
    if isinstance(owner, _CONTAINERS):
        return getattr(owner, name, _UNKNOWN)
    return _UNKNOWN if hasattr(type(found), "__get__") and not isinstance(found, FunctionType) else found
