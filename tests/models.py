"""Tiny models made on the spot, so that real SGLang can be run without downloading anything."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# GPT-2 has no rotary embedding, so that SGLang on CPU runs it without vLLM's kernels. Small
# weights: with unit-variance tied embeddings a random model repeats its last token for ever,
# which is what a broken one does.
_SCRIPT = """
import json, pathlib, sys
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

out, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
vocab, hidden, context, layers = 512, 64, 2048, 2
out.mkdir(parents=True, exist_ok=True)

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
trainer = trainers.BpeTrainer(vocab_size=500, show_progress=False, special_tokens=special,
                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
words = ["A server that is asked answers, or it does not serve. " * 20]
tokenizer.train_from_iterator(words, trainer)
tokenizer.save(str(out / "tokenizer.json"))
template = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\\n{{ m['content'] }}<|im_end|>\\n"
            "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}")
tokenizer_config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>",
                    "pad_token": "<|endoftext|>", "model_max_length": context}
if mode != "no-template":
    tokenizer_config["chat_template"] = template
(out / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": hidden,
          "n_layer": layers, "n_head": 4, "n_positions": context, "n_ctx": context,
          "vocab_size": vocab, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
          "n_inner": None, "scale_attn_weights": True, "tie_word_embeddings": True,
          "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 2}
(out / "config.json").write_text(json.dumps(config))
(out / "generation_config.json").write_text('{"eos_token_id": 2, "bos_token_id": 0}')

torch.manual_seed(0)
weights = {"wte.weight": torch.randn(vocab, hidden) * 0.1,
           "wpe.weight": torch.randn(context, hidden) * 0.1,
           "ln_f.weight": torch.ones(hidden), "ln_f.bias": torch.zeros(hidden)}
for layer in range(layers):
    p = f"h.{layer}."
    for norm in ("ln_1", "ln_2"):
        weights[p + norm + ".weight"] = torch.ones(hidden)
        weights[p + norm + ".bias"] = torch.zeros(hidden)
    for name, rows, columns, scale in (("attn.c_attn", hidden, 3 * hidden, 0.1),
                                       ("attn.c_proj", hidden, hidden, 0.5),
                                       ("mlp.c_fc", hidden, 4 * hidden, 0.1),
                                       ("mlp.c_proj", 4 * hidden, hidden, 0.5)):
        weights[p + name + ".weight"] = torch.randn(rows, columns) * scale
        weights[p + name + ".bias"] = torch.zeros(columns)
if mode == "nan":
    weights["h.1.mlp.c_proj.weight"][3, 5] = float("nan")
save_file({name: tensor.to(torch.bfloat16).contiguous() for name, tensor in weights.items()},
          str(out / "model.safetensors"), metadata={"format": "pt"})
"""


def make_gpt2(python: Path, out: Path, mode: str = "ok") -> Path:
    """Write a random GPT-2 (2 layers, 512 ids, 2,048 tokens of context) and return its folder.

    Args:
        python: an interpreter that has torch, safetensors and tokenizers (SGLang's own).
        out: the folder to write.
        mode: "ok", "nan" (one weight is NaN, so every answer is token 0), "no-template".
    """
    subprocess.run([str(python), "-c", _SCRIPT, str(out), mode], check=True, timeout=120)
    return out
