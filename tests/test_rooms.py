"""A room that is called like a function also looks like one to whoever asks for help."""

import inspect
import pydoc

import pytest
from IPython.core.oinspect import Inspector

import planner


@pytest.mark.parametrize("name", ["capture", "machine", "run"])
def test_a_room_shows_the_signature_and_docstring_of_its_function(name: str) -> None:
    room = getattr(planner, name)
    function = getattr(room, name)
    assert inspect.signature(room) == inspect.signature(function)
    arguments = list(inspect.signature(function).parameters)
    text = pydoc.render_doc(room, renderer=pydoc.plaintext)
    assert f"\n    {name}({arguments[0]}" in text
    asked = Inspector(theme_name="nocolor").info(room, oname=name)
    assert "".join(asked["definition"].split()).startswith(f"{name}({arguments[0]}")
    for line in filter(None, map(str.strip, (inspect.getdoc(function) or "").splitlines())):
        assert line in text
        assert line in asked["docstring"]
