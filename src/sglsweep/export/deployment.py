"""What every form of a deployment is made from: the launch, its size, and what is known of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglsweep import __version__
from sglsweep.attempt import StepState
from sglsweep.flags import canonical, render_command
from sglsweep.report.document import one_line, plain
from sglsweep.report.launches import flags_of
from sglsweep.report.machine import gpu_words, is_without_gpu, version_words
from sglsweep.report.numbers import CONTEXT, KV_TOKENS, count, metric, rate
from sglsweep.report.rehearsal import is_rehearsal, sglang_words
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sglsweep.attempt import Outcome

SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
VISIBLE = "CUDA_VISIBLE_DEVICES"
_PLACE = frozenset({"host", "port"})
_NODES = frozenset({"nnodes", "node-rank", "dist-init-addr"})
_PATHS = ("model-path", "tokenizer-path", "speculative-draft-model-path", "chat-template")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A launch to be repeated elsewhere.

    Attributes:
        words: what follows the interpreter; where to listen and which node it is are left out.
        env: a secret stands as `${NAME}`.
        version: SGLang's; "" where it is not known.
        gpus: on each node; 0 for a launch on the CPU.
        notes: lines that every form carries as comments.
        ready_s: seconds until it was ready.
    """

    name: str
    python: str
    words: tuple[str, ...]
    env: Mapping[str, str]
    bind: str
    port: int
    version: str
    nodes: int
    gpus: int
    notes: tuple[str, ...]
    is_serving: bool
    ready_s: float | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the variables that must be set where this is started."""
        texts = [*self.words, *self.env.values()]
        return tuple(dict.fromkeys(name for text in texts for name in SECRET.findall(text)))

    @property
    def paths(self) -> tuple[str, ...]:
        """Files and folders of the host that the launch names."""
        flags = {canonical(name): value for name, value in flags_of(self.words).items()}
        named = (flags.get(canonical(name), "") for name in _PATHS)
        return tuple(dict.fromkeys(path for path in named if path.startswith(("/", "~", "."))))

    @property
    def is_from_hub(self) -> bool:
        """True for a model that is named by its Hugging Face id."""
        flags = {canonical(name): value for name, value in flags_of(self.words).items()}
        return not flags.get(canonical("model-path"), "").startswith(("/", "~", "."))


def deployment_of(outcome: Outcome, run: str) -> Deployment:
    """Return what a finished attempt launched, made fit for another place.

    Args:
        outcome: the attempt.
        run: the name of its run, for the comment.
    """
    attempt = outcome.attempt
    words = tuple(_at_home(word, outcome) for word in sglang_words(attempt))
    flags = {canonical(name): value for name, value in flags_of(words).items()}
    nodes = max(1, _size(outcome, flags, "nnodes"))
    is_cpu = outcome.diagnosis.effective.get("device") == "cpu" or flags.get("device") == "cpu"
    is_cpu = is_cpu or (is_without_gpu(outcome.facts) and not is_rehearsal(attempt))
    return Deployment(
        name=re.sub(r"[^a-z0-9]+", "-", attempt.model.rsplit("/", 1)[-1].lower()).strip("-")
        or "model",
        python="python3" if is_rehearsal(attempt) else _at_home(attempt.python, outcome),
        words=without(words, _PLACE | _NODES),
        env=attempt.own_env,
        bind=flags.get("host") or "127.0.0.1",
        port=attempt.port,
        version=_version(outcome),
        nodes=nodes,
        gpus=0 if is_cpu else -(-_all_gpus(outcome, flags) // nodes),
        notes=tuple(one_line(note, limit=400) for note in _notes(outcome, run) if note),
        is_serving=outcome.verdict is Verdict.SERVING,
        ready_s=outcome.timings.ready_s,
    )


def without(words: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return a launch without some flags and their values."""
    left_out = {canonical(name) for name in names}
    kept: list[str] = []
    is_kept = True
    for word in words:
        if word.startswith("--"):
            is_kept = canonical(word.removeprefix("--").partition("=")[0]) not in left_out
        if is_kept:
            kept.append(word)
    return tuple(kept)


def quoted(word: str) -> str:
    """Quote one word for a shell; `${NAME}` stays for the shell to fill in."""
    return render_command(word, (), {})


def _at_home(word: str, outcome: Outcome) -> str:
    """Write a path below `~` as it is on the host: between quotes no shell expands it."""
    user = outcome.facts.get("user")
    home = user.get("home") if isinstance(user, dict) else None
    return f"{home}{word[1:]}" if home and word.startswith("~/") else word


def _size(outcome: Outcome, flags: Mapping[str, str], name: str) -> int:
    """Return a size by what SGLang made of it, else by what was asked for; 1 if neither."""
    found = outcome.diagnosis.effective.get(name.replace("-", "_"))
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    text = flags.get(canonical(name), "")
    return int(text) if text.isdigit() else 1


def _all_gpus(outcome: Outcome, flags: Mapping[str, str]) -> int:
    """Return the GPUs of all nodes: data parallelism has its own unless it is of attention."""
    sizes = {name: max(1, _size(outcome, flags, f"{name}-size")) for name in ("tp", "pp", "dp")}
    effective = outcome.diagnosis.effective.get("enable_dp_attention")
    is_shared = effective is True or canonical("enable-dp-attention") in flags
    return sizes["tp"] * sizes["pp"] * (1 if is_shared else sizes["dp"])


def _version(outcome: Outcome) -> str:
    if outcome.diagnosis.sglang_version:
        return outcome.diagnosis.sglang_version
    builds = outcome.facts.get("builds")
    build = builds.get(outcome.attempt.build) if isinstance(builds, dict) else None
    found = build.get("sglang") if isinstance(build, dict) else None
    return str(found) if found else ""


def _notes(outcome: Outcome, run: str) -> Iterator[str]:
    attempt, facts = outcome.attempt, outcome.facts
    version = _version(outcome)
    with_version = f" with SGLang {version}" if version else ""
    yield f"{attempt.model}{with_version}: attempt {attempt.number} of the run {run}"
    if is_rehearsal(attempt):
        yield "A REHEARSAL: a stand-in server answered; nothing is proven about real SGLang."
    yield from _standing(outcome)
    yield plain(gpu_words(facts))
    yield from version_words(facts, attempt.build)
    yield f"Written by sglsweep {__version__}."


def _standing(outcome: Outcome) -> Iterator[str]:
    """Say what was proven and when, or that it does not serve and why."""
    diagnosis, proof = outcome.diagnosis, outcome.proof
    if outcome.verdict is not Verdict.SERVING:
        cause = f" ({diagnosis.cause})" if diagnosis.cause else ""
        yield f"DOES NOT SERVE: {diagnosis.verdict.value} in {diagnosis.phase.value}{cause}"
        yield f"Evidence: {diagnosis.evidence}" if diagnosis.evidence else ""
        yield f"Next: {diagnosis.next_step}" if diagnosis.next_step else ""
        return
    when = f" on {outcome.ended_at[:10]}" if outcome.ended_at else ""
    steps = proof.steps if proof else ()
    passed = [step.name for step in steps if step.state is StepState.OK]
    yield f"Serving, proven{when} by: {', '.join(passed)}" if passed else f"Serving{when}"
    others = [f"{s.name} ({s.state.value})" for s in steps if s.state is not StepState.OK]
    yield f"Not proven: {', '.join(others)}" if others else ""
    if proof and proof.tokens_per_s is not None:
        at = f" with {proof.concurrency} requests at once" if proof.concurrency else ""
        yield f"Output: {rate(proof.tokens_per_s)}{at}"
    tokens, context = metric(outcome, KV_TOKENS), metric(outcome, CONTEXT)
    if tokens is not None:
        yield f"Room: {count(tokens)} KV tokens" + (
            f", context {count(context)}" if context else ""
        )
