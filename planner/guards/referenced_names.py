"""The names that a piece of code uses, and which code is inspected."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import cache
from types import CodeType

#: Packages whose code is not inspected, because their state is not part of a model.
_LIBRARIES = frozenset({
    "torch", "numpy", "scipy", "functorch", "numba", "planner", "widgets",
    # what notebooks, downloads and progress bars are made of, all of which transformers refers to
    "IPython", "ipykernel", "ipywidgets", "traitlets", "comm", "zmq", "tornado", "jupyter_client", "jupyter_core",
    "pygments", "prompt_toolkit", "rich", "tqdm", "psutil", "packaging", "typing_extensions", "yaml", "filelock",
    "huggingface_hub", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio", "sniffio", "idna", "certifi",
    "truststore", "requests", "urllib3",
})  # fmt: skip
_DYNAMIC_LOOKUPS = frozenset({"getattr", "vars", "eval", "__dict__", "attrgetter", "methodcaller"})
_STORE_GLOBAL, _IMPORT_NAME = dis.opmap["STORE_GLOBAL"], dis.opmap["IMPORT_NAME"]


def of_library(module: object) -> bool:
    """Whether definitions in a module of this name belong to Python, PyTorch or the like."""
    if not isinstance(module, str):
        return True
    root = module.partition(".")[0]
    if root == "planner":
        return not module.startswith("planner.zoo")
    return root in _LIBRARIES or (root in sys.stdlib_module_names and root != "__main__")


@cache
def names_in(code: CodeType) -> frozenset[str]:
    """Every global and attribute that the code names, including nested functions."""
    found = set(code.co_names)
    for nested in _nested_codes(code):
        found |= names_in(nested)
    return frozenset(found)


@cache
def names_in_strings(code: CodeType) -> frozenset[str]:
    """The code's strings that may be names, for `getattr` or in a class pattern."""
    found: set[str] = set()
    for constant in code.co_consts:
        found.update(text for text in (constant if isinstance(constant, tuple) else (constant,)) if _is_name(text))
    for nested in _nested_codes(code):
        found |= names_in_strings(nested)
    return frozenset(found)


@cache
def imported(code: CodeType, package: str) -> frozenset[str]:
    """The modules that the code imports when it runs.

    Args:
        code: the code of a function.
        package: the package that relative imports start from.
    """
    found = set()
    if _IMPORT_NAME in code.co_code[::2]:
        loaded: list[object] = [0, 0]  # an import's level and its names are loaded before it
        for instruction in dis.get_instructions(code):
            if instruction.opcode == _IMPORT_NAME:
                level, name = loaded[-2], instruction.argval
                if isinstance(level, int) and level:
                    parents = package.split(".")[: len(package.split(".")) - level + 1]
                    name = ".".join([*parents, name] if name else parents)
                found |= {name, name.partition(".")[0]}
            loaded = [loaded[-1], instruction.argval]
    for nested in _nested_codes(code):
        found |= imported(nested, package)
    return frozenset(found)


@cache
def assigned_globals(code: CodeType) -> frozenset[str]:
    """The globals that the code assigns."""
    found = set()
    if _STORE_GLOBAL in code.co_code[::2]:
        found = {i.argval for i in dis.get_instructions(code) if i.opcode == _STORE_GLOBAL}
    for nested in _nested_codes(code):
        found |= assigned_globals(nested)
    return frozenset(found)


@cache
def uses_dynamic_lookup(code: CodeType) -> bool:
    """Whether the code may look up an attribute whose name is in none of its strings."""
    return bool(names_in(code) & _DYNAMIC_LOOKUPS)


def installed(package: str) -> bool:
    """Whether a package is an installed library, not a program of the user's own."""
    if package == "__main__":  # a profiler's or a test runner's, in which the user's program runs
        return False
    path = str(getattr(sys.modules.get(package), "__file__", None) or "")
    return "site-packages" in path or "dist-packages" in path


def _is_name(text: object) -> bool:
    return isinstance(text, str) and text.isidentifier()


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))
