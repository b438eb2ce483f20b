"""The steps that `distributed.py` makes on processes: small, of every kind, with every optimizer."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
import transformers
from torch import nn

from planner.step import SGD, AdamW, Step, TrainStep
from planner.zoo import load

_GPT = "gpt:layers=2,hidden=48,heads=4,sequence=16,vocabulary=64,batch=8"


def _convolutions() -> Step:
    """Stride, padding, dilation, groups and batch norm."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
        nn.Conv2d(12, 24, 3, padding=2, dilation=2, groups=2, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 8),
    )  # fmt: skip
    batch = torch.randn(8, 3, 18, 18), torch.randint(8, (8,))
    return TrainStep(
        model, batch, loss=lambda model, batch: F.cross_entropy(model(batch[0]), batch[1]),
        optimizer=SGD(lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-3), name="convolutions",
    )  # fmt: skip


def _gpt2() -> Step:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=16, n_embd=24, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
        resid_pdrop=0.1, attn_pdrop=0.1, embd_pdrop=0.1,
    )  # fmt: skip
    return _language_model(transformers.GPT2LMHeadModel(config), "gpt2 of transformers")


def _llama() -> Step:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=16,
    )  # fmt: skip
    return _language_model(transformers.LlamaForCausalLM(config), "llama of transformers")


def _language_model(model: nn.Module, name: str) -> Step:
    tokens = torch.randint(64, (4, 16))
    batch = {"input_ids": tokens, "labels": tokens.clone()}
    return TrainStep(
        model, batch, loss=lambda model, batch: model(**batch).loss, optimizer=AdamW(lr=1e-3), name=name
    )  # fmt: skip


#: By name, what makes the step in the default precision.
STEPS: dict[str, Callable[[], Step]] = {
    "convolutions": _convolutions,
    "gpt2 of transformers": _gpt2,
    "llama of transformers": _llama,
    **{
        spec: lambda spec=spec: load(spec)  # type: ignore[misc]
        for spec in (
            "mlp:layers=2,hidden=48,batch=16",
            "mlp:layers=2,hidden=48,batch=16,optimizer=adamw",
            _GPT,
            f"{_GPT},dropout=0.1,optimizer=momentum",
            "rnn:layers=2,hidden=24,steps=4,batch=12",
            "rnn:layers=2,hidden=24,steps=4,batch=12,optimizer=adamw",
        )
    },
}
