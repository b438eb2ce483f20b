"""Live optimizers, schedules, frozen and tied parameters: what a training loop had is taken over and goes on."""

import pytest
import torch
from torch import nn

from planner import StowageError
from planner.capture import capture
from planner.graph import Kind
from planner.step import SGD, Adam, AdamW, InferenceStep, TrainStep
from tests.capture.interpreter import Interpreter, bits, differences
from tests.capture.models import Habits, Perceptron, Transformer, cross_entropy, images, mean_square, tokens, vectors


def groups(model):
    first, *rest = model.parameters()
    return [{"params": [first], "lr": 0.05, "weight_decay": 0.2}, {"params": rest}]


LIVE = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "dampened": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "maximizing": lambda p: torch.optim.SGD(p, lr=0.1, maximize=True, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
    "tensor rate": lambda p: torch.optim.Adam(p, lr=torch.tensor(1e-2)),
}


@pytest.mark.parametrize("make", LIVE.values(), ids=LIVE)
@pytest.mark.parametrize("warmed_up", [False, True], ids=["fresh", "in training"])
def test_a_live_optimizer_is_taken_over_with_groups_and_state(make, warmed_up):
    model, batch = Perceptron(0.1), vectors()
    optimizer = make(groups(model))
    if warmed_up:
        for _ in range(4):
            optimizer.zero_grad()
            cross_entropy(model, batch).backward()
            optimizer.step()
    step = TrainStep(model, batch, loss=cross_entropy, optimizer=optimizer)
    assert differences(step) == []
    step.eager()
    assert differences(step) == [], "a later run starts where the live optimizer is by then"


def test_a_live_optimizer_s_settings_are_its_own_after_a_step():
    model = Perceptron()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    TrainStep(model, vectors(), loss=cross_entropy, optimizer=optimizer).eager()
    assert optimizer.param_groups[0]["foreach"] is True


def test_parameters_unfrozen_in_mid_training_keep_counts_of_their_own():
    model, batch = Perceptron(), vectors()
    model.layers[0].requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        cross_entropy(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.layers[0].requires_grad_(True)
    step = TrainStep(model, batch, loss=cross_entropy, optimizer=optimizer)
    assert differences(step) == []
    counts = {key: float(value) for key, value in step.state().items() if key.endswith("weight/step")}
    assert sorted(counts.values()) == [0.0, 3.0]


@pytest.mark.parametrize("optimizer", [SGD, Adam, AdamW])
def test_a_learning_rate_may_be_a_function_of_the_step(optimizer):
    rates = [0.1, 0.02, 0.3, 0.004]
    step = TrainStep(Perceptron(), vectors(), loss=cross_entropy, optimizer=optimizer(lr=lambda number: rates[number]))
    assert differences(step, steps=3) == []
    step.eager()
    assert differences(step, steps=3) == [], "the schedule goes on where the live step is"
    fixed = TrainStep(Perceptron(), vectors(), loss=cross_entropy, optimizer=optimizer(lr=0.1))
    assert capture(step).program.scalars(0) != capture(fixed).program.scalars(0)


def schedulers(optimizer):
    module = torch.optim.lr_scheduler
    yield module.StepLR(optimizer, 1, 0.5)
    yield module.CosineAnnealingLR(optimizer, 5)
    yield module.OneCycleLR(optimizer, 0.5, total_steps=10)
    warm, cool = module.LinearLR(optimizer, 0.1, total_iters=2), module.ExponentialLR(optimizer, 0.9)
    yield module.SequentialLR(optimizer, [warm, cool], [2])


@pytest.mark.parametrize("place", range(4), ids=["step", "cosine", "one cycle", "sequence"])
def test_a_live_scheduler_is_followed(place):
    model = Perceptron()
    optimizer = torch.optim.SGD(groups(model), lr=0.1, momentum=0.9)
    scheduler = list(schedulers(optimizer))[place]
    step = TrainStep(model, vectors(), loss=cross_entropy, optimizer=optimizer, scheduler=scheduler)
    before = [group["lr"] for group in optimizer.param_groups]
    first, third = (sorted(capture(step).program.scalars(number).items()) for number in (0, 2))
    assert first != third
    assert differences(step, steps=4) == []
    assert [group["lr"] for group in optimizer.param_groups] == before, "looking ahead changes nothing"
    step.eager()
    assert [group["lr"] for group in optimizer.param_groups] != before
    assert differences(step, steps=3) == []


def test_learning_rates_set_by_hand_during_a_run_are_followed():
    model = Perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    program = capture(TrainStep(model, vectors(), loss=cross_entropy, optimizer=optimizer)).program
    assert set(program.scalars(0).values()) == {-0.1}
    optimizer.param_groups[0]["lr"] = 0.25
    assert set(program.scalars(1).values()) == {-0.25}


def test_steps_made_elsewhere_count():
    step = TrainStep(Perceptron(), vectors(), loss=cross_entropy, optimizer=SGD(lr=lambda number: 1.0 + number))
    step.advance(5)
    assert set(capture(step).program.scalars(0).values()) == {-6.0}


def test_frozen_parameters_are_held_but_neither_differentiated_nor_updated():
    model = Perceptron()
    model.layers[0].requires_grad_(False)
    step = TrainStep(model, vectors(), loss=cross_entropy, optimizer=Adam())
    graph = capture(step)
    assert differences(step) == []
    names = {storage.name: storage.kind for storage in graph.storages}
    assert names["layers.0.weight"] is Kind.PARAMETER
    assert not any(name.startswith("layers.0.") and ("grad" in name or "exp" in name) for name in names)
    written = {graph.storages[s].name for op in graph.ops for s in graph.writes[op.id]}
    assert "layers.0.weight" not in written


def test_tied_parameters_are_one_storage_with_one_gradient_and_one_update():
    graph = capture(TrainStep(Transformer, tokens, loss=cross_entropy, optimizer=SGD(0.1)))
    assert [s.name for s in graph.storages if s.bytes == 20 * 16 * 4 and s.kind is Kind.PARAMETER] == ["embed.weight"]
    keys = [key for _, key in graph.program.state]
    assert "model/embed.weight" in keys
    assert "model/head.weight" not in keys
    tied = next(s.id for s in graph.storages if s.name == "embed.weight")
    assert sum(tied in graph.writes[op.id] for op in graph.ops) == 1


def test_parameters_that_are_views_of_one_tensor_stay_so():
    class Sliced(nn.Module):
        def __init__(self):
            super().__init__()
            flat = torch.randn(20)
            self.left = nn.Parameter(flat[:8].view(2, 4))
            self.right = nn.Parameter(flat[8:].view(4, 3))

        def forward(self, x):
            return x @ self.left @ self.right

    step = TrainStep(Sliced(), (torch.randn(5, 2),), loss=mean_square, optimizer=SGD(0.1))
    graph = capture(step)
    assert [s.bytes for s in graph.storages if s.kind is Kind.PARAMETER] == [80]
    assert differences(step) == []


def test_a_buffer_that_forward_assigns_anew_is_copied_back():
    graph = capture(TrainStep(Habits, lambda: (torch.randn(4, 6),), loss=mean_square))
    mean = next(s.id for s in graph.storages if s.name == "mean")
    assert [op.target for op in graph.ops if mean in graph.writes[op.id]] == ["aten.copy_.default"]


def test_a_clone_shares_nothing_with_the_step():
    model = Perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = TrainStep(model, vectors(), loss=cross_entropy, optimizer=optimizer, scheduler=scheduler)
    before = {key: value.clone() for key, value in step.state().items()}
    clone = step.clone()
    clone.eager()
    clone.eager()
    assert all(bits(value) == bits(before[key]) for key, value in step.state().items())
    assert any(bits(value) != bits(before[key]) for key, value in clone.state().items())
    assert (optimizer.param_groups[0]["lr"], scheduler.last_epoch) == (0.1, 0)


def test_the_seed_decides_the_model_and_the_batch():
    first, second, other = (TrainStep(Perceptron, vectors, loss=cross_entropy, seed=seed) for seed in (3, 3, 4))
    state = torch.get_rng_state()
    assert [bits(x) for x in first.batch_leaves()] == [bits(x) for x in second.batch_leaves()]
    assert [bits(x) for x in first.batch_leaves()] != [bits(x) for x in other.batch_leaves()]
    assert all(bits(value) == bits(second.state()[key]) for key, value in first.state().items())
    assert torch.equal(torch.get_rng_state(), state), "making them leaves the generator as it was"


@pytest.mark.parametrize("batch", [torch.randn(3, 12), (torch.randn(3, 12),), {"x": torch.randn(3, 12)}], ids=type)
def test_inference_takes_a_tensor_arguments_or_named_arguments(batch):
    model = Perceptron(0.5)
    step = InferenceStep(model, batch)
    graph = capture(step)
    assert model.training, "the model's mode is as it was"
    assert {op.phase for op in graph.ops} == {"forward"}
    assert not any(op.random for op in graph.ops), "dropout is off"
    (output,) = Interpreter(step).run(1).outputs[0]
    assert bits(output) == bits(step.eager())


def test_inference_returns_every_tensor_of_a_nested_result():
    class Nested(nn.Module):
        def forward(self, x):
            return {"double": 2 * x, "more": [x + 1, (x.relu(), "text")]}

    step = InferenceStep(Nested(), images()[0])
    graph = capture(step)
    assert len(graph.outputs) == 3
    assert {graph.storages[s].kind for s in graph.output_storages} == {Kind.OUTPUT}
    assert [bits(x) for x in Interpreter(step).run(1).outputs[0]] == [
        bits(x) for x in step.passes(step.model, step.batch, lambda _: None)
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"optimizer": torch.optim.RMSprop}, "RMSprop cannot be captured: use torch.optim.SGD"),
        (
            {"optimizer": "adam"},
            "the optimizer is a str: pass an SGD, Adam or AdamW optimizer, such as",
        ),
        ({"micro_batches": 0}, "micro_batches is 0: it must be at least 1"),
        ({"clip_norm": -1.0}, "clip_norm is -1.0: it must be above 0"),
        ({"autocast": "bf16"}, "autocast is 'bf16': pass a dtype such as torch.bfloat16"),
        ({"optimizer": lambda p: torch.optim.Adam(p, capturable=True)}, "make it with capturable=False"),
        ({"optimizer": lambda p: torch.optim.AdamW(p, fused=True)}, "make it with fused=False"),
    ],
    ids=["other optimizer", "a name", "no micro-batch", "negative norm", "a name for a dtype", "capturable", "fused"],
)
def test_settings_that_make_no_sense_are_one_sentence(options, words):
    model = Perceptron()
    if callable(options.get("optimizer")):
        options = {"optimizer": options["optimizer"](model.parameters())}
    with pytest.raises(StowageError, match=words):
        TrainStep(model, vectors(), loss=cross_entropy, **options)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, Adam])
def test_an_optimizer_is_given_and_not_its_class(kind):
    sentence = f"the optimizer is the class {kind.__name__}: pass an instance of SGD, Adam or AdamW, such as"
    with pytest.raises(StowageError, match=sentence):
        TrainStep(Perceptron(), vectors(), loss=cross_entropy, optimizer=kind)


def test_an_optimizer_of_another_model_is_refused():
    optimizer = torch.optim.SGD(Perceptron().parameters(), lr=0.1)
    with pytest.raises(StowageError, match=r"a parameter of shape \(24, 12\) that is not the model's"):
        capture(TrainStep(Perceptron(), vectors(), loss=cross_entropy, optimizer=optimizer))
    with pytest.raises(StowageError, match="belongs to one module"):
        TrainStep(Perceptron, vectors(), loss=cross_entropy, optimizer=optimizer)
    other = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(Perceptron().parameters(), lr=0.1), 1)
    with pytest.raises(StowageError, match="the scheduler belongs to another optimizer"):
        TrainStep(Perceptron(), vectors(), loss=cross_entropy, optimizer=optimizer, scheduler=other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_steps_are_counted_in_the_dtype_that_pytorch_counts_in(dtype):
    torch.set_default_dtype(dtype)
    try:
        model, batch = Perceptron(), vectors()
        expected = torch.optim.Adam(Perceptron().parameters())
        for parameter in expected.param_groups[0]["params"]:
            parameter.grad = torch.ones_like(parameter)
        expected.step()
        step = TrainStep(model, batch, loss=cross_entropy, optimizer=Adam())
        counts = {value.dtype for key, value in step.state().items() if key.endswith("/step")}
        assert counts == {state["step"].dtype for state in expected.state.values()} == {dtype}
        assert differences(step) == []
        assert differences(TrainStep(Perceptron, vectors, loss=cross_entropy, optimizer=Adam())) == []
    finally:
        torch.set_default_dtype(torch.float32)
