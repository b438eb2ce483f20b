"""GPT: a causal transformer over tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from planner.errors import StowageError
from planner.zoo.steps import Batch, Mode, Optimizer, ZooStep, classification_step, require_positive, title


class Attention(nn.Module):
    """Causal multi-head self-attention."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.to_qkv = nn.Linear(hidden, 3 * hidden)
        self.to_out = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Mixed values (batch, sequence, hidden) of values (batch, sequence, hidden)."""
        batch, sequence, hidden = x.shape
        q, k, v = self.to_qkv(x).view(batch, sequence, 3, self.heads, hidden // self.heads).unbind(2)
        mixed = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
            is_causal=True, dropout_p=self.dropout if self.training else 0.0,
        )  # fmt: skip
        out: Tensor = self.to_out(mixed.transpose(1, 2).reshape(batch, sequence, hidden))
        return out


class Block(nn.Module):
    """Attention and a feed-forward layer, each after a layer norm and around a shortcut."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads, dropout)
        self.feed_forward_norm = nn.LayerNorm(hidden)
        self.expand = nn.Linear(hidden, 4 * hidden)
        self.contract = nn.Linear(4 * hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Values (batch, sequence, hidden) of values (batch, sequence, hidden)."""
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        out: Tensor = x + self.dropout(self.contract(F.gelu(self.expand(self.feed_forward_norm(x)))))
        return out


class GPT(nn.Module):
    """Token and position embeddings, blocks, and a linear head of its own."""

    def __init__(self, layers: int, hidden: int, heads: int, *, sequence: int, vocabulary: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores (batch, sequence, vocabulary) of tokens (batch, sequence)."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(self.norm(x))
        return scores


def gpt(
    *, layers: int = 4, hidden: int = 256, heads: int = 4, sequence: int = 128, vocabulary: int = 1000,
    dropout: float = 0.0, batch: int = 4, optimizer: Optimizer = "sgd", mode: Mode = "train", seed: int = 0,
) -> ZooStep:  # fmt: skip
    """GPT on random tokens.

    Args:
        layers, hidden, heads: transformer blocks, their width, and attention heads.
        sequence: tokens per sequence.
        vocabulary: different tokens.
        dropout: probability after every sub-layer and inside the attention.
        batch: sequences per step.
        optimizer: `sgd`, `momentum`, `adam` or `adamw`; for training.
        mode: `train`, or `inference`: the forward pass in evaluation mode.
        seed: of weights and batch.

    Raises:
        StowageError: an argument is out of range.
    """
    require_positive(
        "gpt", layers=layers, hidden=hidden, heads=heads, sequence=sequence, vocabulary=vocabulary, batch=batch
    )
    if hidden % heads:
        raise StowageError(f"gpt: hidden={hidden} must be a multiple of heads={heads}")
    if not 0 <= dropout < 1:
        raise StowageError(f"gpt: dropout={dropout} must be at least 0 and below 1")

    def data() -> Batch:
        tokens = torch.randint(0, vocabulary, (batch, sequence + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    name = title(
        gpt, layers=layers, hidden=hidden, heads=heads, sequence=sequence, vocabulary=vocabulary, dropout=dropout,
        batch=batch, optimizer=optimizer, mode=mode, seed=seed,
    )  # fmt: skip
    return classification_step(
        name,
        lambda: GPT(layers, hidden, heads, sequence=sequence, vocabulary=vocabulary, dropout=dropout),
        data,
        optimizer,
        seed,
        mode,
    )
