"""Help and lists in a narrow terminal: every line has room, and what is said may be typed as it stands."""

import shlex

import pytest

COMMANDS = (
    "models", "machines", "capture", "swap", "sweep", "compare", "explain", "fit", "levers", "partition", "run",
    "selftest", "pack", "snapshot", "validate",
)  # fmt: skip


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_no_line_of_a_help_is_longer_than_a_terminal_is_wide(planner, command) -> None:
    lines = planner(*command.split(), "--help").out.splitlines()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_an_example_is_a_command_of_ours_also_where_it_goes_on_in_a_second_line(planner, command) -> None:
    _, _, shown = planner(*command.split(), "--help").out.partition("  Example")
    examples = shown.partition(":\n")[2].replace("\\\n", "").strip().splitlines()
    assert examples
    for example in map(shlex.split, examples):
        program = example.index("python") if "python" in example else example.index("-m") - 1
        assert program == 0 or example[0] == "torchrun"
        module = example[example.index("-m") + 1 :]
        assert module[0] in ("planner", "widgets")
        assert not command or module[0] == "widgets" or module[1] in COMMANDS


def test_all_commands_are_listed_with_a_whole_sentence_each(planner) -> None:
    text = planner("--help").out
    for command in COMMANDS:
        (line,) = (line for line in text.splitlines() if line.split()[:1] == [command])
        assert line.endswith(".")
        assert not line.endswith("...")


def test_a_list_of_machines_has_a_line_for_each(planner) -> None:
    table, _, rest = planner("machines").out.partition("\n\n")
    names = [machine["name"] for machine in planner("machines", "--json").json["machines"]]
    assert [line.split()[0] for line in table.splitlines()[1:]] == names
    assert all(len(line) <= 80 or "op-times" in line for line in [*table.splitlines(), *rest.splitlines()])


def test_a_model_of_the_list_may_be_typed_as_it_stands_also_where_it_goes_on_in_a_second_line(planner) -> None:
    text = planner("models").out
    assert max(map(len, text.splitlines())) <= 80
    assert any(line.endswith("\\") for line in text.splitlines())
    words = text.replace("\\\n", "").split()
    for model in planner("models", "--json").json["models"]:
        settings = ",".join(f"{key}={value}" for key, value in model["arguments"].items())
        assert f"{model['name']}:{settings}" in words
