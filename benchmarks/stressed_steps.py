"""Steps of every model of the zoo under stress, each compared with eager PyTorch bit by bit.

    python benchmarks/stressed_steps.py [--steps 75] [--budgets 70%,45%]

Every stream is delayed at random, and memory is poisoned before it is valid, so that what depends on a wait that is not
there, or on memory that is not written yet, gives other bits.
"""

from __future__ import annotations

import argparse

import planner

MODELS = (
    "mlp:layers=4,hidden=64,batch=32",
    "rnn:layers=2,hidden=32,steps=6,classes=10,batch=8",
    "brnn:layers=2,hidden=32,steps=6,classes=10,batch=8",
    "gpt:layers=3,hidden=64,heads=4,sequence=32,vocabulary=100,dropout=0.1,batch=4,optimizer=adamw",
    "wresnet:depth=50,batch=2,image=32",
    "inception:batch=2,image=75",
    "nasnet:batch=2,image=48",
)


def main() -> None:
    """Print a line per run, and how many steps differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="of the zoo, with options (default: all seven)")
    parser.add_argument("--steps", type=int, default=75, help="of each run (default 75)")
    parser.add_argument("--budgets", default="70%,45%", help="of the step's unswapped peak")
    arguments = parser.parse_args()
    steps = mismatches = 0
    for model in arguments.models:
        for budget in arguments.budgets.split(","):
            step = planner.zoo.load(model)
            run = planner.run(step, budget=budget, steps=arguments.steps, check=True, stress=True, progress=False)
            try:
                result = run.wait()
            except planner.StowageError as error:
                print(f"{model} {budget}: {error}")
                continue
            steps += len(result.step_seconds)
            mismatches += len(result.mismatches)
            copies, again = len(result.plan.swap_outs), len(result.plan.order) - len({*result.plan.order})
            print(f"{model} {budget}: {len(result.step_seconds)} steps of {copies} copies out and {again} ops again,")
            print(f"    {result.compared:,} tensors compared, {len(result.mismatches)} differ")
    print(f"{steps:,} steps, {mismatches} tensors differ")


if __name__ == "__main__":
    main()
