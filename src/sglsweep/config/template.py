"""A commented SWEEP.yaml, from nothing or from a launch that works today."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from sglsweep.config.document import looks_secret
from sglsweep.errors import ConfigError
from sglsweep.flags import FlagValue, ParsedCommand, canonical

_PLAIN = re.compile(r"[A-Za-z./][A-Za-z0-9._/+@-]*")
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

_HEAD = """\
# What to try, on which machine, until when. `sglsweep plan` shows what it comes to and launches
# nothing; `sglsweep sweep` does it.
name: {name}
model: {model}          # a Hugging Face id, or a folder on the host
host: local             # this machine, a name of hosts.yaml or of ~/.ssh/config
"""
_BUILDS = """
builds:                 # the Python that has SGLang; several may be compared on a `build` axis
  stock: {{python: {python}}}
"""
_LAUNCH = "\nlaunch:                 # passed by every attempt, unless an axis says otherwise\n"
_MATRIX = """
matrix:                 # axes: flags, env.NAME, build, model; null = not passed, true = bare flag
{axes}
# link: [[prefill-attention-backend, decode-attention-backend]]   # go together, by position
# exclude:
#   - {{when: {{attention-backend: triton, kv-cache-dtype: fp8_e4m3}}, because: known not to work}}
# include:              # tried first
#   - {{attention-backend: triton}}
goal: [first-serving]   # then: explain, fastest; or map = which values and combinations fail
budget: {{hours: 4, attempts: 40}}     # keep: 25% = what first-serving leaves to later goals
# prior: [../other/runs/k2]   # earlier runs, or exported findings: evidence, weighed by likeness
# remedies: true        # what the catalogue knows against a cause may be tried beside the matrix
# limits: {{ready: 40m}}  # defaults come from the catalogue, judged with life signs
# workload: {{input: 1024, output: 512, ladder: [1, 8, 32, 64], slo: {{ttft_p99: 5s}}}}  # how fast
# quality: {{needle: {{context: 8192}}, tools: true}}  # is it the same model: questions, a needle
# probe: {{requests: mine.jsonl}}  # your own requests as a step of the proof
# probe: {{soak: 10m, confirm-nan: true, expect: [{{prompt: What is 2 + 2, contains: "4"}}]}}
"""


def template(
    name: str, parsed: ParsedCommand | None = None, *, environ: Mapping[str, str] | None = None
) -> str:
    """Write a SWEEP.yaml: what works today first, then the axes that most often matter.

    A secret is never written: its place holds `${NAME}`.

    Raises:
        ConfigError: the command leaves open which model it serves.
    """
    known = os.environ if environ is None else environ
    launch = parsed or ParsedCommand(flags={"trust-remote-code": True})
    if "${" in (launch.model or ""):
        raise ConfigError(
            f"the launch serves {launch.model}, which is not set in it",
            next_step="Put the model's id or path in its place.",
        )
    model = launch.model or "Qwen/Qwen2.5-0.5B-Instruct"
    parts = [_HEAD.format(name=scalar(name), model=scalar(model))]
    if launch.python and launch.image is None:
        parts.append(_BUILDS.format(python=scalar(launch.python)))
    parts += [*_left_out(launch), _LAUNCH, *_flags(launch, known), *_env(launch, known)]
    parts.append(_MATRIX.format(axes="\n".join(_axes(launch.flags))))
    return "".join(parts)


def _axes(flags: Mapping[str, FlagValue]) -> Iterator[str]:
    """Suggest axes; the value that works today stands first on each."""
    own = {canonical(name): value for name, value in flags.items()}
    for name, alternatives in (
        ("attention-backend", ("flashinfer", "triton")),
        ("kv-cache-dtype", (None, "bf16")),
        ("disable-cuda-graph", (False, True)),
    ):
        first = own.get(name, alternatives[0])
        values: Sequence[FlagValue] = [first, *(v for v in alternatives if v != first)]
        yield f"  {name}: [{', '.join(scalar(value) for value in values)}]"


def _flags(launch: ParsedCommand, environ: Mapping[str, str]) -> Iterator[str]:
    lines = []
    for name, value in launch.flags.items():
        used = launch.unset.get(name, ())
        text = scalar(value)
        if isinstance(value, str) and looks_secret(name, value):
            used = (name.upper().replace("-", "_"),)
            text = json.dumps(f"${{{used[0]}}}")
        lines.append(_line(name, text, used, environ))
    yield from ["  flags:\n", *lines] if lines else ["  flags: {}\n"]


def _env(launch: ParsedCommand, environ: Mapping[str, str]) -> Iterator[str]:
    lines = []
    for name, value in launch.env.items():
        used = launch.unset.get(f"env.{name}", ())
        text = scalar(value)
        if looks_secret(name, value):
            used, text = (name,), json.dumps(f"${{{name}}}")
        lines.append(_line(name, text, used, environ))
    yield from ["  env:\n", *lines] if lines else []


def _line(name: str, text: str, used: Sequence[str], environ: Mapping[str, str]) -> str:
    """Write one setting; as a comment where it needs what the environment does not hold now."""
    missing = [variable for variable in used if not environ.get(variable)]
    if missing:
        return f"    # {name}: {text}   # {', '.join(missing)} is not set\n"
    return f"    {name}: {text}\n"


def _left_out(launch: ParsedCommand) -> Iterator[str]:
    """Say in comments what of the command is not in the file."""
    said = [note.what for note in launch.notes]
    if launch.host or launch.port:
        said.append("host and port are left out: the server listens on 127.0.0.1; see hosts.yaml")
    if launch.image:
        said.append(f"it runs in the image {launch.image}; name a Python with SGLang in `builds:`")
    said += [f"mount {mount} is left out" for mount in launch.mounts]
    if said:
        yield "\n"
    for line in said:
        yield "# " + re.sub(r"\s+", " ", line) + "\n"


def scalar(value: FlagValue) -> str:
    """Write a value so that YAML reads it back as it is."""
    if isinstance(value, tuple):
        return f"[{', '.join(scalar(item) for item in value)}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_PLAIN:
        return value
    return json.dumps(value, ensure_ascii=False)
