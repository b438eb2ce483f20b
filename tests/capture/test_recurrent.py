"""PyTorch's own recurrent layers, as an ordinary training loop runs them: an LSTM on a CPU is oneDNN's."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import cross_entropy

from planner.capture import capture, compare_with_eager
from planner.run import run
from planner.step import Adam, InferenceStep, TrainStep
from planner.torch_private.onednn_lstm_workspace import measured_workspace_bytes, workspace_bytes
from tests.capture.interpreter import bits, differences


class Words(nn.Module):
    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.words, self.layer = nn.Embedding(20, layer.input_size), layer
        self.scores = nn.Linear(layer.hidden_size * (1 + layer.bidirectional), 20)

    def forward(self, words):
        return self.scores(self.layer(self.words(words))[0])


LAYERS = {
    "lstm": lambda: nn.LSTM(24, 32, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3),
    "lstm without bias": lambda: nn.LSTM(24, 16, num_layers=3, bias=False),
    "lstm in evaluation mode": lambda: nn.LSTM(24, 32, num_layers=2).eval(),
    "gru": lambda: nn.GRU(24, 32, num_layers=2, bidirectional=True),
    "rnn": lambda: nn.RNN(24, 32, num_layers=2),
}


def loss(model, batch):
    return cross_entropy(model(batch[0]).flatten(0, 1).float(), batch[1].flatten())


def batch():
    return torch.randint(20, (6, 5)), torch.randint(20, (6, 5))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_run_differs_in_no_bit_from_an_ordinary_training_loop(layer: str) -> None:
    torch.manual_seed(0)
    model, data = Words(LAYERS[layer]()), batch()
    plain = copy.deepcopy(model)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-2)
    step = TrainStep(model, data, loss=loss, optimizer=Adam(1e-2))
    generator = torch.get_rng_state()
    losses = run(step, budget="90%", steps=3).wait().losses
    torch.set_rng_state(generator)
    expected = []
    for _ in range(3):
        optimizer.zero_grad()
        value = loss(plain, data)
        value.backward()
        optimizer.step()
        expected.append(value.item())
    assert list(losses) == expected
    theirs = dict(plain.named_parameters())
    assert all(bits(value) == bits(theirs[name]) for name, value in model.named_parameters())


def test_an_lstm_is_one_op_per_layer_and_direction_and_the_same_as_eager_makes() -> None:
    step = TrainStep(lambda: Words(LAYERS["lstm"]()), batch, loss=loss)
    graph = capture(step)
    assert sum(op.target == "aten.mkldnn_rnn_layer.default" for op in graph.ops) == 4
    assert sum(op.target == "aten.mkldnn_rnn_layer_backward.default" for op in graph.ops) == 4
    assert compare_with_eager(step, graph) == []


@pytest.mark.parametrize("options", [{"autocast": torch.bfloat16}, {"clip_norm": 0.1, "micro_batches": 2}], ids=str)
def test_what_training_loops_add_to_an_lstm_matches_eager(options) -> None:
    if "autocast" in options and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("this processor's oneDNN has no bfloat16, which eager PyTorch's nn.LSTM fails without, too")
    assert differences(TrainStep(lambda: Words(nn.LSTM(24, 32)), batch, loss=loss, **options)) == []


def test_an_lstm_infers_as_eager_does() -> None:
    step = InferenceStep(lambda: Words(LAYERS["lstm"]()), lambda: batch()[:1])
    assert run(step, budget="100%", steps=1, check=True).wait().mismatches == ()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 300), st.integers(1, 300))
@settings(max_examples=25, deadline=None)
def test_what_an_lstm_keeps_is_known_without_a_call(dtype, slots: int, rows: int, inputs: int, hidden: int) -> None:
    if dtype is torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("this processor's oneDNN has no bfloat16")
    shape = slots, rows, inputs, hidden
    assert workspace_bytes(*shape, dtype) == measured_workspace_bytes(*shape, dtype)
