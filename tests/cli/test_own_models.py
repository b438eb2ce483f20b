"""A model of someone else's, handed over as `path/to/file.py:function`, trains inside its budget with eager's bits."""

from pathlib import Path

FILE = """
import torch
import transformers
import planner

def llama():
    config = transformers.LlamaConfig(
        vocab_size=200, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32,
    )
    tokens = torch.randint(200, (2, 16), generator=torch.Generator().manual_seed(0))
    return planner.TrainStep(
        lambda: transformers.LlamaForCausalLM(config), {"input_ids": tokens, "labels": tokens},
        optimizer=planner.AdamW(lr=1e-3),
    )
"""


def test_a_transformers_model_trains_inside_its_budget(planner, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FILE)
    model = f"{tmp_path / 'own.py'}:llama"
    facts = planner("run", model, "--budget", "30%", "--steps", 3, "--check", "--stress", "--json").json
    assert facts["mismatches"] == 0
    assert facts["compared"] > 3 * 3
    assert facts["peak_bytes"] <= facts["budget_bytes"]
    assert facts["host_bytes"] > 0
