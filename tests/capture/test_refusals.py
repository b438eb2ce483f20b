"""What a model does that no graph can hold is refused in one sentence that names the module and the op."""

import pytest
import torch
from torch import nn

from planner import StowageError
from planner.capture import capture
from planner.step import SGD, Adam, InferenceStep, TrainStep
from tests.capture.interpreter import bits
from tests.capture.models import Perceptron, cross_entropy, mean_square, vectors


class Around(nn.Module):
    """A model with one module inside that does what `act` does."""

    def __init__(self, act):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.inner = Inner(act)

    def forward(self, x):
        return self.inner(self.linear(x))


class Inner(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act

    def forward(self, x):
        return self.act(x)


def raising(x):
    raise KeyError("no such head")


def doubled_where_positive(x):
    x = x.clone()
    x[x > 0] = x[x > 0] * 2
    return x


def without_self_loops(edge_index):
    """As torch_geometric's function of this name does it."""

    def remove_self_loops(edges):
        return edges[:, edges[0] != edges[1]]

    return remove_self_loops(edge_index)


MASK = "let a mask that is known before the step come in with the batch as an index (index = mask.nonzero().flatten()"
PADDED = "keep sequences padded to one length"
VALUE = "aten._local_scalar_dense.default in module inner (Inner) at test_refusals.py:"
REFUSED = {
    "item": (lambda x: x * x.sum().item(), VALUE, "keep it a tensor"),
    "float": (lambda x: x * float(x.detach().sum()), VALUE, "read it between two steps of Run.steps"),
    "branch": (lambda x: x if x.sum() > 0 else -x, VALUE, "choose by torch.where(condition, a, b)"),
    "equal": (lambda x: x if torch.equal(x, x) else -x, "aten.equal.default in module inner", "choose by torch.where"),
    "counted": (lambda x: x[: x.argmax()], VALUE, "take sizes and counts that are known before the step"),
    "list": (lambda x: x.split(x.argmax(1).tolist())[0], VALUE, "take sizes and counts that are known before"),
    "mask": (lambda x: x[x > 0], "aten.nonzero.default in module inner (Inner) at test_refusals.py:", MASK),
    "masked": (doubled_where_positive, "in module inner (Inner) at test_refusals.py:", "write torch.where(mask, x, 0)"),
    "selected": (lambda x: x.masked_select(x > 0), "aten.masked_select.default in module inner", MASK),
    "nonzero": (lambda x: x.nonzero().float(), "aten.nonzero.default in module inner (Inner)", MASK),
    "self-loops": (
        lambda x: x[without_self_loops(torch.stack([x.argmax(1), x.argmin(1)]))[0]],
        "aten.nonzero.default in module inner",
        "make the layer with add_self_loops=False",
    ),
    "unique": (lambda x: x.unique(), "in module inner (Inner) at test_refusals.py:", "let it come in with the batch"),
    "repeated": (
        lambda x: x.repeat_interleave((x[:, 0] > 0).long(), 0),
        "aten.repeat_interleave.Tensor in module inner",
        "give output_size=",
    ),
    "one hot": (lambda x: nn.functional.one_hot(x.argmax(1)) * x.sum(), VALUE, "give num_classes="),
    "counting": (
        lambda x: torch.bincount(x.argmax(1)) * x.sum(),
        "aten.bincount.default in",
        "torch.zeros(n).index_add",
    ),
    "put together": (lambda x: x * torch.tensor([x.sum(), x.mean()]).sum(), "module inner (Inner) at", "torch.stack"),
    "validated": (
        lambda x: -torch.distributions.Normal(x, x.exp(), validate_args=True).log_prob(x.detach()),
        VALUE,
        "make the distribution with validate_args=False",
    ),
    "packed": (
        lambda x: nn.utils.rnn.pack_padded_sequence(x[None], torch.tensor([3]), batch_first=True).data,
        "aten._pack_padded_sequence.default in module inner",
        PADDED,
    ),
    "jagged": (
        lambda x: torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 3])).values(),
        "module inner (Inner) at test_refusals.py:",
        PADDED,
    ),
    "nested": (
        lambda x: torch.nested.as_nested_tensor([x[:1], x[1:]]).to_padded_tensor(0.0),
        "in module inner (Inner) at test_refusals.py:",
        PADDED,
    ),
    "sparse": (
        lambda x: x.to_sparse(),
        "in module inner at test_refusals.py:",
        "to_dense() of a matrix before the step",
    ),
    "quantised": (
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize(),
        "aten.quantize_per_tensor.default in module inner",
        "quantis",
    ),
    "raising": (
        raising,
        "the forward pass raised KeyError in module inner (Inner) at test_refusals.py:",
        "no such head",
    ),
    "shapes": (lambda x: x @ x.new_zeros(7, 2), "in module inner (Inner)", "aten.mm"),
    "resized": (
        lambda x: x + x.detach().clone().resize_(6, 2).sum(),
        "aten.resize_.default in module inner changes the size",
        "make a new tensor",
    ),
    "numpy": (lambda x: x + torch.from_numpy(x.detach().numpy()), "module inner (Inner)", "compute with torch"),
}


@pytest.mark.parametrize(("act", "where", "why"), [pytest.param(*case, id=name) for name, case in REFUSED.items()])
def test_a_refusal_names_the_module_and_the_op(act, where, why):
    model = Around(act)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(StowageError) as caught:
        capture(TrainStep(model, torch.randn(3, 4), loss=lambda model, x: model(x).sum()))
    sentence = str(caught.value)
    assert where in sentence
    assert why in sentence
    assert "\n" not in sentence
    assert {name: bits(value) for name, value in model.state_dict().items()} == {
        name: bits(value) for name, value in before.items()
    }, "the model is as it was"
    assert all(not isinstance(value, torch._subclasses.FakeTensor) for value in model.parameters())


def test_a_module_that_is_moved_inside_forward_is_refused_for_that():
    class Moving(Perceptron):
        def forward(self, x):
            return super().forward(self.to(x.device) and x)

    with pytest.raises(
        StowageError, match=r"at test_refusals\.py:\d+ does what a plan cannot hold .*before the step, and"
    ):
        capture(TrainStep(Moving(), vectors(), loss=cross_entropy))


CAUSAL = "tgt_is_causal= or src_is_causal="


def test_transformers_of_torch_are_told_what_reads_their_masks():
    torch.manual_seed(0)
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    model.mask = nn.Parameter(nn.Transformer.generate_square_subsequent_mask(3))
    batch = torch.randn(2, 3, 8), torch.randn(2, 3, 8), nn.Transformer.generate_square_subsequent_mask(3)

    def loss(model, batch, **more):
        return model(batch[0], batch[1], tgt_mask=batch[2], **more).sum()

    assert capture(TrainStep(model, batch, loss=loss)).program.readings.calls  # of the mask, which is the batch's
    with pytest.raises(StowageError, match=f"depends on the values of tensors, .*{CAUSAL}"):
        capture(TrainStep(model, batch, loss=lambda model, batch: loss(model, (*batch[:2], model.mask))))
    capture(TrainStep(model, batch, loss=lambda model, batch: loss(model, batch, tgt_is_causal=True)))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_transformers_nested_tensors_are_switched_off():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    batch = {"src": torch.randn(2, 3, 8), "src_key_padding_mask": torch.tensor([[False, False, True]] * 2)}
    with pytest.raises(StowageError, match=r"make nn\.TransformerEncoder with enable_nested_tensor=False"):
        capture(InferenceStep(nn.TransformerEncoder(layer, 1), batch))
    capture(InferenceStep(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), batch))


def test_sparse_gradients_of_an_embedding_are_switched_off():
    with pytest.raises(StowageError, match=r"sparse_coo tensor, .* \(sparse=False of an embedding"):
        capture(TrainStep(nn.Embedding(9, 4, sparse=True), torch.arange(3), loss=lambda model, x: model(x).sum()))


def test_nothing_but_the_sentence_reaches_the_user(capfd):
    with pytest.raises(StowageError):
        capture(
            TrainStep(Around(lambda x: x @ x.new_zeros(7, 2)), torch.randn(3, 4), loss=lambda model, x: model(x).sum())
        )
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_an_error_in_the_backward_pass_says_so():
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("no gradient here")

    with pytest.raises(StowageError, match=r"the backward pass raised ValueError .*no gradient here"):
        capture(TrainStep(Around(Bad.apply), torch.randn(3, 4), loss=lambda model, x: model(x).sum()))


def test_a_model_that_changes_its_batch_is_refused():
    class Impolite(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner(lambda x: x.mul_(2))
            self.linear = nn.Linear(12, 2)

        def forward(self, x):
            return self.linear(self.inner(x))

    with pytest.raises(StowageError, match=r"aten\.mul_\.Tensor in module inner changes the batch in place"):
        capture(TrainStep(Impolite(), (vectors()[0],), loss=mean_square))


def on_a_gpu():
    return torch.zeros(6, 12, device="cuda"), torch.zeros(6, dtype=torch.int64, device="cuda")


def test_a_batch_on_another_device_than_the_model_is_refused():
    with pytest.raises(StowageError, match="the batch is on cuda:0 and the model on cpu: move the batch"):
        capture(TrainStep(Perceptron, on_a_gpu, loss=cross_entropy))
    with pytest.raises(StowageError, match="on the meta device: pass a function that makes it"):
        capture(TrainStep(Perceptron().to("meta"), vectors(), loss=cross_entropy))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_sparse_and_quantised_tensors_in_the_batch_or_the_model_are_refused():
    x = torch.randn(3, 12)
    with pytest.raises(StowageError, match="batch/0 is a sparse_coo tensor"):
        capture(TrainStep(Perceptron(), (x.to_sparse(),), loss=mean_square))
    with pytest.raises(StowageError, match="batch/0 is a quantised tensor"):
        capture(TrainStep(Perceptron(), (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),), loss=mean_square))
    model = Perceptron()
    model.register_buffer("graph", x.to_sparse())
    with pytest.raises(StowageError, match="buffer graph is a sparse_coo tensor"):
        capture(TrainStep(model, (x,), loss=mean_square))


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (None, "there is no loss: pass loss="),
        (lambda model, batch: model(batch[0]), r"the loss is a tensor of shape \(6, 5\)"),
        (lambda model, batch: 3.0, "the loss is a float"),
    ],
    ids=["none", "a matrix", "a number"],
)
def test_a_loss_must_be_one_number(loss, words):
    with pytest.raises(StowageError, match=words):
        capture(TrainStep(Perceptron(), vectors(), loss=loss))


def test_arguments_of_the_wrong_kind_are_refused():
    with pytest.raises(StowageError, match=r"the model is an int: pass an nn\.Module"):
        TrainStep(3, vectors())
    with pytest.raises(StowageError, match="the model's function returned None"):
        capture(TrainStep(lambda: None, vectors(), loss=cross_entropy))
    with pytest.raises(StowageError, match="a batch of 6 cannot be cut into 4 micro-batches"):
        capture(TrainStep(Perceptron(), vectors(), loss=cross_entropy, micro_batches=4))
    with pytest.raises(StowageError, match="no parameter of the model requires a gradient"):
        capture(TrainStep(Perceptron().requires_grad_(False), vectors(), loss=cross_entropy))
    with pytest.raises(StowageError, match="the model returns no tensor"):
        capture(InferenceStep(Around(lambda x: None), torch.randn(3, 4)))


def test_a_constructor_that_needs_values_says_so():
    def build():
        model = Perceptron()
        assert model.layers[0].weight.sum().item() != 0
        return model

    with pytest.raises(StowageError, match="pass a module instead of a function"):
        capture(TrainStep(build, vectors, loss=cross_entropy))


def test_a_constructor_may_look_at_small_tensors_on_the_cpu():
    def build():
        rates = [float(rate) for rate in torch.linspace(0.0, 0.2, 3, device="cpu")]
        return nn.Sequential(Perceptron(rates[1]), nn.Dropout(rates[2]))

    step = TrainStep(build, vectors, loss=cross_entropy)
    assert capture(step).bytes_of(["parameter"]) == sum(4 * p.numel() for p in Perceptron().parameters())


def test_a_constructor_may_convert_its_tensors():
    made = TrainStep(lambda: nn.Linear(4, 4).to(torch.bfloat16), lambda: torch.randn(2, 4, dtype=torch.bfloat16),
                     loss=lambda model, x: model(x).float().square().mean())  # fmt: skip
    graph = capture(made)
    weight = next(tensor for tensor in graph.tensors if tensor.name == "weight")
    assert weight.dtype == "bfloat16"


def test_a_tensor_hidden_in_a_list_is_held():
    class Hiding(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.tables = [torch.arange(4.0)]

        def forward(self, x):
            return self.linear(x) * self.tables[0]

    for model in (Hiding(), Hiding):
        step = TrainStep(model, torch.randn(3, 4), loss=lambda model, x: model(x).sum())
        assert "code/model.tables[0]" in [key for _, key in capture(step).program.state]
        assert bits(step.state()["code/model.tables[0]"]) == bits(torch.arange(4.0))


@pytest.mark.parametrize(
    "batch", [torch.ones(2, 3), {"x": torch.ones(2, 3)}, {"input": torch.ones(2, 3)}], ids=["tensor", "named", "bound"]
)
def test_a_missing_loss_is_named_and_how_to_give_it(batch):
    with pytest.raises(StowageError, match=r"loss=lambda model, batch: model\(batch\[0\]\)"):
        capture(TrainStep(torch.nn.Linear(3, 1), batch))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"optimizer": Adam(lr="x")}, "could not convert string to float"),
        ({"optimizer": SGD(lr=-1.0)}, "Invalid learning rate"),
        ({"micro_batches": 1.5}, "micro_batches is 1.5: it must be at least 1, and whole"),
        ({"autocast": torch.int8}, "autocast is torch.int8: pass a dtype such as torch.bfloat16 or"),
    ],
)
def test_settings_that_make_no_sense_are_said_in_one_sentence(settings, says):
    with pytest.raises(StowageError, match=says):
        TrainStep(Perceptron(), vectors(), loss=mean_square, **settings)


def test_a_module_whose_weights_have_no_shape_yet_is_refused():
    with pytest.raises(StowageError, match="parameter weight has no shape before the first forward pass"):
        capture(InferenceStep(nn.LazyLinear(3), torch.randn(2, 3)))


def test_a_model_that_computes_nothing_is_refused():
    with pytest.raises(StowageError, match="runs no kernel"):
        capture(InferenceStep(nn.Identity(), torch.randn(2, 3)))


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_torch_jit_compiled_is_refused():
    with pytest.raises(StowageError, match=r"torch\.jit module"):
        capture(InferenceStep(nn.Sequential(torch.jit.trace(nn.Linear(3, 3), torch.randn(2, 3))), torch.randn(2, 3)))


HOOKS = {
    "gradient": lambda model, optimizer: model.layers[0].weight.register_hook(lambda grad: 2 * grad),
    "accumulated": lambda model, optimizer: model.layers[0].weight.register_post_accumulate_grad_hook(lambda p: None),
    "before the optimizer": lambda model, optimizer: optimizer.register_step_pre_hook(lambda *_: None),
    "after the optimizer": lambda model, optimizer: optimizer.register_step_post_hook(lambda *_: None),
}


@pytest.mark.parametrize("captured_before", [False, True])
@pytest.mark.parametrize("register", HOOKS.values(), ids=HOOKS)
def test_hooks_that_a_plan_would_not_call_are_refused(register, captured_before):
    model = Perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = TrainStep(model, vectors(), loss=cross_entropy, optimizer=optimizer)
    if captured_before:
        capture(step)
    hook = register(model, optimizer)
    with pytest.raises(StowageError, match=r"has a hook .* which a plan would not call: remove it"):
        capture(step)
    hook.remove()
    capture(step)


def test_hooks_that_a_models_function_registers_are_refused():
    def build():
        model = Perceptron()
        model.layers[0].weight.register_hook(lambda grad: 2 * grad)
        return model

    with pytest.raises(StowageError, match=r"parameter layers\.0\.weight has a hook"):
        capture(TrainStep(build, vectors, loss=cross_entropy))


def test_a_buffer_whose_numbers_share_memory_is_refused():
    class Masked(nn.Module):
        def __init__(self, mask):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("mask", mask)

        def forward(self, x):
            return self.linear(x) * self.mask

    mask = torch.rand(4).expand(3, 4)
    with pytest.raises(StowageError, match=r"buffer mask has several numbers in one place .* by contiguous\(\)"):
        capture(TrainStep(Masked(mask), torch.randn(3, 4), loss=lambda model, x: model(x).sum()))
    for apart in (mask.contiguous(), torch.rand(8, 3).t()[:, ::2]):
        capture(TrainStep(Masked(apart), torch.randn(3, 4), loss=lambda model, x: model(x).sum()))


def test_parameters_that_overlap_are_refused():
    class Overlapping(nn.Module):
        def __init__(self):
            super().__init__()
            flat = torch.randn(8, 4)
            self.left, self.right = nn.Parameter(flat), nn.Parameter(flat[2:6])

        def forward(self, x):
            return x @ self.left @ self.right

    with pytest.raises(StowageError, match=r"right and left share memory .*tied weights"):
        capture(TrainStep(Overlapping(), torch.randn(3, 8), loss=lambda model, x: model(x).sum()))


@pytest.mark.parametrize(
    "loss",
    [nn.functional.cross_entropy, nn.functional.mse_loss, lambda output: output],
    ids=["PyTorch's own", "of output and target", "of the output"],
)
def test_a_loss_that_takes_something_else_is_told_what_it_gets(loss):
    step = TrainStep(nn.Linear(4, 4), (torch.ones(2, 4), torch.ones(2, 4)), loss=loss)
    with pytest.raises(StowageError, match=r"Error in the loss .*\(the loss is called as loss\(model, batch\)\)$"):
        capture(step)


def test_an_error_within_the_model_is_not_blamed_on_the_loss():
    step = TrainStep(nn.Linear(4, 4), torch.ones(2, 3), loss=lambda model, batch: model(batch).sum())
    with pytest.raises(StowageError, match=r"in the model \(Linear\).* PyTorch first$"):
        capture(step)
