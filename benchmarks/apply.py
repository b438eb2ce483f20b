"""A plan applied to ordinary PyTorch training, against the same training without it.

    python benchmarks/apply.py [--budget 50%] [--rows gpt,wresnet]

differ      tensors of the state and losses whose bits differ from plain eager's after 5 steps
plain       the most bytes of saved tensors on the device without the plan, as said and as measured
applied     the same with the plan
ratio       measured by said, with the plan
step        time of a step with the plan by that without it; on a CPU nothing overlaps the copies
In "swap" each op runs once; in "joint" some would run again, which hooks leave out. What is measured shares no code
with what is applied.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import transformers
from rich import box
from rich.console import Console
from rich.table import Table

import planner
from planner.units import format_bytes

sys.path.insert(0, str(Path(__file__).parent.parent))  # the meter is a part of the tests
from tests.apply.meter import Meter

STEPS = 5
SIZES = {
    "vocab_size": 200,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}


def text() -> dict[str, torch.Tensor]:
    tokens = torch.randint(200, (4, 64))
    return {"input_ids": tokens, "labels": tokens.clone()}


def of_transformers(make: Callable[[], torch.nn.Module]) -> Callable[[], planner.TrainStep]:
    return lambda: planner.TrainStep(make, text, optimizer=planner.AdamW(lr=1e-3))


def gpt2(hidden: int = 64, positions: int = 64) -> torch.nn.Module:
    config = transformers.GPT2Config(vocab_size=200, n_positions=positions, n_embd=hidden, n_layer=4, n_head=4)
    return transformers.GPT2LMHeadModel(config)


def llama() -> torch.nn.Module:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_key_value_heads=2))


def t5() -> torch.nn.Module:
    config = transformers.T5Config(vocab_size=200, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
    config.decoder_start_token_id = 0
    return transformers.T5ForConditionalGeneration(config)


ROWS: dict[str, Callable[[], Any]] = {
    "wresnet": lambda: planner.zoo.load("wresnet:depth=50,batch=8,image=64"),
    "gpt": lambda: planner.zoo.load(
        "gpt:layers=6,hidden=64,heads=4,sequence=128,vocabulary=200,dropout=0.1,batch=4,optimizer=adamw"
    ),
    "rnn": lambda: planner.zoo.load("rnn:layers=2,hidden=64,steps=10,classes=24,batch=16"),
    "gpt2": of_transformers(gpt2),
    "llama": of_transformers(llama),
    "t5": of_transformers(t5),
}


def trained(step: planner.TrainStep, block: Any) -> tuple[list[torch.Tensor], float, int]:
    """Losses, seconds of a step, and measured bytes of a training of some steps in a block."""
    live = step.materialize()
    meter = Meter([*live.model.parameters(), *live.model.buffers(), *step.batch_leaves()])
    torch.manual_seed(0)
    with block:
        losses, begun = [step.eager()], perf_counter()
        losses += [step.eager() for _ in range(STEPS - 2)]
        seconds = (perf_counter() - begun) / (STEPS - 2)
        with meter.watching():
            losses.append(step.eager())
    return losses, seconds, meter.peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="50%", help="share of the step's peak, or bytes")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each search")
    parser.add_argument("--rows", default=",".join(ROWS), help="names, with commas between them")
    arguments = parser.parse_args()
    table = Table(
        "model", "plan", "differ", "plain said", "measured", "applied said", "measured", "ratio", "step", box=box.SIMPLE
    )
    for row in arguments.rows.split(","):
        for method in ("swap", "joint"):
            step = ROWS[row]()
            graph, gpu = planner.capture(step, progress=False), planner.machine("v100-16gb")
            plan = planner.plan_swaps(
                graph, gpu, arguments.budget, method=method, time_limit=arguments.seconds, progress=False
            )
            applied = planner.apply(plan, step, progress=False)
            eager = step.clone()
            losses, plain_seconds, plain = trained(eager, nullcontext())
            found, seconds, measured = trained(step, applied)
            state, others = eager.state(), step.state()
            differ = sum(not torch.equal(one, others[key]) for key, one in state.items())
            differ += sum(not torch.equal(*pair) for pair in zip(losses, found, strict=True))
            table.add_row(
                row, method, str(differ), format_bytes(applied.unswapped_bytes), format_bytes(plain),
                format_bytes(applied.peak_bytes), format_bytes(measured), f"{measured / applied.peak_bytes:.3f}",
                f"{seconds / plain_seconds:.2f}",
            )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
