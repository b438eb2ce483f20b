"""Files are written whole or not at all; what is no file is written to, not replaced."""

import os
import threading

from planner.files import write_text


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
