"""Steps of every kind of layer that a GPU has kernels of its own for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn
from torch.utils.checkpoint import checkpoint

from planner.step import SGD, AdamW, Step, TrainStep
from planner.zoo import load
from tests.effort import EFFORT
from tests.run.steps import convolutions


def language_model(make: Callable[[], nn.Module]) -> Step:
    def batch() -> dict[str, torch.Tensor]:
        tokens = torch.randint(64, (2, 16))
        return {"input_ids": tokens, "labels": tokens.clone()}

    return TrainStep(make, batch, loss=lambda model, batch: model(**batch).loss, optimizer=AdamW())


def _of(config: Any, model: Any, **settings: Any) -> Callable[[], Step]:
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
             "num_attention_heads": 4, "max_position_embeddings": 16}  # fmt: skip
    return lambda: language_model(lambda: model(config(**sizes | settings)))


def _gpt2() -> Step:
    config = transformers.GPT2Config(  # attention that drops nothing
        vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0, attn_pdrop=0.0
    )
    return language_model(lambda: transformers.GPT2LMHeadModel(config))


class _Odd(nn.Module):
    """Random numbers of every kind, masks, positions, and numbers made where the input is."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(16, 16), nn.GroupNorm(4, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.linear(x))
        x = x + torch.randn_like(x) * torch.rand(16, device=x.device)
        mask = torch.ones(8, 8, dtype=torch.bool, device=x.device).tril()
        scores = (x @ x.t()).masked_fill(~mask, float("-inf")).softmax(-1)
        kept = torch.bernoulli(torch.full_like(scores, 0.5)) * torch.tensor(2.0, device=x.device)
        return (scores * kept) @ x + torch.arange(16, device=x.device)


def _odd() -> Step:
    return TrainStep(_Odd, lambda: torch.randn(8, 16), loss=lambda model, x: model(x).square().mean(),
                     optimizer=SGD(momentum=0.9, nesterov=True), clip_norm=1.0)  # fmt: skip


class _Attention(nn.Module):
    """Each fused attention that GPUs have, and the norm that they have as one kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.RMSNorm(64), nn.Linear(64, 256), nn.Linear(256, 64))
                                    for _ in range(3))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        aten = torch.ops.aten
        for number, layer in enumerate(self.layers):
            y = layer(x).to(torch.bfloat16).view(2, 16, 4, 16).transpose(1, 2)
            if number == 0:
                y = aten._scaled_dot_product_flash_attention(y, y, y, 0.0, True)[0]
            else:
                fused = (aten._scaled_dot_product_efficient_attention, aten._scaled_dot_product_cudnn_attention)
                y = fused[number - 1](y, y, y, None, True, 0.0, True)[0]
            x = x + y.transpose(1, 2).flatten(2)
        return x


def _attention() -> Step:
    return TrainStep(_Attention, lambda: torch.randn(2, 16, 64), loss=lambda model, x: model(x).square().mean())


def _autocast(name: str, dtype: torch.dtype, scaler: torch.amp.GradScaler | None = None) -> Callable[[], Step]:
    def made() -> Step:
        step = load(name)
        assert isinstance(step, TrainStep)
        step.autocast, step.scaler = dtype, scaler
        return step

    return made


class _Normalised(nn.Module):
    """Batch normalisation by cuDNN."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = self.norm
        found, *_ = torch.ops.aten.cudnn_batch_norm(
            self.layer(x), norm.weight, norm.bias, norm.running_mean, norm.running_var, True, 0.1, norm.eps
        )
        return found


def _normalised() -> Step:
    return TrainStep(_Normalised, lambda: torch.randn(4, 3, 8, 8), loss=lambda model, x: model(x).square().mean())


_LARGE = ("rnn", "wresnet", "inception", "nasnet", "brnn")
ZOO = ("mlp", "gpt:layers=2,dropout=0.1", "rnn:layers=2,hidden=24,steps=3,batch=4", *(_LARGE if EFFORT > 1 else ()))


def _assigned() -> Step:
    """Numbers are assigned to places, as models of transformers shift what they are to predict."""

    def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        y[:, 0], y[..., 1], y[0, 2] = 3, 2.5, 4
        y[x > 2] = 7.0
        y[torch.arange(2, device=x.device)] = 1
        return (y * model(x)).square().mean()

    return TrainStep(lambda: nn.Linear(16, 16), lambda: torch.randn(4, 16), loss=loss)


#: By name, what makes a step.
STEPS: dict[str, Callable[[], Step]] = {
    **{name: lambda name=name: load(name) for name in ZOO},
    "convolutions": convolutions,
    "gpt with autocast": _autocast("gpt:layers=2", torch.bfloat16),
    "gpt with a gradient scaler": _autocast("gpt:layers=2", torch.float16, torch.amp.GradScaler("cpu")),
    "GPT-2": _gpt2,
    "Llama": _of(transformers.LlamaConfig, transformers.LlamaForCausalLM, num_key_value_heads=2),
    "BERT": _of(transformers.BertConfig, transformers.BertForMaskedLM, attention_probs_dropout_prob=0.0),
    "odd layers": _odd,
    "assigned numbers": _assigned,
    "fused attention": _attention,
    "dropout in a checkpoint": lambda: _of_function(lambda: nn.Linear(16, 16), _dropped_again),
}


#: By name, what makes a step whose forward pass keeps memory that only its own backward pass understands.
KEEPING: dict[str, Callable[[], Step]] = {"fused attention": _attention, "cuDNN's batch norm": _normalised}


def _of_function(make: Callable[[], nn.Module], forward: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> Step:
    return TrainStep(make, lambda: torch.randn(4, 8, 16), loss=lambda model, x: forward(model, x).square().mean())


def _attended(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = layer(x).unsqueeze(0)
    found, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(y, y, y, None, True, 0.1)
    return found


def _dropped_again(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    def dropped(x: torch.Tensor) -> torch.Tensor:
        return torch.dropout(layer(x), 0.5, True)

    found: torch.Tensor = checkpoint(dropped, x, use_reentrant=False)
    return found


def _recurrent(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    weights = [layer.weight] * 2
    found, *_ = torch.ops.aten._cudnn_rnn(
        x, weights, 2, None, x[:1], None, 1, 16, 0, 1, False, 0.0, True, False, [], None
    )
    return found


def _in_one_block(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Begin as PyTorch begins a recurrent layer by cuDNN."""
    torch.empty(0, device=x.device).set_(layer.weight.untyped_storage())
    return layer(x)


#: By name, what makes a step that no plan for a GPU can hold.
REFUSED: dict[str, Callable[[], Step]] = {
    "made on the host": lambda: _of_function(
        lambda: nn.Linear(16, 16), lambda layer, x: layer(x) * torch.arange(16).to(x.device)
    ),
    "a number on the host": lambda: _of_function(
        lambda: nn.Linear(16, 16), lambda layer, x: layer(x) * torch.tensor(0.5)
    ),
    "drawn on the host": lambda: _of_function(
        lambda: nn.Linear(16, 16), lambda layer, x: layer(x) * torch.randn(16).to(x.device)
    ),
    "attention with dropout": lambda: _of_function(lambda: nn.Linear(16, 16), _attended),
    "a recurrent layer": lambda: _of_function(lambda: nn.Linear(16, 16), _recurrent),
    "a recurrent layer's weights": lambda: _of_function(lambda: nn.Linear(16, 16), _in_one_block),
}
