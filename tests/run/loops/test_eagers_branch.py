"""Code that goes another way when it is traced, and ops that are easy to refuse for the wrong reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from beside_eager import Loop
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence
from transformers import LlamaConfig, LlamaForCausalLM

from planner import StowageError, TrainStep
from planner.run import run
from tests.run.loops.harness import Case, Net, Specification, inputs, loop, squares

spec = Specification()


def of_output(loss: Callable[[Tensor, Any], Tensor], **rest: Any) -> Loop:
    """A loop whose loss is a function of the output and the batch."""
    return loop(loss=lambda model, batch: loss(model(batch["x"]), batch), **rest)


def llama(mask: Callable[[Tensor], Tensor], length: int) -> Loop:
    config = LlamaConfig(
        vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    ids = [torch.randint(0, 16, (2, length)) for _ in range(5)]
    batches = [{"input_ids": each, "attention_mask": mask(each), "labels": each} for each in ids]
    return loop(LlamaForCausalLM(config), lambda model, batch: model(**batch).loss, batches=batches)


@spec.equal
def a_language_model_drops_a_mask_of_ones() -> Loop:
    return llama(torch.ones_like, 64)


@spec.equal
def a_language_model_keeps_a_mask_with_padding() -> Loop:
    return llama(lambda ids: (torch.arange(64) < 50).long().expand(2, 64).contiguous(), 64)


@spec.equal_or_refused
def a_mask_is_of_ones_in_some_batches_alone() -> Loop:
    made = llama(torch.ones_like, 64)
    made.batches[2]["attention_mask"] = (torch.arange(64) < 50).long().expand(2, 64).contiguous()
    return made


@spec.equal_or_refused
def a_branch_on_the_values_of_a_batch() -> Loop:
    return of_output(lambda out, batch: out.square().mean() if bool((batch["x"] > -9).all()) else out.mean())


@spec.equal_or_refused
def a_branch_on_the_values_of_a_batch_that_changes() -> Loop:
    return of_output(lambda out, batch: out.square().mean() if bool(batch["x"][0, 0] > 0) else out.abs().mean())


@spec.equal_or_refused
def a_branch_on_whether_the_code_is_compiled_or_traced() -> Loop:
    def loss(out: Tensor, batch: Any) -> Tensor:
        traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
        traced = traced or isinstance(out, torch._subclasses.FakeTensor)
        return out.square().mean() * (2.0 if traced else 1.0)

    return of_output(loss)


@spec.equal_or_refused
def a_branch_on_the_address_of_a_tensor() -> Loop:
    return of_output(lambda out, batch: out.square().mean() * (1.0 if out.data_ptr() else 2.0))


@spec.equal_or_refused
def a_product_over_a_dimension_with_zeros() -> Loop:
    batches = inputs()
    for batch in batches:
        batch["y"][0, 0] = 0.0
    return of_output(lambda out, batch: (torch.relu(out) * batch["y"]).prod(1).square().mean(), batches=batches)


@spec.equal
def the_distance_of_pairs() -> Loop:
    return of_output(lambda out, batch: functional.pairwise_distance(out, batch["y"]).mean())


@spec.equal
def a_triplet_loss() -> Loop:
    return of_output(lambda out, batch: functional.triplet_margin_loss(out, batch["y"], batch["y"].flip(0)))


@spec.equal
def rows_are_renormalised() -> Loop:
    return of_output(lambda out, batch: out.renorm(2, 0, 0.5).square().sum())


@spec.equal_or_refused
def a_bag_of_embeddings_by_its_greatest() -> Loop:
    model = nn.Sequential(nn.EmbeddingBag(10, 8, mode="max"), nn.Linear(8, 4))
    batches = [{"x": torch.randint(0, 10, (4, 3)), "y": torch.randn(4, 4)} for _ in range(5)]
    return loop(model, batches=batches)


@spec.equal_or_refused
def connectionist_temporal_classification_with_lengths_as_numbers() -> Loop:
    def loss(out: Tensor, batch: Any) -> Tensor:
        steps = out.log_softmax(1).unsqueeze(1)
        return functional.ctc_loss(steps, torch.tensor([[1, 2]]), (4,), (2,))

    return of_output(loss)


@spec.equal_or_refused
def a_convolution_by_fourier_transforms() -> Loop:
    def loss(out: Tensor, batch: Any) -> Tensor:
        product = torch.fft.rfft(out) * torch.fft.rfft(batch["y"])
        return torch.fft.irfft(product, n=4).square().mean()

    return of_output(loss)


@spec.equal_or_refused
def rows_are_chosen_by_a_mask_of_truths() -> Loop:
    return of_output(lambda out, batch: out[batch["y"][:, 0] > 0].square().sum())


@spec.equal
def rows_are_weighted_by_a_mask_of_truths() -> Loop:
    return of_output(lambda out, batch: torch.where(batch["y"] > 0, out, 0.0).square().sum())


@spec.equal_or_refused
def a_transformer_asks_whether_its_mask_is_causal() -> Loop:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.last = nn.Transformer(8, 2, 1, 1, 8, 0.0, batch_first=True), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(4)
            return self.last(self.body(x[None], x[None], tgt_mask=mask))[0]

    return loop(Own())


@spec.equal_or_refused
def a_distribution_validates_its_arguments() -> Loop:
    return of_output(lambda out, batch: -torch.distributions.Normal(out, 1.0).log_prob(batch["y"]).mean())


@spec.equal_or_refused
def sequences_are_packed() -> Loop:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.last = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            packed = pack_padded_sequence(x[:, None].expand(4, 3, 8), torch.tensor([3, 2, 2, 1]), batch_first=True)
            return self.last(self.lstm(packed)[1][0][0])

    return loop(Own())


@spec.equal_or_refused
def a_layer_is_converted_within_forward() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            self.last.to(x.dtype)
            return super().forward(x)

    return loop(Own())


@spec.equal_or_refused
def the_loss_looks_at_a_spectrum() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        spectrum = torch.linalg.eigvalsh(model.first.weight.detach() @ model.first.weight.detach().T)
        return squares(model, batch) + 0.01 * spectrum.sum() * model.last.bias.sum()

    return loop(loss=loss)


@spec.equal_or_refused
def the_loss_is_a_norm_of_a_matrix() -> Loop:
    return of_output(lambda out, batch: torch.linalg.matrix_norm(out - batch["y"], 2))


@spec.equal
def gradients_are_checkpointed() -> Loop:
    class Own(Net):
        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.utils.checkpoint.checkpoint(self.first, x, use_reentrant=False)
            return self.last(torch.tanh(hidden))

    return loop(Own())


@spec.equal_or_refused
def the_gradient_is_taken_twice() -> Loop:
    def loss(model: Any, batch: Any) -> Tensor:
        value = squares(model, batch)
        slopes = torch.autograd.grad(value, list(model.parameters()), create_graph=True)
        return value + 0.1 * sum(slope.square().sum() for slope in slopes)

    return loop(loss=loss)


def test_code_that_asks_for_the_type_of_a_tensor_is_found_by_the_check_of_the_first_steps() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.randn(2, 4)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        out = model(x)
        return out.square().mean() * (1.0 if type(out) is Tensor else 2.0)

    with pytest.raises(StowageError, match=r"step 1 differs from eager PyTorch's in .* the first of them loss"):
        run(TrainStep(model, x, loss=loss), steps=1).wait()


@pytest.mark.parametrize("case", spec.cases)
def test_the_branch_that_eager_takes_is_taken(case: Case) -> None:
    case.check()
