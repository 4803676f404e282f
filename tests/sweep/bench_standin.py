"""Stands where `sglang.bench_serving` stands: options of 0.5.9, real requests, its result file.

Copied into a package `sglang` by the tests. BENCH_DOES makes it fail as real ones do.
"""

import argparse
import importlib
import json
import os
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DOES = os.environ.get("BENCH_DOES", "")
if DOES == "lacks-a-package":
    importlib.import_module("datasets_that_nobody_has")

parser = argparse.ArgumentParser()
for name in (
    "--backend",
    "--base-url",
    "--dataset-name",
    "--model",
    "--tokenizer",
    "--output-file",
):
    parser.add_argument(name)
for name in ("--random-input-len", "--random-output-len", "--num-prompts", "--max-concurrency",
             "--seed", "--warmup-requests"):  # fmt: skip
    parser.add_argument(name, type=int)
parser.add_argument("--random-range-ratio", type=float)
parser.add_argument("--output-details", action="store_true")
args = parser.parse_args()
assert args.dataset_name == "random-ids"

if DOES == "never-ends":
    sys.stderr.write("never ends\n")
    time.sleep(600)


def ask(number: int) -> tuple[float, float, int, str, str]:
    """Ask once; returns first token, whole time, tokens, error, text."""
    began = time.monotonic()
    body = {"input_ids": [200 + number] * args.random_input_len,
            "sampling_params": {"max_new_tokens": args.random_output_len}}  # fmt: skip
    headers = {"Content-Type": "application/json"}
    if os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = "Bearer " + os.environ["OPENAI_API_KEY"]
    request = urllib.request.Request(  # noqa: S310 - the URL is the test's own
        args.base_url + "/generate", json.dumps(body).encode(), headers
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            said = json.load(answer)
    except OSError as error:
        return 0.0, 0.0, 0, str(error), ""
    took = time.monotonic() - began
    return took / 2, took, said["meta_info"]["completion_tokens"], "", said["text"]


sys.stderr.write(f"Starting {args}\n")
started = time.monotonic()
with ThreadPoolExecutor(args.max_concurrency) as pool:
    done = list(pool.map(ask, range(args.num_prompts)))
served = [one for one in done if not one[3]]
if not served:
    sys.exit("all requests failed")
with Path(args.output_file).open("a") as file:
    said = {
        "duration": time.monotonic() - started,
        "completed": len(served),
        "total_output_tokens": sum(one[2] for one in served),
        "server_info": {"api_key": os.environ.get("OPENAI_API_KEY")},
        "ttfts": [one[0] for one in done],
        "itls": [[one[1] - one[0]] for one in done],
        "output_lens": [one[2] for one in done],
        "errors": [one[3] for one in done],
        "generated_texts": [one[4] for one in done],
    }
    file.write(json.dumps(said) + "\n")
