"""The models are the published ones, and what is asked of them comes out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from planner import zoo
from planner.capture import capture
from planner.graph import Graph
from planner.machine import op_seconds
from planner.profile import machine
from tests.effort import EFFORT


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tests run side by side; threads of one that wait for those of another would take most of the time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def parameters(text: str) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in zoo.load(text).make_model().parameters())


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("wresnet:depth=50", 25_557_032),
        ("wresnet:depth=101", 44_549_160),
        ("wresnet:depth=152", 60_192_808),
        ("wresnet:depth=50,widen=2,width=inner", 68_883_240),
        ("wresnet:depth=101,widen=2,width=inner", 126_886_696),
        ("inception:version=4,widen=1", 42_679_816),
        ("nasnet:cells=6", 88_753_150),
        # GPT-2's head shares the token embedding's weights, ours has its own
        ("gpt:layers=12,hidden=768,heads=12,sequence=1024,vocabulary=50257", 124_439_808 + 50_257 * 768),
    ],
)
def test_parameter_counts_are_the_published_ones(text: str, published: int) -> None:
    assert parameters(text) == published


def test_inception_v3_differs_from_the_published_one_by_its_auxiliary_head() -> None:
    head = 768 * 128 + 2 * 128 + 128 * 768 * 25 + 2 * 768 + 768 * 1000 + 1000
    assert parameters("inception:version=3,widen=1") == 27_161_264 - head


def test_an_lstm_layer_has_four_gates() -> None:
    hidden, classes = 64, 10
    layer = 4 * hidden * (hidden + hidden + 1)
    assert parameters(f"rnn:layers=3,hidden={hidden},classes={classes}") == 3 * layer + (hidden + 1) * classes
    wider = 4 * hidden * (2 * hidden + hidden + 1)
    both = 2 * (layer + wider)
    assert parameters(f"brnn:layers=2,hidden={hidden},classes={classes}") == both + (2 * hidden + 1) * classes


def test_our_lstm_computes_what_torch_computes() -> None:
    step = zoo.rnn(layers=2, hidden=8, steps=5, classes=3, batch=4)
    live = step.materialize()
    reference = torch.nn.LSTM(8, 8, 2)
    with torch.no_grad():
        for layer, cell in enumerate(live.model.cells):
            reference.get_parameter(f"weight_ih_l{layer}").copy_(cell.from_input.weight)
            reference.get_parameter(f"bias_ih_l{layer}").copy_(cell.from_input.bias)
            reference.get_parameter(f"weight_hh_l{layer}").copy_(cell.from_hidden.weight)
            reference.get_parameter(f"bias_hh_l{layer}").zero_()
        expected = live.model.classifier(reference(live.batch[0])[0])
        torch.testing.assert_close(live.model(live.batch[0]), expected)


def test_our_bidirectional_lstm_computes_what_torch_computes() -> None:
    live = zoo.brnn(layers=2, hidden=8, steps=5, classes=3, batch=4).materialize()
    reference = torch.nn.LSTM(8, 8, 2, bidirectional=True)
    with torch.no_grad():
        for suffix, cells in (("", live.model.forwards), ("_reverse", live.model.backwards)):
            for layer, cell in enumerate(cells):
                reference.get_parameter(f"weight_ih_l{layer}{suffix}").copy_(cell.from_input.weight)
                reference.get_parameter(f"bias_ih_l{layer}{suffix}").copy_(cell.from_input.bias)
                reference.get_parameter(f"weight_hh_l{layer}{suffix}").copy_(cell.from_hidden.weight)
                reference.get_parameter(f"bias_hh_l{layer}{suffix}").zero_()
        expected = live.model.classifier(reference(live.batch[0])[0])
        torch.testing.assert_close(live.model(live.batch[0]), expected)


def test_gpt_cannot_see_the_future() -> None:
    live = zoo.gpt(layers=2, hidden=32, heads=2, sequence=8, vocabulary=50, batch=1).materialize()
    tokens = live.batch[0].clone()
    with torch.no_grad():
        before = live.model(tokens)
        tokens[0, 5] = (tokens[0, 5] + 1) % 50
        after = live.model(tokens)
    assert torch.equal(before[0, :5], after[0, :5])
    assert not torch.equal(before[0, 5:], after[0, 5:])


@pytest.mark.parametrize(("image", "last"), [(331, 11), (67, 3), (64, 2)])
def test_nasnet_halves_the_image_evenly_whatever_its_size(image: int, last: int) -> None:
    with torch.device("meta"):
        live = zoo.nasnet(cells=1, filters=8, image=image, batch=2).make_model()
        seen: list[torch.Size] = []
        live.cells[-1].register_forward_hook(lambda module, args, out: seen.append(out.shape))
        assert live(torch.empty(2, 3, image, image)).shape == (2, 1000)
    assert seen == [(2, 6 * 32, last, last)]


@pytest.mark.parametrize("text", ["mlp", "wresnet", "rnn", "brnn", "gpt"])
def test_a_bare_name_trains(text: str) -> None:
    step = zoo.load(text)
    losses = [float(step.eager()) for _ in range(3)]
    assert losses[-1] < losses[0]


def test_the_seed_decides_weights_and_batch() -> None:
    first, same, other = (zoo.load(f"mlp:hidden=16,seed={seed}") for seed in (1, 1, 2))
    for key, tensor in first.state().items():
        assert torch.equal(tensor, same.state()[key])
    assert torch.equal(first.batch_leaves()[0], same.batch_leaves()[0])
    assert not torch.equal(first.batch_leaves()[0], other.batch_leaves()[0])


@pytest.mark.parametrize(("optimizer", "states"), [("sgd", 0), ("momentum", 1), ("adam", 2), ("adamw", 2)])
def test_the_optimizer_brings_its_state(optimizer: str, states: int) -> None:
    graph = capture(zoo.load(f"mlp:hidden=16,optimizer={optimizer}"))
    weights = [storage for storage in graph.storages if storage.kind == "parameter"]
    large = [storage for storage in graph.storages if storage.kind == "optimizer_state" and storage.bytes > 4]
    assert len(large) == states * len(weights)


#: SwapAdvisor's convolutional models and the batch of its table: samples per second without a limit of memory, and
#: how many ops are to be expected.
_CONVOLUTIONAL = {
    "nasnet:batch=16": (16, 7.06, (5_200, 5_800)),
    "inception:batch=16": (16, 12.7, (800, 1_300)),
    "wresnet:depth=152,widen=10,image=224,batch=16": (16, 3.85, (850, 1_900)),
}
if EFFORT > 1:
    _CONVOLUTIONAL |= {
        "wresnet:depth=152,widen=10,image=224,batch=64": (64, 4.21, (850, 1_900)),
        "inception:batch=64": (64, 14.2, (800, 1_300)),
        "nasnet:batch=64": (64, 9.46, (5_200, 5_800)),
    }


@pytest.fixture(scope="module", params=_CONVOLUTIONAL)
def convolutional(request: pytest.FixtureRequest) -> tuple[str, Graph]:
    return request.param, capture(zoo.load(request.param))


def test_the_papers_models_are_captured_whole_without_their_memory(convolutional: tuple[str, Graph]) -> None:
    text, graph = convolutional
    least, most = _CONVOLUTIONAL[text][2]
    assert least <= len(graph.ops) <= most


def predicted(graph: Graph) -> float:
    return float(op_seconds(graph, machine("v100-16gb")).sum())


def test_they_take_what_the_paper_measured(convolutional: tuple[str, Graph]) -> None:
    text, graph = convolutional
    batch, samples_per_second, _ = _CONVOLUTIONAL[text]
    assert predicted(graph) == pytest.approx(batch / samples_per_second, rel=0.15)


@pytest.mark.parametrize(
    ("text", "samples_per_second"), [("rnn:layers=8,hidden=8192", 14.5), ("brnn:layers=4,hidden=8192", 10.9)]
)
def test_the_papers_recurrent_models_take_what_it_measured(text: str, samples_per_second: float) -> None:
    # all of the twenty time steps but the first are alike
    first, both = (predicted(capture(zoo.load(f"{text},batch=128,steps={steps}"))) for steps in (1, 2))
    assert first + 19 * (both - first) == pytest.approx(128 / samples_per_second, rel=0.15)
