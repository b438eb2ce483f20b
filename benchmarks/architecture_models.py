"""Forty-odd architectures of `transformers`, each tiny and made from its configuration, with batches to train on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

#: Names that most configurations agree on.
SMALL = {
    "vocab_size": 60, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 160, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GROUPED = {**SMALL, "num_key_value_heads": 2}
VISION = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8, "num_labels": 5,
}  # fmt: skip
SPEECH = {
    "vocab_size": 32, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "conv_dim": (8, 8), "conv_stride": (4, 4), "conv_kernel": (8, 4), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "pad_token_id": 0,
    # LayerDrop and SpecAugment draw from Python's and NumPy's generators, which a plan cannot hold
    "layerdrop": 0.0, "apply_spec_augment": False, "mask_time_prob": 0.0,
}  # fmt: skip
MASKS = ("64 ones", "128 ones", "64 padded", "128 padded", "128 ones then padded")

Batch = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Architecture:
    """A model and what it is trained on.

    Args:
        model: the class's name in `transformers`.
        config: the configuration's.
        settings: of the configuration.
        batch: from the step's number and the kind of mask to the tensors of a batch.
        masks: kinds of masks that make a difference to it.
        asks: arguments of the model besides the batch (`output_hidden_states=True`).
        optimizer: what trains it.
    """

    model: str
    config: str
    settings: dict[str, Any]
    batch: Callable[[int, str], Batch]
    masks: tuple[str, ...] = ("",)
    asks: dict[str, Any] = field(default_factory=dict)
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW

    def build(self) -> torch.nn.Module:
        """The model, in training mode, the same one every time."""
        torch.manual_seed(0)
        config = getattr(transformers, self.config)(**self.settings)
        return getattr(transformers, self.model)(config).train()


def text(step: int, mask: str, *, vocabulary: int = 60) -> Batch:
    """Tokens with a mask: `"64 ones"`, `"128 padded"`, or ones at first and padding from the third step on."""
    length = int(mask.split(maxsplit=1)[0])
    tokens = torch.randint(3, vocabulary, (2, length))
    attention = torch.ones(2, length, dtype=torch.int64)
    if mask.endswith("padded") and (step >= 2 or "then" not in mask):
        attention[1, -5 - step :] = 0
    return {"input_ids": tokens, "attention_mask": attention, "labels": tokens.masked_fill(attention == 0, -100)}


def classified_text(step: int, mask: str) -> Batch:
    return {**text(step, mask), "labels": torch.randint(2, (2,))}


def two_texts(step: int, mask: str) -> Batch:
    return {**text(step, mask), "labels": torch.randint(3, 60, (2, 24))}


def pictures(*_: Any) -> Batch:
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.randint(5, (2,))}


def sound(step: int, mask: str) -> Batch:
    """Waves with transcripts."""
    attention = torch.ones(2, 800, dtype=torch.int64)
    if mask:
        attention[1, -100 - step :] = 0
    return {"input_values": torch.randn(2, 800), "attention_mask": attention, "labels": torch.randint(3, 32, (2, 6))}


def classified_sound(step: int, mask: str) -> Batch:
    """Waves with a class each."""
    return {**sound(step, mask), "labels": torch.randint(5, (2,))}


def spectrum(*_: Any) -> Batch:
    return {"input_features": torch.randn(2, 8, 64), "labels": torch.randint(3, 60, (2, 12))}


def pairs(step: int, mask: str) -> Batch:
    found = {**text(step, mask), "pixel_values": torch.randn(2, 3, 32, 32)}
    del found["labels"]
    return found


def decoder(name: str, settings: dict[str, Any], config: str | None = None, **more: Any) -> Architecture:
    family = name.removesuffix("ForCausalLM").removesuffix("LMHeadModel")
    more.setdefault("masks", MASKS)
    return Architecture(name, config or f"{family}Config", settings, text, **more)


def encoder(name: str, settings: dict[str, Any], batch: Callable[[int, str], Batch] = text) -> Architecture:
    family = name.partition("For")[0]
    return Architecture(
        name, f"{family}Config", {**NO_DROPOUT, **settings}, batch, ("128 ones", "128 padded", "128 ones then padded")
    )


def vision(name: str, settings: dict[str, Any], **more: Any) -> Architecture:
    return Architecture(name, f"{name.partition('For')[0]}Config", settings, pictures, **more)


def mixture(name: str, settings: dict[str, Any]) -> Architecture:
    return decoder(
        name, {**GROUPED, "output_router_logits": True, **settings}, masks=("64 ones", "128 padded"),
        asks={"output_router_logits": True},
    )  # fmt: skip


SEQUENCES = {
    "vocab_size": 60, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 160,
    "dropout": 0.0, "attention_dropout": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0, "forced_eos_token_id": None,
}  # fmt: skip
TRANSLATED = ("128 ones", "128 padded")
HIDDEN = {"output_hidden_states": True}
SGD = torch.optim.SGD

ARCHITECTURES = {
    "llama": decoder("LlamaForCausalLM", GROUPED),
    "llama-eager": decoder("LlamaForCausalLM", {**GROUPED, "attn_implementation": "eager"}),
    "mistral": decoder("MistralForCausalLM", {**GROUPED, "sliding_window": 32}),
    "qwen2": decoder("Qwen2ForCausalLM", GROUPED, optimizer=SGD),
    "qwen3": decoder("Qwen3ForCausalLM", {**GROUPED, "head_dim": 4}),
    "gemma": decoder("GemmaForCausalLM", {**GROUPED, "head_dim": 4}),
    "gemma2": decoder("Gemma2ForCausalLM", {**GROUPED, "head_dim": 4, "sliding_window": 32}, asks=HIDDEN),
    "gpt2": decoder(
        "GPT2LMHeadModel",
        {"vocab_size": 60, "n_positions": 160, "n_embd": 16, "n_layer": 2, "n_head": 4, "bos_token_id": 1,
         "eos_token_id": 2},
    ),
    "gpt_neo": decoder(
        "GPTNeoForCausalLM",
        {"vocab_size": 60, "hidden_size": 16, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 160,
         "attention_types": [[["global", "local"], 1]], "window_size": 32, "bos_token_id": 1, "eos_token_id": 2},
    ),
    "gpt_neox": decoder("GPTNeoXForCausalLM", SMALL),
    "opt": decoder(
        "OPTForCausalLM",
        {"vocab_size": 60, "hidden_size": 16, "ffn_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "max_position_embeddings": 160, "word_embed_proj_dim": 16, "layerdrop": 0.0, "pad_token_id": 0},
    ),
    "phi": decoder("PhiForCausalLM", {**SMALL, "partial_rotary_factor": 0.5}),
    "phi3": decoder("Phi3ForCausalLM", GROUPED),
    "falcon": decoder(
        "FalconForCausalLM",
        {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": False,
         "bos_token_id": 1, "eos_token_id": 2},
    ),
    "bloom": decoder(
        "BloomForCausalLM",
        {"vocab_size": 60, "hidden_size": 16, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2},
    ),
    "olmo": decoder("OlmoForCausalLM", GROUPED, optimizer=SGD),
    "stablelm": decoder("StableLmForCausalLM", GROUPED),
    "starcoder2": decoder("Starcoder2ForCausalLM", GROUPED),
    "granite": decoder("GraniteForCausalLM", GROUPED, asks=HIDDEN),
    "cohere": decoder("CohereForCausalLM", GROUPED),
    "bert": encoder("BertForMaskedLM", SMALL),
    "roberta": encoder("RobertaForMaskedLM", {**SMALL, "max_position_embeddings": 200}),
    "xlm_roberta": encoder("XLMRobertaForSequenceClassification", {**SMALL, "max_position_embeddings": 200},
                           classified_text),
    "distilbert": encoder(
        "DistilBertForSequenceClassification",
        {"vocab_size": 60, "dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 160,
         "dropout": 0.0, "attention_dropout": 0.0},
        classified_text,
    ),
    "electra": encoder("ElectraForSequenceClassification", {**SMALL, "embedding_size": 16}, classified_text),
    "albert": encoder("AlbertForMaskedLM", {**SMALL, "embedding_size": 16}),
    "deberta_v2": encoder(
        "DebertaV2ForMaskedLM",
        {**SMALL, "relative_attention": True, "position_buckets": 16, "pos_att_type": ["p2c", "c2p"],
         "norm_rel_ebd": "layer_norm", "share_att_key": True},
    ),
    "mpnet": encoder("MPNetForMaskedLM", {**SMALL, "max_position_embeddings": 200}),
    "t5": Architecture(
        "T5ForConditionalGeneration", "T5Config",
        {"vocab_size": 60, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0,
         "decoder_start_token_id": 0},
        two_texts, TRANSLATED,
    ),
    "bart": Architecture("BartForConditionalGeneration", "BartConfig", SEQUENCES, two_texts, TRANSLATED, HIDDEN),
    "mbart": Architecture("MBartForConditionalGeneration", "MBartConfig", SEQUENCES, two_texts, TRANSLATED),
    "pegasus": Architecture("PegasusForConditionalGeneration", "PegasusConfig", SEQUENCES, two_texts, TRANSLATED),
    "marian": Architecture("MarianMTModel", "MarianConfig", SEQUENCES, two_texts, TRANSLATED),
    "mixtral": mixture("MixtralForCausalLM", {"num_local_experts": 4}),
    "qwen2_moe": mixture(
        "Qwen2MoeForCausalLM",
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
         "shared_expert_intermediate_size": 16},
    ),
    "qwen3_moe": mixture(
        "Qwen3MoeForCausalLM", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 4}
    ),
    "olmoe": mixture("OlmoeForCausalLM", {"num_experts": 4, "num_experts_per_tok": 2}),
    "vit": vision("ViTForImageClassification", VISION, asks=HIDDEN),
    "deit": vision("DeiTForImageClassification", VISION),
    "beit": vision("BeitForImageClassification", {**VISION, "drop_path_rate": 0.0}),
    "dinov2": vision("Dinov2ForImageClassification", VISION, optimizer=SGD),
    "swin": vision(
        "SwinForImageClassification",
        {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4,
         "num_labels": 5, "drop_path_rate": 0.0},
    ),
    "convnext": vision(
        "ConvNextForImageClassification", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 5}
    ),
    "resnet": vision(
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic", "num_labels": 5},
        optimizer=SGD,
    ),
    "wav2vec2": Architecture("Wav2Vec2ForCTC", "Wav2Vec2Config", SPEECH, sound, ("", "padded")),
    "wav2vec2-classified": Architecture(
        "Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", {**SPEECH, "num_labels": 5}, classified_sound,
        ("", "padded"),
    ),
    "hubert": Architecture(
        "HubertForSequenceClassification", "HubertConfig", {**SPEECH, "num_labels": 5}, classified_sound,
        ("", "padded"), HIDDEN,
    ),
    "whisper": Architecture(
        "WhisperForConditionalGeneration", "WhisperConfig",
        {**SEQUENCES, "num_mel_bins": 8, "max_source_positions": 32, "max_target_positions": 32,
         "suppress_tokens": None, "begin_suppress_tokens": None},
        spectrum,
    ),
    "clip": Architecture(
        "CLIPModel", "CLIPConfig",
        {"text_config": SMALL, "vision_config": VISION, "projection_dim": 16},
        pairs, ("64 ones", "128 padded"), {"return_loss": True},
    ),
}  # fmt: skip


def cases(names: list[str]) -> Iterator[tuple[str, str]]:
    """Architecture and mask of every case, or of those named."""
    for name, architecture in ARCHITECTURES.items():
        if not names or name in names:
            for mask in architecture.masks:
                yield name, mask
