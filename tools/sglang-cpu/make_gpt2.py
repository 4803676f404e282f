"""Make tiny GPT-2 models, healthy and broken on purpose: make_gpt2.py OUT MODE [OUT MODE ...].

Runs with SGLang's own Python (needs torch, safetensors, tokenizers). GPT-2 because SGLang runs it
on any CPU: it has no rotary embedding, whose CPU path needs another package. The seed is fixed.

MODE: ok         random weights that answer with varied tokens
      nan        one weight is NaN: becomes ready, answers 200, says token 0 for ever
      mismatch   the attention projection has the wrong shape
      missing    one tensor is absent from the file
      truncated  the weight file is cut in half, as after a broken download
      noweights  no weight file
      badcfg     an architecture that nobody knows
      large      as ok, with 400 MB of weights (for memory limits)
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

MODES = ("ok", "nan", "mismatch", "missing", "truncated", "noweights", "badcfg", "large")
TEXT = "A server that answers is not yet a server that serves. Ask it something it never saw. "
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class Shape:
    """Sizes of one model, in elements."""

    vocabulary: int = 512
    hidden: int = 64
    heads: int = 4
    positions: int = 2048
    layers: int = 2


def write_tokenizer(folder: Path) -> None:
    """Train a byte-level BPE on one sentence; enough for a chat template and readable text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([TEXT * 20], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 2048,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))


def write_config(folder: Path, shape: Shape, architecture: str) -> None:
    """Write config.json and generation_config.json."""
    config = {
        "architectures": [architecture],
        "model_type": "gpt2",
        "n_embd": shape.hidden,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_positions": shape.positions,
        "n_ctx": shape.positions,
        "n_inner": None,
        "vocab_size": shape.vocabulary,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "scale_attn_weights": True,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "generation_config.json").write_text(
        json.dumps({"bos_token_id": 0, "eos_token_id": 2})
    )


def weights(shape: Shape) -> dict[str, torch.Tensor]:
    """Random weights; small embeddings, or the model repeats its last token and looks broken."""
    torch.manual_seed(0)
    h = shape.hidden
    tensors = {
        "wte.weight": torch.randn(shape.vocabulary, h) * 0.1,
        "wpe.weight": torch.randn(shape.positions, h) * 0.1,
        "ln_f.weight": torch.ones(h),
        "ln_f.bias": torch.zeros(h),
    }
    for layer in range(shape.layers):
        p = f"h.{layer}."
        for norm in ("ln_1", "ln_2"):
            tensors |= {f"{p}{norm}.weight": torch.ones(h), f"{p}{norm}.bias": torch.zeros(h)}
        for name, rows, columns, scale in (
            ("attn.c_attn", h, 3 * h, 0.1),
            ("attn.c_proj", h, h, 0.5),
            ("mlp.c_fc", h, 4 * h, 0.1),
            ("mlp.c_proj", 4 * h, h, 0.5),
        ):
            # The scales suit 64 hidden units; wider layers sum more terms.
            tensors[f"{p}{name}.weight"] = torch.randn(rows, columns) * scale * (64 / h) ** 0.5
            tensors[f"{p}{name}.bias"] = torch.zeros(columns)
    return tensors


def break_weights(tensors: dict[str, torch.Tensor], shape: Shape, mode: str) -> None:
    """Damage the weights in place as `mode` says."""
    if mode == "nan":
        tensors["h.1.mlp.c_proj.weight"][3, 5] = float("nan")
    if mode == "mismatch":
        tensors["h.0.attn.c_attn.weight"] = torch.randn(shape.hidden, 6 * shape.hidden)
    if mode == "missing":
        del tensors["h.1.mlp.c_proj.weight"]


def make(folder: Path, mode: str) -> None:
    """Write one model folder."""
    shape = Shape(hidden=1024, heads=16, layers=16) if mode == "large" else Shape()
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder)
    write_config(folder, shape, "NoSuchForCausalLM" if mode == "badcfg" else "GPT2LMHeadModel")
    if mode == "noweights":
        return
    tensors = weights(shape)
    break_weights(tensors, shape, mode)
    file = folder / "model.safetensors"
    half = {name: t.to(torch.bfloat16).contiguous() for name, t in tensors.items()}
    save_file(half, str(file), metadata={"format": "pt"})
    if mode == "truncated":
        os.truncate(file, file.stat().st_size // 2)


def main(arguments: list[str]) -> None:
    """Make each OUT MODE pair that is not there yet."""
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    unknown = [mode for _, mode in pairs if mode not in MODES]
    if unknown or not pairs:
        sys.exit(f"usage: make_gpt2.py OUT MODE [OUT MODE ...]; MODE is one of {', '.join(MODES)}")
    for out, mode in pairs:
        done = Path(out) / ".complete"
        if not done.exists():
            make(Path(out), mode)
            done.touch()


if __name__ == "__main__":
    main(sys.argv[1:])
