"""Files are written whole or not at all; what is no file is written to, not replaced."""

import os
import threading

import pytest

from planner.errors import StowageError
from planner.files import read_text, write_text

HALF = "\ud800"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "a graph")
    reader.join(10)
    assert read == ["a graph"]
    assert pipe.is_fifo()


def test_a_link_goes_on_leading_to_the_file(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    write_text(link, "a graph")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "a graph"


@pytest.mark.parametrize("name", ["a\0b", f"a{HALF}"])
def test_what_no_file_may_be_called_is_refused_in_a_sentence_that_can_be_printed(tmp_path, name):
    for act in (lambda path: write_text(path, "a graph"), read_text):
        with pytest.raises(StowageError, match="no file can be called") as refused:
            act(f"{tmp_path}/{name}")
        assert str(refused.value).isprintable()


def test_a_text_that_no_file_can_hold_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_text("a graph")
    with pytest.raises(StowageError, match="half a character"):
        write_text(path, f"layer{HALF}")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "a graph"
