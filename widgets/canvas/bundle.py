"""The script and the style of all views, each joined from its small files to the one short text a browser is given.

A notebook gives every widget one script, from which nothing else can be imported. So each ES module becomes a function
that returns what it exports, called once, in the order of the imports. Modules keep to a small part of the language:
`import { a, b } from './x.js';` at the top and `export` before a declaration, `export default` in the first one only.
A notebook also keeps a copy with every widget it saves; so comments, spaces and long local names are left out.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import minify

from planner.errors import StowageError

_HERE = Path(__file__).parent
_IMPORT = re.compile(r"^import\s*\{([^}]*)\}\s*from\s*'\./([a-z_]+)\.js';\n", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?function\*?|class|const)\s+(\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


@cache
def script(entry: str = "index") -> str:
    """One ES module that does what `entry` and everything it imports do.

    Args:
        entry: a module's name; its exports are the script's.

    Raises:
        StowageError: a module imports in a circle, what does not exist, or in another form than the one above.
    """
    order: list[str] = []
    _visit(entry, order, ())
    text = "\n".join([*(_wrapped(name) for name in order[:-1]), _without_imports(entry)])
    return str(minify.string("application/javascript", text))


@cache
def style() -> str:
    """The style sheets, joined in the order of their names."""
    text = "\n".join(path.read_text() for path in sorted((_HERE / "css").glob("*.css")))
    return str(minify.string("text/css", text))


def _visit(name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise StowageError(f"the browser modules {' -> '.join((*above, name))} import each other; cut the circle")
    if name not in order:
        for _, needed in _IMPORT.findall(_source(name)):
            _visit(needed, order, (*above, name))
        order.append(name)


def _wrapped(name: str) -> str:
    """A module as a constant that holds its exports."""
    text = _without_imports(name)
    names = [found[1] for found in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1 \2", text)
    if strange := _OTHER.search(body):
        raise StowageError(f"the browser module {name}.js has a line that cannot be joined: {strange[0]}")
    return f"const module_{name} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();"


def _without_imports(name: str) -> str:
    """A module's text with each import replaced by names taken from the constant of that module."""

    def taken(found: re.Match[str]) -> str:
        names = ", ".join(each.strip().replace(" as ", ": ") for each in found[1].split(",") if each.strip())
        return f"const {{ {names} }} = module_{found[2]};\n"

    return _IMPORT.sub(taken, _source(name))


def _source(name: str) -> str:
    path = _HERE / "js" / f"{name}.js"
    if not path.is_file():
        raise StowageError(f"there is no browser module {name}.js")
    return path.read_text()
