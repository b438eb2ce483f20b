"""Element-wise operators: every element of the output from the elements of the inputs at its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import pi, sqrt
from typing import Any

from planner.partition.ops.broadcast import at
from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import Description, Expression, Operand, apply, counted, where

Scalars = Any  # numbers and words among an operator's arguments


def elementwise(*targets: str) -> Callable[[Callable[..., Expression]], Callable[..., Expression]]:
    """Describe operators by a function of elements; its parameters are named as in the operators' schemas."""

    def register(function: Callable[..., Expression]) -> Callable[..., Expression]:
        def describer(op: Description, **arguments: Any) -> None:
            out = op.output(0)
            i = counted("i", len(out.shape))
            elements = {name: _element(value, i) for name, value in arguments.items()}
            out[i] = function(**elements)

        parameters = [inspect.Parameter("op", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
        describer.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters + list(inspect.signature(function).parameters.values())
        )
        describes(*targets)(describer)
        return function

    return register


def _element(value: Any, coordinates: tuple[Any, ...]) -> Any:
    return at(value, coordinates) if isinstance(value, Operand) else value


def unary(name: str) -> None:
    """Describe an operator of one tensor, and its in-place form, by the function of the same name."""
    elementwise(f"{name}.default", f"{name}_.default")(lambda self: apply(name, self))


def binary(name: str) -> None:
    """Describe an operator of two tensors by the function of the same name."""
    elementwise(f"{name}.default")(lambda self, other: apply(name, self, other))


def compared(name: str) -> None:
    """Describe a comparison of a tensor with another or with a number."""
    elementwise(f"{name}.Tensor", f"{name}.Scalar")(lambda self, other: apply(name, self, other))


for _name in (
    "abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "log", "log1p", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sqrt", "tanh", "trunc",
):  # fmt: skip
    unary(_name)
for _name in ("eq", "ge", "gt", "le", "lt", "ne"):
    compared(_name)
for _name in ("maximum", "minimum", "atan2"):
    binary(_name)


@elementwise("add.Tensor", "add_.Tensor", "add.Scalar")
def add(self: Expression, other: Expression, alpha: Scalars) -> Expression:
    """x + alpha y."""
    return apply("add", self, _times(other, alpha))


@elementwise("sub.Tensor", "sub_.Tensor", "sub.Scalar")
def sub(self: Expression, other: Expression, alpha: Scalars) -> Expression:
    """x - alpha y."""
    return apply("sub", self, _times(other, alpha))


@elementwise("rsub.Scalar", "rsub.Tensor")
def rsub(self: Expression, other: Expression, alpha: Scalars) -> Expression:
    """y - alpha x."""
    return apply("sub", other, _times(self, alpha))


@elementwise("mul.Tensor", "mul_.Tensor", "mul.Scalar", "mul_.Scalar")
def mul(self: Expression, other: Expression) -> Expression:
    """x y."""
    return self * other


@elementwise("div.Tensor", "div_.Tensor", "div.Scalar", "div_.Scalar")
def div(self: Expression, other: Expression) -> Expression:
    """x / y."""
    return self / other


@elementwise("floor_divide.default", "floor_divide.Scalar")
def floor_divide(self: Expression, other: Expression) -> Expression:
    """The largest whole number not above x / y."""
    return apply("floor", self / other)


@elementwise("remainder.Scalar", "remainder.Tensor")
def remainder(self: Expression, other: Expression) -> Expression:
    """x - y floor(x / y)."""
    return apply("remainder", self, other)


@elementwise("pow.Tensor_Scalar", "pow.Tensor_Tensor")
def power(self: Expression, exponent: Expression) -> Expression:
    """x to the power of y."""
    return apply("pow", self, exponent)


@elementwise("lerp.Scalar", "lerp_.Scalar", "lerp.Tensor")
def lerp(self: Expression, end: Expression, weight: Expression) -> Expression:
    """x + w (y - x)."""
    return self + (end - self) * weight


@elementwise("addcmul.default", "addcmul_.default")
def addcmul(self: Expression, tensor1: Expression, tensor2: Expression, value: Scalars) -> Expression:
    """x + value y z."""
    return apply("add", self, _times(tensor1 * tensor2, value))


@elementwise("addcdiv.default", "addcdiv_.default")
def addcdiv(self: Expression, tensor1: Expression, tensor2: Expression, value: Scalars) -> Expression:
    """x + value y / z."""
    return apply("add", self, _times(tensor1 / tensor2, value))


@elementwise("clone.default", "alias.default", "detach.default")
def clone(self: Expression) -> Expression:
    """The value itself."""
    return self


@elementwise("_to_copy.default")
def to_copy(self: Expression, dtype: Scalars) -> Expression:
    """x in another type: fractions are cut off by whole numbers."""
    kind = str(dtype)
    if kind.endswith("bool"):
        return apply("ne", self, 0)
    return apply("trunc", self) if "int" in kind else self


@elementwise("copy_.default")
def copy(self: Expression, src: Expression) -> Expression:  # noqa: ARG001
    """The other value."""
    return src


@elementwise("fill_.Tensor", "fill_.Scalar", "fill.Scalar", "fill.Tensor")
def fill(self: Expression, value: Expression) -> Expression:  # noqa: ARG001
    """The value."""
    return apply("add", value, 0)


@elementwise("where.self", "where.self_out", "where.ScalarSelf", "where.ScalarOther")
def select(condition: Expression, self: Expression, other: Expression) -> Expression:
    """x where the condition holds, else y."""
    return where(condition, self, other)


@elementwise("masked_fill.Scalar", "masked_fill_.Scalar", "masked_fill.Tensor")
def masked_fill(self: Expression, mask: Expression, value: Expression) -> Expression:
    """The value where the mask holds, else x."""
    return where(mask, value, self)


@elementwise("clamp.default", "clamp_.default")
def clamp(self: Expression, min: Scalars, max: Scalars) -> Expression:
    """X, but at least min and at most max."""
    low = self if min is None else apply("maximum", self, min)
    return low if max is None else apply("minimum", low, max)


@elementwise("clamp_min.default")
def clamp_min(self: Expression, min: Scalars) -> Expression:
    """X, but at least min."""
    return apply("maximum", self, min)


@describes("bitwise_and.Tensor", "bitwise_or.Tensor", "logical_and.default", "logical_or.default")
def logic(op: Description, self: Operand, other: Operand) -> None:
    """Both, or either, of two truth values; bits of whole numbers are not described."""
    out = op.output(0)
    if "logical" not in op.name and {self.dtype, other.dtype} != {"bool"}:
        unknown(op)
        return
    i = counted("i", len(out.shape))
    out[i] = apply("logical_and" if "and." in op.name else "logical_or", at(self, i), at(other, i))


@elementwise("logical_not.default")
def negation(self: Expression) -> Expression:
    """Whether x is 0."""
    return apply("logical_not", self)


@elementwise("relu.default", "relu_.default")
def relu(self: Expression) -> Expression:
    """The larger of x and 0."""
    return apply("maximum", self, 0)


@elementwise("threshold_backward.default")
def threshold_backward(grad_output: Expression, self: Expression, threshold: Scalars) -> Expression:
    """The gradient where x is above the threshold."""
    return where(apply("gt", self, threshold), grad_output, 0)


@elementwise("silu.default", "silu_.default")
def silu(self: Expression) -> Expression:
    """x sigmoid(x)."""
    return self * apply("sigmoid", self)


@elementwise("silu_backward.default")
def silu_backward(grad_output: Expression, self: Expression) -> Expression:
    """The gradient times s (1 + x (1 - s)), where s = sigmoid(x)."""
    s = apply("sigmoid", self)
    return grad_output * (s * (1 + self * (1 - s)))


@elementwise("sigmoid_backward.default")
def sigmoid_backward(grad_output: Expression, output: Expression) -> Expression:
    """The gradient times y (1 - y)."""
    return grad_output * (output * (1 - output))


@elementwise("tanh_backward.default")
def tanh_backward(grad_output: Expression, output: Expression) -> Expression:
    """The gradient times 1 - y^2."""
    return grad_output * (1 - output * output)


@elementwise("gelu.default")
def gelu(self: Expression, approximate: Scalars) -> Expression:
    """x times the normal distribution at x, or its approximation by tanh."""
    if approximate == "tanh":
        return 0.5 * self * (1 + apply("tanh", _cubic(self)))
    return 0.5 * self * (1 + apply("erf", self / sqrt(2)))


@elementwise("gelu_backward.default")
def gelu_backward(grad_output: Expression, self: Expression, approximate: Scalars) -> Expression:
    """The gradient times the derivative of gelu."""
    if approximate == "tanh":
        t = apply("tanh", _cubic(self))
        slope = sqrt(2 / pi) * (1 + 3 * 0.044715 * self * self)
        return grad_output * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)
    density = apply("exp", -0.5 * self * self) / sqrt(2 * pi)
    return grad_output * (0.5 * (1 + apply("erf", self / sqrt(2))) + self * density)


@describes("tril.default", "triu.default")
def triangle(op: Description, self: Operand, diagonal: int) -> None:
    """What is on one side of a diagonal; chosen by `op.name`."""
    out = op.output(0)
    i = counted("i", len(out.shape))
    side = "le" if "tril" in op.name else "ge"
    out[i] = where(apply(side, i[-1] - i[-2], diagonal), self[i], 0)


def _cubic(x: Expression) -> Expression:
    return sqrt(2 / pi) * (x + 0.044715 * x * x * x)


def _times(value: Any, factor: Scalars) -> Any:
    return value if factor == 1 else apply("mul", value, factor)
