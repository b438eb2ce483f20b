"""What a captured graph tells: kinds, phases, modules, names, sources, costs; and what capturing leaves alone."""

import resource
import runpy
from threading import Semaphore

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from planner.capture import capture, compare_with_eager
from planner.graph import Kind, Phase, check, fingerprint, from_json, storage_lines, to_json
from planner.run import run
from planner.step import SGD, Adam, InferenceStep, TrainStep
from tests.capture.interpreter import bits
from tests.capture.models import MODELS, Perceptron, Residual, Transformer, cross_entropy, images, tokens, vectors
from tests.capture.test_transformers import gpt2, llama, text


@pytest.fixture(scope="module")
def residual():
    return capture(TrainStep(Residual, images, loss=cross_entropy, optimizer=Adam()))


@pytest.mark.parametrize("name", MODELS)
def test_a_captured_graph_is_sound_and_survives_json(name):
    model, batch, loss = MODELS[name]
    graph = capture(TrainStep(model, batch, loss=loss, optimizer=Adam()))
    assert check(graph) == []
    again = from_json(to_json(graph))
    assert (again.ops, again.tensors, again.storages, again.outputs) == (
        graph.ops, graph.tensors, graph.storages, graph.outputs,
    )  # fmt: skip
    assert dict(again.modules) == dict(graph.modules)
    assert fingerprint(again) == fingerprint(graph)
    assert again.program is None


def test_capturing_twice_gives_the_same_graph():
    first, second = (capture(TrainStep(Residual, images, loss=cross_entropy)) for _ in range(2))
    assert fingerprint(first) == fingerprint(second)


def test_a_function_and_the_module_it_makes_give_the_same_graph():
    built = capture(TrainStep(Transformer, tokens, loss=cross_entropy))
    given = capture(TrainStep(Transformer(), tokens(), loss=cross_entropy))
    live = TrainStep(Transformer, tokens, loss=cross_entropy)
    live.materialize()
    assert fingerprint(built) == fingerprint(given) == fingerprint(capture(live))


def test_every_kind_of_storage_has_the_bytes_that_the_model_has(residual):
    model, batch = Residual(), images()
    parameters = sum(p.nbytes for p in model.parameters())
    assert residual.bytes_of([Kind.PARAMETER]) == parameters
    assert residual.bytes_of([Kind.BUFFER]) == sum(b.nbytes for b in model.buffers())
    assert residual.bytes_of([Kind.GRADIENT]) == parameters
    assert residual.bytes_of([Kind.OPTIMIZER_STATE]) == 2 * parameters + 4 * len(list(model.parameters()))
    assert residual.bytes_of([Kind.INPUT]) == sum(leaf.nbytes for leaf in batch)
    assert residual.bytes_of([Kind.OUTPUT]) == 4


def test_names_are_those_of_the_model(residual):
    names = {storage.name: storage.kind for storage in residual.storages}
    assert names["stem.weight"] is Kind.PARAMETER
    assert names["stem.weight.grad"] is Kind.GRADIENT
    assert names["stem.weight/exp_avg"] is Kind.OPTIMIZER_STATE
    assert names["norm.running_mean"] is Kind.BUFFER
    assert names["batch/0"] is Kind.INPUT
    assert names["stem/convolution"] is Kind.ACTIVATION
    assert dict(residual.modules)["norm"] == "BatchNorm2d"
    assert dict(residual.modules)[""] == "Residual"
    named = capture(TrainStep(Transformer, lambda: {"ids": tokens()[0]}, loss=lambda m, b: m(b["ids"]).sum()))
    assert "batch/ids" in {storage.name for storage in named.storages}


def test_ops_know_their_phase_and_module_backward_ones_too(residual):
    modules = {phase: {op.module for op in residual.ops if op.phase is phase} for phase in Phase}
    named = {"stem", "norm", "depthwise", "up", "head"}
    assert modules[Phase.FORWARD] == modules[Phase.BACKWARD] == named | {""}
    assert modules[Phase.OPTIMIZER] == named
    phases = [op.phase for op in residual.ops]
    assert phases == sorted(phases, key=list(Phase).index)
    by_name = {op.name: op for op in residual.ops}
    assert by_name["stem/convolution_backward"].phase is Phase.BACKWARD
    assert by_name["depthwise/convolution_backward.weight"].module == "depthwise"


def test_the_source_is_the_line_of_the_model_that_asked_for_the_op(residual):
    lines = {op.module: op.source for op in residual.ops if op.phase is Phase.FORWARD and op.module}
    backward = {op.module: op.source for op in residual.ops if op.phase is Phase.BACKWARD and op.module}
    assert all(source.startswith("models.py:") for source in lines.values())
    assert lines["stem"] == backward["stem"]
    assert lines["stem"] != lines["head"]


OWN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.inner(x))

def loss(model, batch):
    return model(batch).square().mean()
"""


def sources(graph):
    return {op.name: op.source for op in graph.ops if op.phase is not Phase.OPTIMIZER}


def test_the_source_is_a_line_of_the_users_file_wherever_the_step_is_captured_from(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    user = runpy.run_path(str(tmp_path / "mine.py"))
    step = TrainStep(user["Net"](), torch.ones(2, 4), loss=user["loss"])
    graph = capture(step)
    found = sources(graph)
    line = dict(enumerate(OWN.splitlines(), 1))
    assert "self.inner(x)" in line[int(found["inner/addmm"].removeprefix("mine.py:"))]
    files = {op.phase: set() for op in graph.ops}
    for op in graph.ops:
        files[op.phase].add(op.source.partition(":")[0])
    assert files[Phase.FORWARD] == {"mine.py"}
    assert files[Phase.BACKWARD] == {"mine.py", ""}, "what the backward pass begins with is asked for by no line"


def test_code_without_a_file_leaves_no_line_of_whatever_captures_or_runs_it():
    typed = {"torch": torch}
    exec("def loss(model, batch): return model(batch['x']).square().mean()", typed)
    step = TrainStep(nn.Linear(4, 4), {"x": torch.ones(2, 4)}, loss=typed["loss"])
    assert set(sources(capture(step)).values()) == {""}
    step = TrainStep(nn.Linear(4, 4), {"x": torch.ones(2, 4)}, loss=typed["loss"])
    run(step, budget="100%", steps=1).wait()
    assert set(sources(capture(step)).values()) == {""}
    assert set(sources(capture(InferenceStep(nn.Linear(4, 4), torch.ones(2, 4)))).values()) == {""}


def test_only_dropout_is_random():
    graph = capture(TrainStep(lambda: Transformer(0.1), tokens, loss=cross_entropy))
    assert {op.target for op in graph.ops if op.random} == {"aten.bernoulli_.float"}
    assert not any(op.random for op in capture(TrainStep(lambda: Transformer(0.0), tokens, loss=cross_entropy)).ops)


def test_no_op_is_a_view_and_every_view_says_what_it_is_a_view_of():
    graph = capture(TrainStep(Transformer, tokens, loss=cross_entropy))
    targets = {op.target.split(".")[1] for op in graph.ops}
    assert targets.isdisjoint({"view", "t", "transpose", "permute", "expand", "slice", "select", "detach", "unbind"})
    views = [tensor for tensor in graph.tensors if tensor.base >= 0]
    assert {view.view.split(".")[1] for view in views} >= {"view", "t"}
    for view in views:
        assert view.storage == graph.tensors[view.base].storage
        assert view.attributes.startswith("$0")


def dense():
    """PyTorch counts the weight gradient of a grouped convolution as if it were not grouped."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 6, 3, 2),
        nn.ReLU(),
        nn.Conv2d(6, 4, 1),
        nn.Flatten(1),
    )


def wide_heads():
    """Attention whose values have another width than its keys."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            heads = [f(x).unflatten(2, (2, 4)).transpose(1, 2) for f in (self.query, self.key, self.value)]
            return nn.functional.scaled_dot_product_attention(*heads).flatten(1)

    return Attention()


@pytest.mark.parametrize(
    ("model", "x"),
    [(dense, torch.randn(4, 3, 11, 11)), (wide_heads, torch.randn(3, 5, 8)), (Perceptron, torch.randn(6, 12))],
    ids=["convolutions", "attention", "products"],
)
def test_flops_are_those_that_pytorch_counts(model, x):
    step = TrainStep(model(), x, loss=lambda model, x: model(x).square().mean())
    with FlopCounterMode(display=False) as counter:
        step.clone().eager()
    expected = {str(target): count for target, count in counter.get_flop_counts()["Global"].items()}
    found = dict.fromkeys(expected, 0)
    for op in capture(step).ops:
        target = op.target.rpartition(".")[0].replace("_for_cpu", "")
        if target in found:
            found[target] += op.flops
    assert found == expected
    assert counter.get_total_flops() > 0


def test_a_grouped_convolution_counts_only_its_own_products(residual):
    flops = {op.name: op.flops for op in residual.ops}
    products = 2 * 4 * 8 * 3 * 3 * 6 * 6
    assert flops["depthwise/convolution"] == products
    assert flops["depthwise/convolution_backward.input"] == products
    assert flops["depthwise/convolution_backward.weight"] == products


def test_traffic_is_every_element_once_even_where_a_broadcast_repeats_it():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.column = nn.Parameter(torch.randn(5, 1))

        def forward(self, x):
            return self.column.expand(5, 7) + x

    graph = capture(InferenceStep(Outer(), torch.randn(7)))
    assert [(op.bytes, op.flops) for op in graph.ops] == [(4 * (5 + 7 + 35), 35)]


def test_what_cannot_be_computed_straight_into_its_place_gets_temporary_memory(residual):
    for op in residual.ops:
        made = sum(residual.storages[s].bytes for s in residual.writes[op.id] if not residual.storages[s].live_in)
        assert residual.workspace_bytes(op.id) in (0, made)
    pool = next(op for op in residual.ops if "max_pool2d_with_indices.default" in op.target)
    split = next(op for op in residual.ops if op.name == "depthwise/convolution_backward.weight")
    assert residual.workspace_bytes(pool.id) == 0
    assert residual.workspace_bytes(split.id) == sum(residual.storages[s].bytes for s in residual.writes[split.id])


@pytest.mark.parametrize("name", MODELS)
def test_every_tensor_is_made_by_at_most_one_op_and_lies_within_its_storage(name):
    model, batch, loss = MODELS[name]
    graph = capture(TrainStep(model, batch, loss=loss, optimizer=Adam()))
    made = [tensor for op in graph.ops for tensor in op.outputs]
    assert len(made) == len(set(made))
    first = {tensor for tensor, _ in graph.program.state} | set(graph.program.batch)
    assert first.isdisjoint(made)
    for tensor in graph.tensors:
        reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True))
        itemsize = getattr(torch, tensor.dtype).itemsize
        assert (tensor.offset + reach + 1) * itemsize <= graph.storages[tensor.storage].bytes


def test_a_write_to_a_part_of_a_tensor_reads_the_rest():
    """Otherwise a planner could give it memory that does not hold the rest."""
    model, batch, loss = MODELS["habits"]
    graph = capture(TrainStep(model, batch, loss=loss))
    writes = [
        op for op in graph.ops if op.target in ("aten.copy_.default", "aten.fill_.Tensor") and op.phase == "forward"
    ]
    assert len(writes) == 2
    for op in writes:
        assert set(graph.writes[op.id]) <= set(graph.reads[op.id])


def test_a_value_that_replaces_another_whole_gets_memory_of_its_own():
    """So the two may lie apart, and nothing has to wait for the readers of the first."""

    class Reusing(nn.Module):
        def forward(self, x):
            y = x.exp()
            z = y.sin()
            y.copy_(x.cos())
            y.add_(1)
            return z + y

    graph = capture(InferenceStep(Reusing(), torch.randn(4)))
    copied, added = (next(op for op in graph.ops if kernel in op.target) for kernel in ("copy_", "add."))
    read = {op.name for op in graph.ops if set(graph.writes[copied.id]) & set(graph.reads[op.id])}
    assert read == {added.name}
    assert graph.writes[added.id] != graph.writes[copied.id]
    assert added.target == "aten.add.Tensor"
    assert graph.tensors[added.overwrites[0]].storage == graph.writes[copied.id][0]


def test_what_is_filled_without_being_read_has_no_input():
    graph = capture(TrainStep(lambda: Perceptron(0.3), vectors, loss=cross_entropy))
    drawn = next(op for op in graph.ops if op.random)
    assert (drawn.inputs, drawn.attributes) == ((), "^0, 0.7")
    assert not any("empty" in op.target for op in graph.ops)


def test_running_statistics_are_updated_in_training_and_only_then(residual):
    def updated(graph):
        return {graph.storages[s].name for op in graph.ops for s in graph.writes[op.id] if graph.storages[s].live_in}

    assert {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"} <= updated(residual)
    assert updated(capture(InferenceStep(Residual, lambda: images()[0]))) == set()


def first_run_only(graph):
    return {op.name: [graph.storages[s].name for s in op.first_run_only] for op in graph.ops if op.first_run_only}


def test_only_the_first_run_of_a_batch_norm_in_a_step_updates_its_running_statistics(residual):
    assert first_run_only(residual) == {"norm/native_batch_norm": ["norm.running_mean", "norm.running_var"]}
    (op,) = (op for op in residual.ops if op.first_run_only)
    assert {*residual.writes[op.id]} - {*residual.writes_again[op.id]} == {*op.first_run_only}
    assert first_run_only(capture(InferenceStep(Residual, lambda: images()[0]))) == {}


@pytest.mark.parametrize(("affine", "left_alone"), [(True, 2), (False, 0)])
def test_statistics_whose_precision_decides_that_of_the_results_are_not_left_alone(affine, left_alone):
    def build():
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, affine=affine))

    step = TrainStep(build, lambda: torch.randn(4, 6), loss=lambda m, x: m(x).sum(), autocast=torch.bfloat16)
    graph = capture(step)
    assert sum("native_batch_norm.default" in op.target for op in graph.ops) == 1
    assert sum(map(len, first_run_only(graph).values())) == left_alone


def test_an_input_read_in_two_ways_is_not_overwritten():
    class Symmetric(nn.Module):
        def forward(self, x):
            y = x.exp()
            return (y + y.t()) * 2

    graph = capture(InferenceStep(Symmetric(), torch.randn(4, 4)))
    overwrites = {op.name: len(op.overwrites) for op in graph.ops}
    assert overwrites == {"exp": 0, "add": 0, "mul": 1}


def test_a_model_larger_than_any_memory_is_captured_without_memory():
    def enormous():
        return nn.Sequential(*(nn.Linear(2**18, 2**18, bias=False) for _ in range(16)))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = TrainStep(enormous, lambda: torch.randn(2, 2**18), loss=lambda model, x: model(x).sum(), optimizer=Adam())
    graph = capture(step)
    assert graph.bytes_of([Kind.PARAMETER]) == 2**42
    assert graph.program.scalars(0), "asking for numbers makes nothing either"
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 2**28
    assert step.live is None


def test_capturing_leaves_the_model_its_gradients_and_the_generator_alone():
    model, batch = Residual(), images()
    cross_entropy(model, batch).backward()
    held = {name: (id(value), bits(value), bits(value.grad)) for name, value in model.named_parameters()}
    buffers = {name: (id(value), bits(value)) for name, value in model.named_buffers()}
    generator = torch.get_rng_state()
    capture(TrainStep(model, batch, loss=cross_entropy))
    assert {name: (id(v), bits(v), bits(v.grad)) for name, v in model.named_parameters()} == held
    assert {name: (id(v), bits(v)) for name, v in model.named_buffers()} == buffers
    assert torch.equal(torch.get_rng_state(), generator)


def test_what_nobody_needs_is_left_out_and_counted():
    class Wasteful(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            x.exp().cumsum(0)
            return self.linear(x)

    step = TrainStep(Wasteful(), torch.randn(3, 4), loss=lambda model, x: model(x).sum())
    graph = capture(step)
    assert not any("cumsum" in op.target or "exp." in op.target for op in graph.ops)
    assert dict(graph.program.unused) == {"aten.exp": 1, "aten.cumsum": 1}
    assert compare_with_eager(step, graph) == []


@pytest.mark.parametrize("name", MODELS)
def test_the_guard_finds_nothing_where_the_graph_is_what_eager_runs(name):
    model, batch, loss = MODELS[name]
    step = TrainStep(model, batch, loss=loss, optimizer=SGD(0.1, momentum=0.9), clip_norm=1.0)
    assert compare_with_eager(step, capture(step)) == []


class Moods:
    """True once, by what nobody sees from outside; copies have the same mood."""

    asked = Semaphore(1)

    def __bool__(self):
        return self.asked.acquire(blocking=False)


def test_the_guard_says_what_eager_runs_otherwise():
    class Moody(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.first = Moods()

        def forward(self, x):
            return self.linear(x).tanh() if self.first else self.linear(x).sin()

    step = TrainStep(Moody(), torch.randn(3, 4), loss=lambda model, x: model(x).sum())
    assert compare_with_eager(step, capture(step)) == [
        "eager makes 1 calls of aten.cos in a step and the graph 0",
        "eager makes 1 calls of aten.mul in a step and the graph 0",
        "eager makes 1 calls of aten.sin in a step and the graph 0",
        "eager makes 0 calls of aten.tanh in a step and the graph 1",
        "eager makes 0 calls of aten.tanh_backward in a step and the graph 1",
    ]


def test_progress_is_told_from_start_to_end():
    told = []
    step = TrainStep(Perceptron, vectors, loss=cross_entropy)
    graph = capture(step, progress=lambda share, what: told.append((share, what)))
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    assert (told[0][0], told[-1][0]) == (0.0, 1.0)
    assert all(what for _, what in told)
    assert capture(step) is graph, "asking again costs nothing"


def test_a_step_shows_itself_in_one_line():
    step = TrainStep(Residual, images, loss=cross_entropy)
    assert repr(step) == "<TrainStep of Residual: not captured yet>"
    graph = capture(step)
    assert repr(step) == f"<TrainStep of Residual: {len(graph.ops):,} ops>"


def test_the_update_of_a_parameter_belongs_to_the_line_that_reads_it_first(residual):
    read = {op.module: op.source for op in residual.ops if op.phase is Phase.FORWARD and op.module}
    updates = {op.module: op.source for op in residual.ops if op.phase is Phase.OPTIMIZER}
    assert updates == {module: read[module] for module in updates}


def test_what_checkpointing_runs_again_has_the_line_that_it_had_at_first():
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def part(self, x):
            return self.inner(x).tanh()

        def forward(self, x):
            return checkpoint(self.part, x, use_reentrant=False)

    graph = capture(TrainStep(Checkpointed(), torch.ones(2, 4), loss=lambda model, batch: model(batch).square().mean()))
    lines = {phase: {op.source for op in graph.ops if op.target == "aten.tanh.default" and op.phase is phase}
             for phase in (Phase.FORWARD, Phase.BACKWARD)}  # fmt: skip
    assert len(lines[Phase.FORWARD]) == 1
    assert lines[Phase.BACKWARD] <= lines[Phase.FORWARD]


@pytest.mark.parametrize("build", [gpt2, llama])
def test_lines_of_a_model_of_transformers_are_in_the_file_of_the_model(build):
    step = TrainStep(build, text, optimizer=Adam())
    files = {op.source.partition(":")[0] for op in capture(step).ops if op.outputs and op.phase is Phase.FORWARD}
    assert files - {""} == {f"modeling_{build.__name__}.py"}


def test_every_storage_of_a_step_belongs_to_a_line(residual):
    lines = dict(zip((storage.name for storage in residual.storages), storage_lines(residual), strict=True))
    assert all(line.startswith(("models.py:", "test_what_a_graph_says.py:")) for line in lines.values())
    assert (
        lines["stem.weight"] == lines["stem.weight.grad"] == lines["stem.weight/exp_avg"] == lines["stem/convolution"]
    )


def test_a_cell_of_a_notebook_is_named_by_its_number():
    code = compile("def loss(model, batch): return model(batch).square().mean()", "<ipython-input-3-0123abcd>", "exec")
    typed = {}
    exec(code, typed)
    graph = capture(TrainStep(nn.Linear(4, 4), torch.ones(2, 4), loss=typed["loss"]))
    assert {op.source for op in graph.ops if op.phase is Phase.FORWARD} == {"cell [3]:1"}
