"""A captured step computes what eager PyTorch computes, to the bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.capture import capture
from planner.graph import check
from planner.step import SGD, Adam, AdamW, TrainStep
from tests.capture.interpreter import Interpreter, bits, differences, random_order
from tests.capture.models import MODELS, Perceptron, Residual, Transformer, cross_entropy, images, tokens, vectors

OPTIMIZERS = {
    "sgd": SGD(0.1),
    "sgd with decay": SGD(0.1, weight_decay=0.1),
    "momentum": SGD(0.1, momentum=0.9),
    "nesterov": SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "dampened": SGD(0.1, momentum=0.9, dampening=0.5),
    "adam": Adam(1e-2),
    "adam with decay": Adam(1e-2, betas=(0.8, 0.99), weight_decay=0.1),
    "adamw": AdamW(1e-2),
    "amsgrad": AdamW(1e-2, amsgrad=True, weight_decay=0.0),
}


def train_step(name, optimizer=None, **options):
    model, batch, loss = MODELS[name]
    return TrainStep(model, batch, loss=loss, optimizer=optimizer, **options)


@pytest.mark.parametrize("name", MODELS)
def test_three_steps_of_every_model_match_eager(name):
    step = train_step(name, Adam(1e-2))
    assert check(capture(step)) == []
    assert differences(step) == []


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_three_steps_of_every_optimizer_match_eager(optimizer):
    assert differences(train_step("perceptron", optimizer)) == []


def test_a_state_before_the_first_step_is_what_a_fresh_torch_optimizer_amounts_to():
    """Our eager step starts from a prepared optimizer state; a plain training loop from none."""
    torch.manual_seed(0)
    for spec in (SGD(0.1, momentum=0.9), SGD(0.1, momentum=0.9, dampening=0.5), Adam(1e-2), AdamW(1e-2, amsgrad=True)):
        model, (x, y) = Perceptron(), vectors()
        step = TrainStep(model, (x, y), loss=cross_entropy, optimizer=spec).clone()
        plain = spec.build(model.parameters())
        for _ in range(3):
            plain.zero_grad()
            cross_entropy(model, (x, y)).backward()
            plain.step()
            step.eager()
        state = step.state()
        assert all(bits(state[f"model/{name}"]) == bits(value) for name, value in model.named_parameters())


@given(st.integers(0, 2**32), st.sampled_from(["residual", "recurrent", "habits"]))
@settings(max_examples=12, deadline=None)
def test_any_order_that_keeps_the_dependencies_gives_the_same_bits(seed, name):
    step = train_step(name, SGD(0.1, momentum=0.9))
    assert differences(step, steps=2, order=random_order(capture(step), seed)) == []


@pytest.mark.parametrize("name", MODELS)
def test_results_may_overwrite_the_inputs_that_the_graph_says_they_may(name):
    torch.manual_seed(0)
    step = train_step(name, Adam(1e-2))
    plain, tight = Interpreter(step), Interpreter(step, overwriting=True)
    generator = torch.get_rng_state()
    expected = plain.run(2)
    torch.set_rng_state(generator)
    found = tight.run(2)
    assert tight.overwritten > 0
    assert [bits(o) for step in found.outputs for o in step] == [bits(o) for step in expected.outputs for o in step]
    assert {key: bits(value) for key, value in found.state.items()} == {
        key: bits(value) for key, value in expected.state.items()
    }


@pytest.mark.parametrize(
    "options",
    [
        {"clip_norm": 0.05},
        {"micro_batches": 2},
        {"autocast": torch.bfloat16},
        {"clip_norm": 0.05, "micro_batches": 4, "autocast": torch.bfloat16, "optimizer": AdamW(1e-2)},
    ],
    ids=["clipping", "micro-batches", "autocast", "all together"],
)
def test_what_training_loops_add_matches_eager(options):
    assert differences(TrainStep(Transformer, tokens, loss=cross_entropy, **options)) == []


def test_clipping_micro_batches_and_autocast_do_what_their_names_say():
    torch.manual_seed(0)
    batch, model = tokens(), Transformer(dropout=0.0)
    whole = TrainStep(model, batch, loss=cross_entropy, optimizer=SGD(1.0)).clone()
    parts = TrainStep(model, batch, loss=cross_entropy, optimizer=SGD(1.0), micro_batches=4).clone()
    clipped = TrainStep(model, batch, loss=cross_entropy, optimizer=SGD(1.0), clip_norm=1e-3).clone()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    losses = [float(step.eager()) for step in (whole, parts, clipped)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    moved = torch.stack([(clipped.state()[f"model/{name}"] - value).norm() for name, value in before.items()]).norm()
    assert float(moved) == pytest.approx(1e-3, rel=1e-2)
    for name in before:
        torch.testing.assert_close(parts.state()[f"model/{name}"], whole.state()[f"model/{name}"], rtol=1e-4, atol=1e-6)
    low = capture(TrainStep(model, batch, loss=cross_entropy, autocast=torch.bfloat16))
    assert any(tensor.dtype == "bfloat16" for tensor in low.tensors)


CONVOLUTIONS = [
    torch.nn.Conv2d(4, 6, 3, padding=1),
    torch.nn.Conv2d(4, 4, 3, groups=4),
    torch.nn.Conv2d(4, 8, 3, stride=2, groups=2),
    torch.nn.Conv2d(4, 6, 3, dilation=2, bias=False),
    torch.nn.ConvTranspose2d(4, 6, 3, stride=2),
    torch.nn.Conv2d(4, 6, 1),
    torch.nn.Conv1d(4, 6, 5),
    torch.nn.Conv3d(4, 6, 2),
]


@pytest.mark.parametrize("layer", CONVOLUTIONS, ids=str)
def test_a_convolution_s_gradients_have_the_same_bits_apart_as_together(layer):
    dimensions = layer.weight.dim() - 2
    # Behind another layer, so that the gradient of the input is wanted as well.
    first = {1: torch.nn.Conv1d, 2: torch.nn.Conv2d, 3: torch.nn.Conv3d}[dimensions](4, 4, 1)
    x = torch.randn(2, 4, *[9] * dimensions)
    step = TrainStep(torch.nn.Sequential(first, layer), x, loss=lambda model, x: model(x).square().mean())
    assert sum(op.target.startswith("aten.convolution_backward") for op in capture(step).ops) == 3
    assert differences(step, steps=2) == []


def test_channels_last_matches_eager():
    model, (x, y) = Residual().to(memory_format=torch.channels_last), images()
    x = x.to(memory_format=torch.channels_last)
    assert differences(TrainStep(model, (x, y), loss=cross_entropy, optimizer=Adam(1e-2))) == []


def test_half_precision_parameters_match_eager():
    model = Residual().to(torch.bfloat16)
    x, y = images()
    assert differences(TrainStep(model, (x.bfloat16(), y), loss=cross_entropy, optimizer=Adam(1e-2))) == []
