"""What each lever does, against running each changed step: the bytes that it writes, and eager PyTorch's bits."""

import re
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

import planner
from planner import StowageError
from planner.cancel import Cancelled, CancelToken
from planner.levers import Numbers
from planner.machine import PRESETS
from planner.memory import pack_step
from planner.units import format_bytes
from tests.effort import EFFORT, combinations
from tests.levers.arena_meter import PAINTS, run_measured

H100 = PRESETS["h100"]


def small(memory):
    """An H100 with little memory beside the reserve."""
    reserve = sum(part.bytes for part in planner.fit.reserve_of(H100.device))
    return replace(H100, devices=(replace(H100.device, memory_bytes=memory + reserve),))


def unswapped(graph):
    """The captured order with every storage at its offset of the lowest packing."""
    plan = planner.plan_swaps(graph, H100, "100%", time_limit=0, progress=False)
    packing = pack_step(graph, alignment=H100.device.alignment)
    placed = [replace(stay, offset=int(packing.offsets[stay.storage])) for stay in plan.residencies]
    return replace(plan, residencies=tuple(placed), peak_bytes=packing.peak, budget_bytes=2**30)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(
            *(nn.Sequential(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.ReLU()) for _ in range(2))
        )

    def forward(self, x):
        return self.blocks(x).mean((2, 3))


class Language(nn.Module):
    """Residual blocks on embedded tokens."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(40, 8)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)) for _ in range(2))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = x + block(x)
        return x


def mean_square(model, batch):
    return model(batch).square().mean()


def language():
    return planner.TrainStep(Language, torch.arange(160).reshape(4, 40) % 40, loss=mean_square)


STEPS = {
    "convolutions": lambda: planner.TrainStep(Convolutions, lambda: torch.randn(8, 3, 10, 10), loss=mean_square),
    "language": language,
    "mlp": lambda: planner.zoo.load("mlp:layers=2,hidden=32,batch=64,optimizer=adam"),
    "gpt": lambda: planner.zoo.load("gpt:layers=2,hidden=16,heads=2,sequence=8,vocabulary=40,batch=4"),
    "forgetful": lambda: planner.TrainStep(Forgetful, lambda: torch.randn(64, 16), loss=mean_square),
}
WIDE, DEEP = "mlp:layers=2,hidden=512,batch=512", "mlp:layers=6,hidden=64,batch=512"
SHOWN = {
    "convolutions": ["half the batch", "2 micro-batches", "checkpointed blocks", "SGD with momentum"],
    "language": ["twice the batch", "4 micro-batches", "checkpointed blocks", "embeddings frozen", "first half frozen"],
    "mlp": ["SGD", "AdamW", "autocast to bfloat16", "parameters in bfloat16"],
}


@cache
def found(name):
    return planner.levers(STEPS[name](), H100, device="cpu", progress=False)


ROWS = [(name, row) for name, rows in SHOWN.items() for row in rows]
if EFFORT > 1:
    ROWS += [("gpt", row) for row in [*SHOWN["language"], "Adam", "parameters in bfloat16"]]


@pytest.mark.parametrize(("model", "name"), ROWS)
def test_a_peak_is_to_the_byte_what_the_changed_step_writes_and_its_numbers_are_eagers(model, name):
    row = found(model)[name]
    outputs, highest = run_measured(row.step, row.graph, unswapped(row.graph))
    assert highest == row.peak_bytes
    assert torch.equal(outputs[0], row.step.clone().eager())


def state(module):
    """What a module is: its classes, its attributes' names and its numbers."""
    parts = [(name, type(part), sorted(vars(part))) for name, part in module.named_modules()]
    tensors = module.state_dict(keep_vars=True)
    return parts, {name: (one, one.clone(), one.requires_grad, one.grad) for name, one in tensors.items()}


def test_a_given_model_batch_and_optimizer_stay_as_they_are_even_where_a_row_is_run():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = planner.TrainStep(model, torch.ones(2, 4), loss=mean_square, optimizer=optimizer)
    before, batch = state(model), step.batch.clone()
    levers = planner.levers(step, H100, progress=False)
    for name in ("checkpointed blocks", "first half frozen", "Adam", "half the batch"):
        levers[name].step.eager()
    assert state(model)[0] == before[0]
    for name, (one, value, trained, gradient) in state(model)[1].items():
        assert one is before[1][name][0]
        assert torch.equal(value, before[1][name][1])
        assert (trained, gradient) == before[1][name][2:]
    assert torch.equal(step.batch, batch)
    assert optimizer.param_groups[0]["params"][0] is model[0].weight
    assert not optimizer.state
    assert levers["as given"].step is step
    reasons = {one.name: one.reason for one in levers.unchangeable}
    assert reasons["parameters in bfloat16"].startswith("the live optimizer is bound to")


def test_a_gradient_scaler_is_kept_and_that_of_the_given_step_stays_as_it_is():
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60, growth_interval=3)
    given = planner.zoo.load("mlp:layers=2,hidden=32,batch=16")
    given.scaler = scaler
    levers = planner.levers(given, planner.machine("laptop"), progress=False)
    assert levers["as given"].step.scaler.get_growth_interval() == 3
    changed = levers["2 micro-batches"].step
    assert planner.run(changed, steps=2, check=True, progress=False).wait().mismatches == ()
    assert changed.scaler.state_dict() != scaler.state_dict()
    assert scaler.state_dict() == torch.amp.GradScaler("cpu", init_scale=2.0**60, growth_interval=3).state_dict()


def test_a_model_that_a_function_returns_again_and_again_stays_as_it_is_too():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    before = state(model)
    levers = planner.levers(planner.TrainStep(lambda: model, torch.ones(2, 4), loss=mean_square), H100, progress=False)
    for name in ("checkpointed blocks", "first half frozen", "parameters in bfloat16"):
        levers[name].step.eager()
    parts, tensors = state(model)
    assert parts == before[0]
    for name, (one, value, trained, gradient) in tensors.items():
        assert one is before[1][name][0]
        assert torch.equal(value, before[1][name][1])
        assert (trained, gradient) == before[1][name][2:]


def test_checkpointing_keeps_the_bits_of_the_given_step_and_micro_batches_those_of_eager_up_to_rounding():
    levers = found("language")
    names = ("as given", "checkpointed blocks", "2 micro-batches")
    given, checkpointed, cut = (levers[name].step.clone() for name in names)
    losses = [[one.eager() for _ in range(3)] for one in (given, checkpointed, cut)]
    assert levers["checkpointed blocks"].changes_numbers is Numbers.SAME
    assert losses[0] == losses[1]
    assert all(torch.equal(one, given.state()[key]) for key, one in checkpointed.state().items())
    assert levers["2 micro-batches"].changes_numbers is Numbers.ROUNDING
    torch.testing.assert_close(losses[0], losses[2])
    assert levers["checkpointed blocks"].peak_bytes < levers["as given"].peak_bytes
    assert levers["checkpointed blocks"].step_seconds > levers["as given"].step_seconds


def test_batch_statistics_are_said_to_change_in_parts_and_where_blocks_run_twice():
    levers = found("convolutions")
    assert levers["2 micro-batches"].changes_numbers is levers["checkpointed blocks"].changes_numbers is Numbers.CHANGED
    assert "statistics" in levers["2 micro-batches"].change
    assert "updated twice" in levers["checkpointed blocks"].change


def test_pairs_are_of_levers_that_each_lower_the_peak():
    for name in SHOWN:
        levers = found(name)
        pairs = [row for row in levers if row.parts]
        assert len(pairs) <= 6
        for row in pairs:
            assert all(levers[part].peak_bytes < levers["as given"].peak_bytes for part in row.parts)
    assert any(row.parts for row in found("language"))


def test_rows_count_the_batch_and_say_whether_they_fit():
    levers = found("mlp")
    assert levers.unit == "rows"
    for name, rows in {"as given": 64, "half the batch": 32, "twice the batch": 128, "Adam": None}.items():
        if rows is None:
            assert name not in {row.name for row in levers}  # the step has it
        else:
            assert levers[name].samples_per_second * levers[name].step_seconds == pytest.approx(rows)
    peak = levers["as given"].peak_bytes
    assert [row.fits for row in levers] == [row.peak_bytes <= levers.budget_bytes for row in levers]
    assert peak < levers.budget_bytes


def test_ops_are_those_of_the_machine_unless_others_are_asked_for():
    step = STEPS["forgetful"]()
    of_a_gpu = planner.levers(step, H100, progress=False)
    assert {row.device for row in of_a_gpu} == {"cuda"}
    assert of_a_gpu["as given"].graph is planner.capture(step, device="cuda")
    assert of_a_gpu.approximate.startswith("the step was captured without a GPU: ")
    of_the_cpu = found("forgetful")
    assert {row.device for row in of_the_cpu} == {"cpu"}
    assert of_a_gpu["as given"].peak_bytes != of_the_cpu["as given"].peak_bytes  # by the masks of dropout


def test_a_step_that_does_not_fit_is_planned_for_the_memory_that_there_is():
    step = STEPS["mlp"]()
    memory = int(0.7 * found("mlp")["as given"].peak_bytes)
    levers = planner.levers(step, small(memory), device="cpu", evaluations=3, progress=False)
    plan = levers["swapped by a plan"].plan
    assert planner.validate(plan, levers["swapped by a plan"].graph) == []
    assert levers["swapped by a plan"].fits
    assert not levers["as given"].fits
    assert levers["swapped by a plan"].step is step
    assert plan.peak_bytes == levers["swapped by a plan"].peak_bytes <= memory == levers.budget_bytes


def test_the_peak_of_a_plan_includes_what_lies_outside_of_the_arena_as_other_peaks_do():
    step = planner.zoo.load("gpt:layers=2,hidden=64,heads=2,sequence=64,batch=4")
    levers = planner.levers(step, H100, budget="60%", evaluations=3, progress=False)
    row = levers["swapped by a plan"]
    graph = planner.capture(step, device="cuda", progress=False)
    assert graph.outside_bytes > 0  # temporary memory of attention
    assert levers["as given"].peak_bytes == planner.memory.step_peak(graph, H100.device.alignment)
    assert row.peak_bytes == row.plan.peak_bytes + graph.outside_bytes <= levers.budget_bytes
    assert row.fits


def test_progress_says_how_many_were_tried_and_the_lowest_peak_so_far():
    said: list[str] = []
    levers = planner.levers(
        STEPS["mlp"](), H100, budget="70%", evaluations=1, progress=lambda _, doing: said.append(doing)
    )
    counts = {}
    for doing in dict.fromkeys(said):
        if match := re.fullmatch(r"lowest peak (.*) \((.*)\); trying .* \((\d+) of (\d+) (\w+?)s? done\)", doing):
            peak, name, done, count, what = match.groups()
            assert peak == format_bytes(levers[name].peak_bytes)
            counts.setdefault(what, []).append((int(done), int(count)))
    assert set(counts) == {"lever", "plan", "pair"}
    for each in counts.values():
        assert each == [(done, len(each)) for done in range(len(each))]
    rest = [doing for doing in said if not doing.startswith("lowest peak")]
    assert len(rest) < len(said) / 2


def test_a_budget_is_the_memory_for_the_step_itself():
    step, tiny = STEPS["mlp"](), planner.machine("l4", memory="100MB")  # all of which is reserved
    peak = found("mlp")["as given"].peak_bytes
    for budget in ("70%", int(0.7 * peak)):
        levers = planner.levers(step, tiny, budget=budget, device="cpu", evaluations=3, progress=False)
        assert levers.budget_bytes == int(0.7 * peak)
        assert [row.fits for row in levers] == [row.peak_bytes <= levers.budget_bytes for row in levers]
        assert not levers["as given"].fits
        assert levers["swapped by a plan"].fits


@pytest.mark.parametrize(
    ("search", "share"),
    combinations([(WIDE, 1), (DEEP, 20), (DEEP, 1), (WIDE, 20)], ["50%", "60%", "75%", "90%"]),
)
def test_a_plan_that_may_do_both_is_no_slower_than_one_that_may_do_only_one(search, share):
    model, evaluations = search
    step = planner.zoo.load(model)
    levers = planner.levers(step, H100, budget=share, evaluations=evaluations, progress=False)
    plans = {row.name: row for row in levers if row.plan is not None}
    both = plans.pop("swapped and recomputed by a plan")
    assert plans
    assert both.step_seconds <= min(row.step_seconds for row in plans.values())
    assert both.peak_bytes <= levers.budget_bytes
    assert planner.validate(both.plan, both.graph) == []
    does = {"swaps": bool(both.plan.swap_ins), "recomputes": len(both.plan.order) > len(both.graph.ops)}
    for word in does:  # where another row's plan is the fastest, it says what that one does
        if f"the fastest plan found only {word}" in both.change:
            assert [one for one in does if does[one]] == [word]


class Forgetful(nn.Module):
    """Repeated blocks with dropout, for which PyTorch's checkpointing draws the same numbers again."""

    def __init__(self):
        super().__init__()
        parts = (nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 16)) for _ in range(3))
        self.blocks = nn.Sequential(*parts)

    def forward(self, x):
        return self.blocks(x)


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_checkpointing_and_a_plan_that_only_recomputes_are_rows_with_eagers_bits_where_there_is_dropout(kind):
    step, peak = STEPS["forgetful"](), found("forgetful")["as given"].peak_bytes
    machine = small(int(0.75 * peak))
    if kind == "cpu":
        device = replace(machine.device, kind="cpu", memory_bytes=int(0.75 * peak))
        machine = replace(machine, devices=(device,))
    levers = planner.levers(step, machine, device="cpu", evaluations=20, progress=False)
    row = levers["recomputed by a plan"]
    assert (row.fits, row.changes_numbers, levers["as given"].fits) == (True, Numbers.SAME, False)
    assert (len(row.plan.swap_ins), row.plan.host_bytes) == (0, 0)
    assert len(row.plan.order) > len(row.graph.ops)
    assert planner.validate(row.plan, row.graph) == []
    assert row.peak_bytes == row.plan.peak_bytes <= levers.budget_bytes < peak
    assert row.step_seconds > levers["as given"].step_seconds
    torch.manual_seed(3)
    outputs, highest = run_measured(step, row.graph, row.plan)
    assert highest <= row.peak_bytes
    torch.manual_seed(3)
    eager = [step.clone().eager() for _ in PAINTS]  # as the meter makes a step for each, which draw one after the other
    assert torch.equal(outputs[0], eager[-1])
    checkpointed = levers["checkpointed blocks"]
    assert (checkpointed.changes_numbers, checkpointed.peak_bytes < peak) == (Numbers.SAME, True)
    torch.manual_seed(3)
    result = planner.run(checkpointed.step, steps=len(PAINTS), check=True).wait()
    assert (result.mismatches, result.losses[0]) == ((), float(eager[0]))
    swapped = {one.name for one in (levers.unchangeable if kind == "cpu" else levers)}
    assert "swapped by a plan" in swapped


@pytest.mark.parametrize(
    ("make", "reasons"),
    [
        (lambda: planner.TrainStep(nn.Linear(4, 4), {"x": torch.ones(3, 4), "y": torch.ones(2)},
                                   loss=lambda model, batch: model(batch["x"]).mean() + batch["y"].mean()),
         {"batch": "batch/x has 3 rows along dimension 0 and batch/y has 2, so that there is no batch size to change",
          "2 micro-batches": "do not agree",
          "checkpointed blocks": "no ModuleList or Sequential of the model has two members",
          "embeddings frozen": "no nn.Embedding"}),
        (lambda: planner.TrainStep(nn.Linear(4, 4), torch.ones(3, 4), loss=mean_square, autocast=torch.bfloat16),
         {"half the batch": "3 rows along dimension 0, which two does not divide", "autocast": "has it already"}),
        (lambda: planner.TrainStep(nn.Linear(4, 4), [torch.ones(2, 4), ["a", "b"]],
                                   loss=lambda model, batch: model(batch[0]).mean()),
         {"twice the batch": "batch/1 has an entry for each row and is no tensor"}),
        (lambda: planner.InferenceStep(nn.Linear(4, 4), torch.ones(2, 4)),
         {"optimizer": "the step is inference", "checkpointing": "the step is inference"}),
    ],
)  # fmt: skip
def test_what_a_step_cannot_change_is_listed_with_the_reason(make, reasons):
    levers = planner.levers(make(), H100, progress=False)
    said = {one.name: one.reason for one in levers.unchangeable}
    assert not said.keys() & {row.name for row in levers}
    for name, reason in reasons.items():
        assert reason in said[name]
    assert all(reason in repr(levers) for reason in said.values())


@pytest.mark.parametrize("by_function", [False, True])
def test_a_loss_that_holds_the_model_itself_is_not_taken_for_one_of_its_copy(by_function):
    model = nn.Linear(4, 4)
    given = (lambda: model) if by_function else model
    step = planner.TrainStep(given, torch.ones(2, 4), loss=lambda _, batch: model(batch).square().mean())
    levers = planner.levers(step, H100, progress=False)
    assert [row.name for row in levers] == ["as given"]
    assert all(one.reason for one in levers.unchangeable)
    assert "the loss refers to the model itself" in repr(levers)


def test_the_table_has_a_line_for_each_row_and_the_notebooks_has_the_same_cells():
    levers = found("language")
    text, page = repr(levers), levers._repr_html_()
    assert levers.title in text
    assert levers.title in page
    for row in levers:
        assert any(line.startswith(row.name) for line in text.splitlines())
        assert f">{row.change}</td>" in page


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"step": nn.Linear(2, 2)}, "levers are for a step, not a Linear"),
        ({"machine": "h100"}, "'h100' is not a machine"),
        ({"budget": "half"}, '"half" is not a budget'),
        ({"seed": -1}, "seed must be a whole number of 0 or more, got -1"),
        ({"evaluations": 0.5}, "evaluations must be a whole number of 0 or more, got 0.5"),
        ({"machine": planner.machine("l4", memory="100MB")}, "of memory, of which .* are reserved beside the plan"),
    ],
)
def test_a_mistake_is_refused_in_a_sentence(changed, sentence):
    asked = {"step": planner.zoo.mlp(), "machine": H100, **changed}
    with pytest.raises(StowageError, match=sentence):
        planner.levers(**asked, progress=False)


def test_cancelling_ends_it_without_an_answer():
    stop, seen = CancelToken(), []

    def look(share, doing):
        seen.append((share, doing))
        if "trying half the batch" in doing:
            stop.cancel()

    with pytest.raises(Cancelled):
        planner.levers(STEPS["mlp"](), H100, progress=look, stop=stop)
    assert [share for share, _ in seen] == sorted(share for share, _ in seen)
