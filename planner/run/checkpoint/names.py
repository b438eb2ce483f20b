"""What tensors are called in a checkpoint, so that PyTorch alone can load it into a model."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

#: The section of what a step needs to go on, beside its state: all tensors, of which nothing is executed.
TRAINING = "training"
#: The section of a model's tensors that are not in its `state_dict()`.
_OTHERS = "buffers"

#: Where a tensor is: a section, and names in it. DCP joins them by dots where it needs one name.
Place = tuple[str, ...]


def name_of(place: Place) -> str:
    """The name of a tensor in a checkpoint, as DCP forms it from nested dictionaries."""
    return ".".join(place)


def places(state: Mapping[str, Tensor], model: nn.Module) -> dict[str, Place]:
    """By key of `Step.state()`, where the tensor is.

    `model` has what the model's `state_dict()` has under the same names, so `dcp.load({"model": model.state_dict()},
    checkpoint_id=...)` loads it.

    Args:
        state: by key.
        model: whose state it is.
    """
    listed = model.state_dict(keep_vars=True)
    found: dict[str, Place] = {}
    for key in state:
        section, name = key.split("/", 1)
        if section == "optimizer":
            parameter, _, kind = name.rpartition("/")
            found[key] = section, parameter, kind
        else:
            found[key] = (_OTHERS if section == "model" and name not in listed else section), name
    return found


def aliases(state: Mapping[str, Tensor], model: nn.Module) -> dict[Place, str]:
    """Where the model's `state_dict()` lists a tensor once more, and the key that it has in the state."""
    known = {_memory(value): key for key, value in state.items() if key.startswith("model/")}
    return {
        ("model", name): known[_memory(value)]
        for name, value in model.state_dict(keep_vars=True).items()
        if f"model/{name}" not in state and isinstance(value, Tensor) and _memory(value) in known
    }


def _memory(value: Tensor) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return value.data_ptr(), tuple(value.shape), tuple(value.stride())
