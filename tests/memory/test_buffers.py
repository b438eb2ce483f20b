import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.memory import Buffers, pack, read_buffers, write_buffers

GOOD = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n"


def file(tmp_path, text):
    path = tmp_path / "buffers.csv"
    path.write_bytes(text.encode())
    return path


def test_the_minimalloc_format_is_read(tmp_path):
    read = read_buffers(file(tmp_path, GOOD))
    assert read.ids == ("b1", "b2")
    assert (list(read.lower), list(read.upper), list(read.sizes)) == ([0, 3], [3, 9], [4, 4])
    assert read.offsets is None
    assert read.lines == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "size,id,upper,lower\n4,b1,3,0\n4,b2,9,3\n", GOOD.replace("\n", "\r\n"), GOOD.replace(",", " , "),
        "\n" + GOOD + "\n\n", GOOD.rstrip(), GOOD.replace("b1", '"b1"'),
    ],
)  # fmt: skip
def test_columns_spaces_and_line_ends_do_not_matter(tmp_path, text):
    read = read_buffers(file(tmp_path, text))
    assert (read.ids, list(read.upper)) == (("b1", "b2"), [3, 9])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "first line must be id,lower,upper,size"),
        ("b1,0,3,4\n", "first line must be id,lower,upper,size"),
        ("id,start,end,size\nb1,0,3,4\n", "first line must be"),
        ("id,lower,upper,size,size\nb1,0,3,4,4\n", "first line must be"),
        (GOOD + "b3,0,1\n", "line 4 of .* has 3 values and the first line names 4"),
        (GOOD + "b3,0,1,4,9\n", "line 4 of .* has 5 values"),
        (GOOD + "b1,0,1,4\n", "line 4 of .* names buffer b1 again after line 2"),
        (GOOD + "b3,0,1,four\n", "line 4 of .* has size 'four'"),
        (GOOD + "b3,0,1,4.5\n", "has size '4.5'"),
        (GOOD + "b3,0,1,\n", "has size ''"),
        (GOOD + "b3,0,1,1e3\n", "has size '1e3'"),
        (GOOD + "b3,0,1,99999999999999999999999\n", "64 bits"),
        (GOOD + "b3,0,1,9223372036854775807\n", "64 bits"),
        (GOOD + "b3,0,1,9007199254740993\n", r"line 4 of .* has size 9007199254740993, above 2\*\*53"),
        ("id,lower,upper,size,offset\nb1,0,3,4,9007199254740993\n", "line 2 of .* has offset 9007199254740993, above"),
        (GOOD + "b3,0,1,0\n", "line 4 of .* has size 0, which needs no offset; leave the line out"),
        (GOOD + "\nb2,0,1,4\n", "line 5 of .* names buffer b2 again after line 3"),
        (GOOD + "b3,0,1,-4\n", "size -4, which must not be negative"),
        (GOOD + "b3,2,2,4\n", "upper 2, which must be above lower 2"),
        (GOOD + "b3,2,1,4\n", "upper 1, which must be above lower 2"),
        ("id,lower,upper,size,offset\nb1,0,3,4,-1\n", "offset -1, which must not be negative"),
        (GOOD + '"b3,0,1,4\n', "is not CSV"),
        ("id,lower,upper,size,gaps\nb1,0,9,4,3\n", "line 2 of .* has the gap '3'; write gaps as 3-5 8-9"),
        ("id,lower,upper,size,gaps\nb1,0,9,4,3-x\n", "has the gap '3-x'"),
        (
            "id,lower,upper,size,gaps\nb1,0,9,4,0-3\n",
            "the gap 0-3, which must begin after 0 and end later and before 9",
        ),
        ("id,lower,upper,size,gaps\nb1,0,9,4,5-9\n", "has the gap 5-9"),
        ("id,lower,upper,size,gaps\nb1,0,9,4,5-3\n", "has the gap 5-3"),
        ("id,lower,upper,size,gaps\nb1,0,9,4,3-5 5-7\n", "has the gap 5-7, which must begin after 5"),
        ("id,lower,upper,size,gaps,gaps\nb1,0,9,4,,\n", "first line must be"),
        (GOOD + "b3,٣,9,4\n", "lower"),
    ],
)
def test_a_malformed_file_is_refused_in_one_sentence(tmp_path, text, says):
    with pytest.raises(StowageError, match=says) as error:
        read_buffers(file(tmp_path, text))
    assert "\n" not in str(error.value)


def test_a_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(StowageError, match="check the path"):
        read_buffers(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StowageError, match="not a text file"):
        read_buffers(tmp_path / "binary.csv")


def test_offsets_are_written_and_read_back(tmp_path):
    buffers = read_buffers(file(tmp_path, GOOD))
    packing = pack(buffers.lower, buffers.upper, buffers.sizes)
    write_buffers(tmp_path / "out.csv", buffers, packing.offsets)
    assert (tmp_path / "out.csv").read_text().startswith("id,lower,upper,size,offset\nb1,0,3,4,0\n")
    again = read_buffers(tmp_path / "out.csv")
    assert list(again.offsets) == list(packing.offsets)


def test_a_buffer_needs_no_memory_in_its_gaps(tmp_path):
    text = "id,lower,upper,size,gaps\na,-4,9,6,-3--1 3-5\nb,3,5,6,\nc,-3,-1,6,\n"
    buffers = read_buffers(file(tmp_path, text))
    assert buffers.gaps == (((-3, -1), (3, 5)), (), ())
    packing = pack(buffers.lower, buffers.upper, buffers.sizes, gaps=buffers.gaps)
    assert packing.peak == 6
    write_buffers(tmp_path / "out.csv", buffers, packing.offsets)
    assert (tmp_path / "out.csv").read_text().startswith("id,lower,upper,size,gaps,offset\na,-4,9,6,-3--1 3-5,0\n")
    assert read_buffers(tmp_path / "out.csv").gaps == buffers.gaps


def test_a_failed_write_leaves_the_earlier_file(tmp_path):
    with pytest.raises(StowageError, match="cannot write"):
        write_buffers(tmp_path / "nowhere" / "out.csv", read_buffers(file(tmp_path, GOOD)))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Z", "Cs"]), min_size=1),
            st.integers(-50, 50), st.integers(1, 50), st.integers(1, 2**53), st.integers(0, 2**53),
        ),
        unique_by=lambda row: row[0],
    )
)  # fmt: skip
def test_whatever_is_written_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("buffers") / "b.csv"
    columns = np.array([row[1:] for row in rows], np.int64).reshape(-1, 4).T
    buffers = Buffers(tuple(row[0] for row in rows), columns[0], columns[0] + columns[1], columns[2], columns[3])
    write_buffers(path, buffers)
    again = read_buffers(path)
    assert again.ids == buffers.ids
    for name in ("lower", "upper", "sizes", "offsets"):
        assert (getattr(again, name) == getattr(buffers, name)).all()
