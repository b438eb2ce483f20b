"""The one script and the one style sheet that a browser is given."""

import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from planner.errors import StowageError
from widgets.page import bundle

ROOT = Path(bundle.__file__).parent
MODULES = sorted((ROOT / "js").rglob("*.js"))
ENTRIES = ("index", "lazy_loader", "saved_page")
#: Of what a notebook saves with every widget.
MOST_BYTES = 125_000


def test_it_exports_what_a_widget_needs_and_imports_nothing() -> None:
    script = bundle.script()
    assert script.endswith("export default{render}")
    assert not re.search(r"\bimport\b|\bexport (?!default)", script)


def test_every_module_is_in_it_once() -> None:
    made = [int(number) for number in re.findall(r"(?<![\w$])\$(\d+)=", bundle.script())]
    assert sorted(made) == list(range(len(MODULES) - len(ENTRIES))), "one is there twice, or nothing imports it"


def test_folders_import_one_way_and_none_has_more_files_than_one_overlooks() -> None:
    below: dict[str, set[str]] = {}
    for path in MODULES:
        needed = {
            (path.parent / name).resolve()
            for name in re.findall(r"(?:from|^import) '(\..*?)'", path.read_text(), re.MULTILINE)
        }
        below.setdefault(path.parent.name, set()).update({each.parent.name for each in needed} - {path.parent.name})
    list(TopologicalSorter(below).static_order())  # which refuses a circle
    assert max(Counter(path.parent for path in MODULES).values()) <= 12


def test_script_and_style_together_are_small() -> None:
    assert len(bundle.packed_script()) <= MOST_BYTES


def test_nothing_is_loaded_from_a_network() -> None:
    text = bundle.script() + bundle.style()
    found = re.findall(
        r"""https?://[^\s'"`)]+|@import|\burl\((?!['"]?data:|#)|\bfetch\(|XMLHttpRequest|WebSocket""", text
    )
    assert set(found) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not addresses


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_says_what_it_is_about_in_lines_one_can_read(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("// ")
    assert max(map(len, lines)) <= 120
    assert len(lines) <= 300


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"index": "import { a } from './a.js';\n", "a": "import { b } from './b.js';\nexport const a = 1;\n",
          "b": "import { a } from './a.js';\nexport const b = 2;\n"}, "a -> b -> a import each other"),
        ({"index": "import { a } from './gone.js';\n"}, "no browser module gone.js"),
        ({"index": "import { a, b } from './a.js';\n", "a": "export const a = 1;\n"},
         "index.js imports b, which a.js does not export"),
        ({"index": "import { a } from './a.js';\n", "a": "import x from 'https://else/x.js';\nexport const a = 1;\n"},
         "a.js has a line that cannot be joined"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused_in_a_sentence(
    files: dict[str, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "js").mkdir()
    for name, text in files.items():
        (tmp_path / "js" / f"{name}.js").write_text(text)
    monkeypatch.setattr(bundle, "_HERE", tmp_path)
    bundle.script.cache_clear()
    with pytest.raises(StowageError, match=sentence):
        bundle.script()
    bundle.script.cache_clear()
