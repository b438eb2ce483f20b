"""A call that equals an earlier one is answered as PyTorch's own fake kernels answer it."""

import pytest
import torch
from torch import nn

from planner import torch_private as private
from planner.capture.record.repeated_calls import RepeatedCalls
from tests.capture.models import MODELS
from tests.capture.test_transformers import gpt2, llama, text


class Compared(private.TorchDispatchMode):
    """Answers each call anew and by `RepeatedCalls`, and notes where the two differ."""

    def __init__(self, fake):
        super().__init__()
        self.calls, self.asked, self.different = 0, 0, []
        self._repeated = RepeatedCalls(self._ask, fake)

    def _ask(self, func, args, kwargs):
        self.asked += 1
        return private.fake_call(func, args, kwargs)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        expected = private.fake_call(func, args, kwargs)
        if func.namespace == "aten":
            self.calls += 1
            found = self._repeated(func, args, kwargs)
            if laid(found, args) != laid(expected, args):
                self.different.append((func, laid(found, args), laid(expected, args)))
        return expected


def laid(result, args):
    """How results are laid out, and which of the arguments they share memory with."""
    storages = [private.storage_identity(each.untyped_storage()) for each in private.tensors(args)]

    def one(tensor):
        if not isinstance(tensor, torch.Tensor):
            return tensor
        storage = tensor.untyped_storage()
        shared = [place for place, each in enumerate(storages) if each == private.storage_identity(storage)]
        lazy, same = private.lazy(tensor), [tensor is each for each in private.tensors(args)]
        return (
            type(tensor), tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype,
            tensor.fake_device, storage.nbytes(), shared, lazy, same, tensor.requires_grad, tensor.constant is None,
        )  # fmt: skip

    return [one(each) for each in result] if isinstance(result, tuple | list) else one(result)


def train(model, batch, loss, steps=2):
    optimizer = torch.optim.AdamW(model.parameters(), amsgrad=True, foreach=False)
    for _ in range(steps):
        loss(model, batch).backward()
        optimizer.step()
        optimizer.zero_grad()


def of(name):
    if name in ("gpt2", "llama"):
        model = {"gpt2": gpt2, "llama": llama}[name]
        return model, text, lambda model, batch: model(**batch).loss
    model, batch, loss = MODELS[name]
    return model, batch, lambda model, batch: loss(model, batch) if loss else model(*batch).sum()


@pytest.mark.parametrize("name", [*MODELS, "gpt2", "llama"])
def test_every_call_of_a_step_is_answered_as_by_the_fake_kernels(name):
    model, batch, loss = of(name)
    fake = private.FakeTensorMode(allow_non_fake_inputs=True)
    with fake, Compared(fake) as compared:
        train(model(), batch(), loss)
    assert compared.different == []
    assert compared.asked < compared.calls


def answered(*calls):
    """How often the fake kernels were asked in some calls, made one after the other."""
    fake, asked = private.FakeTensorMode(allow_non_fake_inputs=True), []
    repeated = RepeatedCalls(lambda *call: asked.append(call) or private.fake_call(*call), fake)
    with fake:
        made = [(func, make(), make()) for func, make in calls]
        for func, args, others in made:
            assert laid(repeated(func, args, {}), args) == laid(private.fake_call(func, others, {}), others)
    return len(asked)


ATEN = torch.ops.aten


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda: (torch.zeros(2, 3), 1), lambda: (torch.zeros(2, 3), 1.5)),  # of whole numbers and of others
        (lambda: (torch.zeros(2, 3), 1), lambda: (torch.zeros(2, 3), True)),
        (lambda: (torch.zeros(2, 3), 1), lambda: (torch.zeros(3, 2).t(), 1)),
        (lambda: (torch.zeros(2, 3), 1), lambda: (torch.zeros(2, 3, dtype=torch.int64), 1)),
        (lambda: (torch.zeros(2, 3), 1), lambda: (torch.zeros(3, 3)[1:], 1)),
        (lambda: (torch.zeros(2, 3), 1), lambda: (torch.zeros(2, 3, dtype=torch.cfloat).conj(), 1)),
    ],
)
def test_calls_that_differ_are_asked_each(first, second):
    assert answered((ATEN.mul.Scalar, first), (ATEN.mul.Scalar, second)) == 2


def test_equal_calls_are_asked_once_and_share_no_memory():
    fake = private.FakeTensorMode()
    repeated = RepeatedCalls(private.fake_call, fake)
    with fake:
        one = torch.zeros(4, 4)
        results = [repeated(ATEN.relu.default, (one,), {}) for _ in range(3)]
        views = [repeated(ATEN.t.default, (each,), {}) for each in results]
        repeated(ATEN.relu_.default, (one,), {})
        assert repeated(ATEN.relu_.default, (views[0],), {}) is views[0]
    storages = [private.storage_identity(each.untyped_storage()) for each in results]
    assert len({*storages}) == 3
    assert [private.storage_identity(each.untyped_storage()) for each in views] == storages


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (ATEN.resize_.default, lambda: (torch.zeros(4), [8])),  # gives the storage another size
        (ATEN.t_.default, lambda: (torch.zeros(2, 3),)),
        (ATEN.split.Tensor, lambda: (torch.zeros(4), 2)),  # several views of one storage
        (ATEN._foreach_add_.Scalar, lambda: ([torch.zeros(4)], 1)),
    ],
)
def test_what_one_result_does_not_tell_is_asked_each_time(func, args):
    assert answered((func, args), (func, args)) == 2


def test_a_tensor_whose_value_is_known_stays_known():
    fake = private.FakeTensorMode(allow_non_fake_inputs=True)
    repeated = RepeatedCalls(private.fake_call, fake)
    with fake:
        known = torch.tensor(2.0)
        for _ in range(2):
            assert repeated(ATEN.mul.Scalar, (known, 3), {}).constant == 6.0


def test_a_module_with_layers_alike_is_captured_with_results_of_their_own():
    fake = private.FakeTensorMode()
    with fake, Compared(fake) as compared:
        train(nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)]), torch.zeros(2, 8), lambda m, b: m(b).sum())
    assert compared.different == []
