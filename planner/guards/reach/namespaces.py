"""The globals, modules and classes in which a step's code looks names up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from planner.guards import comparison_keys
from planner.guards.comparison_keys import Value
from planner.guards.containers import MISSING, Names
from planner.guards.reach.boundaries import never_changes
from planner.guards.referenced_names import (
    assigned_globals,
    installed,
    names_in,
    names_in_strings,
    of_library,
    uses_dynamic_lookup,
)


class Namespaces:
    """The globals, modules and classes in which a step's code looks names up.

    Attributes:
        names: every name that the code uses.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._uses_dynamic_lookup = False  # whether attributes of the user's classes may be used without being named
        self._globals: dict[int, tuple[dict[str, Any], set[str]]] = {}
        self._scopes: dict[int, tuple[Any, str]] = {}
        self._libraries: dict[int, ModuleType] = {}
        self._done: dict[int, set[str]] = {}
        self._looked_in: dict[int, tuple[str, Any, object]] = {}

    def add_function(self, function: FunctionType) -> None:
        """Add the names that a function uses, and its globals."""
        code = function.__code__
        self.names |= names_in(code)
        if not installed(str(function.__globals__.get("__name__")).partition(".")[0]):
            self.names |= names_in_strings(code)
            self._uses_dynamic_lookup = self._uses_dynamic_lookup or uses_dynamic_lookup(code)
        globals_used = self._globals.setdefault(id(function.__globals__), (function.__globals__, set()))
        globals_used[1].update(assigned_globals(code))

    def add_scope(self, scope: ModuleType | type, label: str) -> bool:
        """Add a module or a class; returns whether it is new."""
        if id(scope) in self._scopes:
            return False
        self._scopes[id(scope)] = scope, label
        return True

    def look_up(self) -> Iterator[tuple[str, Any]]:
        """Yield the path and value of every name that has not been looked up before; `MISSING` if it has none."""
        for table, assigned in self._globals.values():
            self._looked_in[id(table)] = "global ", table, None
            yield from self._values("global ", table, assigned | (self.names & table.keys()), id(table))
        for scope, label in self._scopes.values():
            for base in scope.__mro__ if isinstance(scope, type) else (scope,):
                if isinstance(base, type) and of_library(base.__module__):
                    continue
                own = vars(base)
                self._looked_in[id(base)] = f"{label}.", own, base
                yield from self._values(f"{label}.", own, self._named(base, own), id(base))

    def _named(self, base: Any, own: Mapping[str, Any]) -> set[str]:
        found = self.names & own.keys()
        if (
            self._uses_dynamic_lookup
            and isinstance(base, type)
            and not installed(base.__module__.partition(".")[0])
        ):  # fmt: skip
            found |= {name for name in own if not name.startswith("__")}
        return found

    def _values(self, label: str, table: Mapping[str, Any], names: set[str], key: int) -> Iterator[tuple[str, Any]]:
        seen = self._done.setdefault(key, set())
        for name in sorted(names - seen):
            seen.add(name)
            value = table.get(name, MISSING)
            if isinstance(value, staticmethod | classmethod):
                value = value.__func__
            elif isinstance(value, property):
                value = value.fget
            if value is MISSING or not never_changes(value):
                yield f"{label}{name}", value
            elif isinstance(value, ModuleType):
                self._libraries[id(value)] = value

    def library_functions(self) -> Iterator[tuple[Names, dict[str, Value]]]:
        """Yield the named functions of each named library, and of the named modules in it, with what is compared."""
        libraries = list(self._libraries.values())
        known = set(self._libraries)
        for library in libraries:  # modules in them are appended during the loop
            if (found := functions_of(library.__name__, library, self.names)) is not None:
                yield found
            named = (vars(library).get(name) for name in sorted(self.names & vars(library).keys()))
            new = [one for one in named if isinstance(one, ModuleType) and id(one) not in known]
            libraries += new
            known |= {id(one) for one in new}

    def containers(self) -> Iterator[Names]:
        """Yield the names that were looked up, by namespace."""
        for key, (label, table, owner) in self._looked_in.items():
            if self._done.get(key):
                yield Names(label, table, sorted(self._done[key]), owner)


def functions_of(label: str, owner: ModuleType | type, names: Iterable[str]) -> tuple[Names, dict[str, Value]] | None:
    """The functions of a library that code names, which may be replaced by others; None if there are none."""
    table = vars(owner)
    known = sorted(table.keys() & names)  # a model's code has thousands of names, of which a library has few
    found = [name for name in known if isinstance(table[name], FunctionType | BuiltinFunctionType)]
    if not found:
        return None
    values = {f"{label}.{name}": comparison_keys.identity(table[name]) for name in found}
    return Names(f"{label}.", table, found, owner), values
