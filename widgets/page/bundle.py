"""Bundle the script and the style sheet of all views, each from many small files into one minified text.

A notebook loads one script per widget, and that script cannot import anything. So each ES module becomes a function
that returns an array of its exports and is called once, in import order. Modules use a small part of the language:
`import { a, b } from '../core/x.js';` or `import '../core/x.js';` at the top, and `export` before a declaration;
`export default` only in the entry module. A notebook saves a copy with every widget, so comments, spaces and long local
names are removed.
"""

from __future__ import annotations

import base64
import gzip
import json
import posixpath
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from planner.errors import StowageError

_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^import\s*(?:\{([^}]*)\}\s*from\s*)?'((?:\./|(?:\.\./)+)[a-z_/]+)\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?function\*?|class|const)\s+(\w+)", re.MULTILINE)
_LINE_BREAKS = re.compile(r"(?<=[{};,])\s*\n\s*|\s*\n\s*(?=[{}])")
_OTHER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


@cache
def script(entry: str = "index") -> str:
    """Bundle `entry` and everything it imports into one ES module.

    Args:
        entry: module name; its exports become the script's exports.

    Raises:
        StowageError: an import is circular, names a module that does not exist, or has a form other than the one above.
    """
    order: list[str] = []
    _visit(entry, order, ())
    names = {module: f"${number}" for number, module in enumerate(order)}
    text = "\n".join([*(_wrapped(module, names) for module in order[:-1]), _without_imports(entry, names)])
    return _minified("application/javascript", text)


@cache
def packed_script() -> str:
    """The script of all views, which exports their style too, as the lazy loader takes it: with gzip and in base64."""
    text = f"{script()};export const style = {json.dumps(style())};"
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def style() -> str:
    """The style sheets, concatenated in order of file name."""
    text = "\n".join(path.read_text() for path in sorted((_HERE / "css").glob("*.css")))
    return _LINE_BREAKS.sub("", _minified("text/css", text))  # the minifier leaves rules within rules as they are


def _minified(kind: str, text: str) -> str:
    import minify  # starts threads of its own, which a process that only imports the views can do without

    return str(minify.string(kind, text))


def _visit(module: str, order: list[str], above: tuple[str, ...]) -> None:
    """Append a module, named by its path such as `core/units`, after the modules it imports."""
    if module in above:
        raise StowageError(f"the browser modules {' -> '.join((*above, module))} import each other; cut the circle")
    if module not in order:
        for _, needed in _IMPORT.findall(_source(module)):
            _visit(_path(needed, module), order, (*above, module))
        order.append(module)


def _path(needed: str, module: str) -> str:
    """Resolve an import path relative to the module that contains it."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(module), needed))


def _wrapped(module: str, constants: Mapping[str, str]) -> str:
    """The module as a constant that holds its exports, in their order.

    Args:
        module: its name.
        constants: by module the name of its constant, short because each import repeats it.
    """
    text = _without_imports(module, constants)
    body = _EXPORT.sub(r"\1 \2", text)
    if strange := _OTHER.search(body):
        raise StowageError(f"the browser module {module}.js has a line that cannot be joined: {strange[0]}")
    return f"const {constants[module]} = (() => {{\n{body}return [{', '.join(_exports(module))}];\n}})();"


def _without_imports(module: str, constants: Mapping[str, str]) -> str:
    """A module's text with each import replaced by what has its place among the exports of the imported module."""

    def taken(found: re.Match[str]) -> str:
        if found[1] is None:  # imported for what it does
            return ""
        needed = _path(found[2], module)
        names = dict(_named(each) for each in found[1].split(",") if each.strip())
        offered = _exports(needed)
        if missing := names.keys() - set(offered):
            raise StowageError(
                f"the browser module {module}.js imports {min(missing)}, which {needed}.js does not export"
            )
        places = ", ".join(names.get(name, "") for name in offered)
        return f"const [{places}] = {constants[needed]};\n"

    return _IMPORT.sub(taken, _source(module))


def _exports(module: str) -> list[str]:
    return [found[1] for found in _EXPORT.findall(_source(module))]


def _named(imported: str) -> tuple[str, str]:
    """What is imported, and what it is called here."""
    name, _, here = imported.strip().partition(" as ")
    return name, here or name


def _source(module: str) -> str:
    path = _HERE / "js" / f"{module}.js"
    if not path.is_file():
        raise StowageError(f"there is no browser module {module}.js")
    return path.read_text()
