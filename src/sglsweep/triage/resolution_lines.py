# ruff: noqa: E501 - a regular expression a line
"""Lines in which SGLang says what it made of a flag, by the versions that print them."""

from __future__ import annotations

import re

LINES: tuple[tuple[re.Pattern[str], tuple[tuple[str, str | None], ...]], ...] = tuple(
    (re.compile(pattern), names)
    for pattern, names in (
        (
            r"Attention backend not (?:explicitly )?(?:specified|set)\. Use (?P<attention_backend>\w+) backend by default",
            (("attention-backend", None),),
        ),
        (
            r"(?:Use|Using) (?P<attention_backend>\w+) as (?:default )?attention backend",
            (("attention-backend", None),),
        ),
        (
            r"(?:Use|Set) (?P<attention_backend>dsa|nsa) attention backend for DeepSeek",
            (("attention-backend", None),),
        ),
        (
            r"MLA optimization is turned on\. Use (?P<attention_backend>\w+) backend",
            (("attention-backend", None),),
        ),
        (
            r"Setting attention backend to (?P<attention_backend>\w+)\.",
            (("attention-backend", None),),
        ),
        (
            r"Set NSA backends for .*?: prefill=(?P<nsa_prefill_backend>\w+), decode=(?P<nsa_decode_backend>\w+)",
            (("nsa-prefill-backend", None), ("nsa-decode-backend", None)),
        ),
        (
            r"(?:Set DSA backends for .*?|using DSA backends) ?:? ?prefill=(?P<dsa_prefill_backend>\w+), decode=(?P<dsa_decode_backend>\w+)",
            (("dsa-prefill-backend", None), ("dsa-decode-backend", None)),
        ),
        (
            r"Setting NSA backend to (?P<nsa_prefill_backend>(?P<nsa_decode_backend>flashmla_kv))",
            (("nsa-prefill-backend", None), ("nsa-decode-backend", None)),
        ),
        (r"Setting KV cache dtype to (?P<kv_cache_dtype>\w+)", (("kv-cache-dtype", None),)),
        (
            r"Using KV cache dtype: torch\.(?P<kv_cache_dtype>\w+)",
            (("kv-cache-dtype", None),),
        ),
        (r"Setting page size to (?P<page_size>\d+)", (("page-size", None),)),
        (
            r"(?:change|changing) page_size (?:from \S+ )?to (?P<page_size>\d+)",
            (("page-size", None),),
        ),
        (
            r"chunked prefill size is adjusted to (?P<chunked_prefill_size>\d+)",
            (("chunked-prefill-size", None),),
        ),
        (
            r"Use (?P<moe_runner_backend>\w+) as (?:MoE|moe) runner backend",
            (("moe-runner-backend", None),),
        ),
        (
            r"mxfp8 quantization forces --moe-runner-backend=(?P<moe_runner_backend>\w+)",
            (("moe-runner-backend", None),),
        ),
        (
            r"--disable-shared-experts-fusion is automatically set|Shared experts fusion optimization is disabled",
            (("disable-shared-experts-fusion", "true"),),
        ),
        (
            r"Use (?P<fp4_gemm_backend>\w+) as FP4 GEMM runner backend",
            (("fp4-gemm-backend", None),),
        ),
        (r"Use (?P<fp8_gemm_backend>\w+) as FP8 GEMM backend", (("fp8-gemm-backend", None),)),
        (
            r"expert parallel size is adjusted (?:to be the same as|from \d+ to) the tensor parallel size ?\[(?P<ep_size>\d+)\]",
            (("ep-size", None),),
        ),
        (r"[Cc]uda graph is disabled because", (("disable-cuda-graph", "true"),)),
        (
            r"Max running requests is reset to (?P<max_running_requests>\d+)",
            (("max-running-requests", None),),
        ),
        (
            r"Custom ?[Aa]ll ?[Rr]educe(?:V2)? is disabled (?:because|due to)",
            (("disable-custom-all-reduce", "true"),),
        ),
        (
            r"default to (?P<quantization>\w+) for DeepSeek on sm100",
            (("quantization", None),),
        ),
        (
            r"Pipeline parallelism is incompatible with overlap schedule",
            (("disable-overlap-schedule", "true"),),
        ),
    )
)  # fmt: skip

LINE_MARKS = (
    "Attention backend not", "attention backend", "MLA optimization is turned on", "Setting attention backend",
    "NSA backend", "DSA backends", "KV cache dtype", "Setting page size", "page_size",
    "chunked prefill size is adjusted", "runner backend", "--moe-runner-backend=", "shared-experts-fusion is auto",
    "Shared experts fusion optimization", "GEMM backend on", "expert parallel size is adjusted",
    "uda graph is disabled because", "Max running requests is reset", "is disabled because", "is disabled due to",
    "Quantization not specified", "incompatible with overlap schedule",
)  # fmt: skip
