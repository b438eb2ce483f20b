"""What autograd saves in a captured step, against hooks in a real one."""

import pytest
from torch.autograd.graph import saved_tensors_hooks

from planner.capture import SaveAction, capture_saved
from planner.graph import Kind
from tests.run.steps import convolutions, gpt, lstm, normalisations


@pytest.mark.parametrize("make", [convolutions, gpt, lstm, normalisations])
def test_a_real_step_saves_and_uses_the_same_tensors_in_the_same_order(make):
    step, real = make(), []
    graph, saved = capture_saved(step, progress=False)

    def pack(tensor):
        number = sum(action is SaveAction.SAVE for action, _ in real)
        real.append((SaveAction.SAVE, number))
        one = saved.tensors[number]
        assert (one.shape, one.dtype) == (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        assert one.bytes == tensor.untyped_storage().nbytes()
        if one.storage >= 0:
            assert graph.storages[one.storage].bytes == one.bytes
            leaf = tensor.is_leaf and tensor.requires_grad
            assert (graph.storages[one.storage].kind is Kind.PARAMETER) == (leaf or tensor.data_ptr() in parameters)
        return number, tensor

    def unpack(packed):
        number, tensor = packed
        real.append((SaveAction.USE, number))
        return tensor

    parameters = {parameter.data_ptr() for parameter in step.materialize().model.parameters()}
    with saved_tensors_hooks(pack, unpack):
        step.eager()
    hooks = (SaveAction.SAVE, SaveAction.USE)
    assert real == [(action, number) for action, number, _ in saved.actions if action in hooks]
