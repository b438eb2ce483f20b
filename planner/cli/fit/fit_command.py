"""The command, and how its range is written."""

from __future__ import annotations

import re

import click

from planner.cli.fit.fit_output import facts_of, rows_of
from planner.cli.output import examples, json_option, machine_device_option, show, words_of
from planner.errors import StowageError
from planner.progress import reporting

_EPILOG = examples(
    "python -m planner fit gpt --machine h100 --over batch=1..64",
    "python -m planner fit gpt:layers=24,hidden=2048,heads=16,sequence=1024 --machine h100 --over batch=1..32",
    "python -m planner fit mlp:layers=2,hidden=16384 --machine laptop --over batch=1000..60000 --json",
    "python -m planner fit path/to/file.py:function --machine h200 --over batch=1.. --slower 5%,20%",
)

# Python makes no number of more than 4300 digits
_RANGE = re.compile(r"\s*([^\W\d]\w*)\s*=\s*(\d{1,4000})\s*\.\.\s*(\d{1,4000})?\s*", re.ASCII)


@click.command("fit", short_help="The largest batch or other size that fits on a machine.", epilog=_EPILOG)
@click.argument("model")
@click.option(
    "--machine",
    "machine_name",
    required=True,
    help="A GPU; see `planner machines`, which also says how to change its figures.",
)
@click.option(
    "--over",
    required=True,
    help="The argument to vary, its first and its last value: batch=1..64, or batch=1.. for no last one.",
)
@click.option(
    "--slower",
    "shares",
    default="10%,50%",
    show_default=True,
    help="How much slower than with infinite memory a step may be; there is an answer for each.",
)
@machine_device_option
@json_option
def command(model: str, machine_name: str, over: str, shares: str, captured_for: str | None, as_json: bool) -> None:
    """Find the largest batch, sequence or other size of MODEL that fits on a machine; no GPU is needed.

    MODEL is a zoo name with key=value arguments (see `planner models`), of which one whole number is varied, or
    path/to/file.py:function, where the function takes that argument and returns a planner.TrainStep or
    planner.InferenceStep. With a default, as in `def function(batch=8):`, it serves the other commands too, which call
    it without arguments.

    Without a last value, the first one is doubled until a value does not fit, up to which all are asked about; if the
    step itself fails at one, as beyond the positions of a language model, up to the last that works. Op times come from
    a roofline. Values are found by bisection. Where the same ops run in all sizes, most are predicted from captured
    ones, while each answer and the next larger value are captured. Larger values that bisection skipped are tried too
    if that is quick. The fewer values, the sooner the answer: a range without a last value takes several times as long
    as one to 32. Progress says what was found so far, and so does Ctrl-C, which ends it with exit status 130.

    Plans here swap and run no op again. Those of `planner swap` may do both; where they are faster, a larger value than
    the one found may be fast enough.

    \b
    What the rows say:
      step         MODEL with all its settings but the one that is varied
      machine      its memory, and the host's, which a preset only assumes:
                   l4:host_memory=64GB sets it, as memory, host_link and hosts
      budget       device memory for the step, without what is reserved
      reserved     memory that a process takes beside the step
      unswapped    the largest value with nothing swapped, and its peak
      full speed   the largest that is at most 1 % slower than with infinite
                   memory, the time of its step, how much slower that is, and
                   pinned host memory
      10% slower, 50% slower
                   the largest that is at most so much slower; --slower asks
                   for other shares
      at all       the largest that a plan was found for
      tried        how many values were tried, and how many of them were
                   predicted and not captured
      fails        values that cannot be made or captured, whatever memory
                   there is, and the error
      approximate  in what answers found on the machine itself may differ; no
                   where in nothing
    \b
    What is added to a value:
      (host memory stops ...)
                   the next one has a plan if the host has memory enough
      (the model stops ...)
                   the next one fails, whatever memory there is
      (the last asked for)
                   larger ones may fit: widen --over
      (not batch=7, nor presumably larger ones)
                   the next one was captured and fails; of the larger ones,
                   not all were tried, and one may fit only if memory or time
                   falls where the value grows
    """
    from planner import zoo
    from planner.fit import StillFitsError, check_kind, fit
    from planner.profile import kind_of_measured, machine

    name, values = _range(over)
    slower = words_of("--slower", shares)
    check_kind(machine_name, kind_of_measured(machine_name) or "")  # before anything is measured
    with reporting(True) as report:
        report(0.0, "loading the model")
        make_step, device = zoo.step_maker(model), machine(machine_name, progress=report)
        try:
            found = fit(make_step, device, {name: values}, device=captured_for, slower=slower, progress=report)
        except StillFitsError as error:
            raise StillFitsError(name, error.value, f"--over {name}={values[0]}..{64 * values[0]}") from error
    step = _in_full(model, name)
    show(facts_of(found, step, device) if as_json else rows_of(found, step, device), as_json)


def _in_full(model: str, varied: str) -> str:
    """The text of a model of the zoo with all settings but the one that is varied, so that none has to be looked up."""
    from planner import zoo

    name, _, given = model.partition(":")
    info = next((info for info in zoo.models() if info.name == name.strip()), None)
    if info is None:
        return model
    pairs = (setting.partition("=") for setting in given.split(",") if setting.strip())
    settings = {**info.arguments, **{key.strip(): value.strip() for key, _, value in pairs}}
    return f"{info.name}:{','.join(f'{key}={value}' for key, value in settings.items() if key != varied)}"


def _range(text: str) -> tuple[str, range | tuple[int, None]]:
    """The argument and the values that `batch=1..64` names, or `batch=1..` without a last one."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise StowageError(f"cannot read --over {text!r}; write an argument, its first and its last value: batch=1..64")
    name, first = match[1], int(match[2])
    if match[3] is None:
        return name, (first, None)
    last = int(match[3])
    if last < first:
        raise StowageError(f"--over {text} ends below its beginning; write {name}={last}..{first}")
    return name, range(first, last + 1)
