"""The six groups of storage that pictures distinguish by colour."""

from __future__ import annotations

from enum import StrEnum

from planner.graph import Kind


class Group(StrEnum):
    """The purpose of a storage, as coarse as a palette can show; the value is its label."""

    PARAMETER = "parameters"
    OPTIMIZER_STATE = "optimizer states"
    GRADIENT = "gradients"
    ACTIVATION = "activations"
    WORKSPACE = "workspace"
    INPUT = "input"


#: From bottom to top of a stack: storages that stay for the whole step first.
STACK = (
    Group.PARAMETER, Group.OPTIMIZER_STATE, Group.INPUT, Group.ACTIVATION, Group.GRADIENT, Group.WORKSPACE,
)  # fmt: skip

#: Buffers persist like parameters, and outputs of the step are computed like activations.
GROUP_OF = {
    Kind.PARAMETER: Group.PARAMETER,
    Kind.BUFFER: Group.PARAMETER,
    Kind.OPTIMIZER_STATE: Group.OPTIMIZER_STATE,
    Kind.INPUT: Group.INPUT,
    Kind.ACTIVATION: Group.ACTIVATION,
    Kind.OUTPUT: Group.ACTIVATION,
    Kind.GRADIENT: Group.GRADIENT,
    Kind.WORKSPACE: Group.WORKSPACE,
}
