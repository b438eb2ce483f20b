"""Training inside half and a third of what a step needs: bits compared with eager, bytes held against the budget."""

from __future__ import annotations

import argparse

import torch
import transformers
from rich.console import Console
from rich.table import Table

import planner
from planner.units import format_bytes

MODELS = (
    "wresnet:depth=50,widen=2,batch=16,image=64",
    "rnn:layers=2,hidden=512,steps=20,batch=16,optimizer=momentum",
    "gpt:layers=4,hidden=256,heads=4,sequence=128,dropout=0.1,optimizer=adam",
    "transformers",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="zoo models, or the word transformers for a small Llama")
    parser.add_argument("--budgets", default="50%,30%", help="of the step's own peak (default 50%%,30%%)")
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.steps} steps beside eager PyTorch")
    for column in ("model", "budget", "bytes allowed", "measured peak", "host", "tensors compared", "mismatches"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for text in arguments.models or MODELS:
        for budget in arguments.budgets.split(","):
            step = llama() if text == "transformers" else planner.zoo.load(text)
            result = planner.run(step, budget=budget, steps=arguments.steps, check=True).wait()
            table.add_row(
                step.name, budget, f"{result.budget_bytes:,}", f"{result.peak_bytes:,}",
                format_bytes(result.host_bytes), str(result.compared), str(len(result.mismatches)),
            )  # fmt: skip
    Console(width=130).print(table)


def llama() -> planner.TrainStep:
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=384, num_hidden_layers=6, num_attention_heads=8,
        num_key_value_heads=4, max_position_embeddings=128,
    )  # fmt: skip
    tokens = torch.randint(1000, (4, 64), generator=torch.Generator().manual_seed(0))
    return planner.TrainStep(
        lambda: transformers.LlamaForCausalLM(config),
        {"input_ids": tokens, "labels": tokens},
        optimizer=planner.AdamW(lr=1e-3),
        name="Llama, 6 layers (transformers)",
    )


if __name__ == "__main__":
    main()
