"""Exchanges with a server as case files: what each step was answered, trimmed.

To record one from a running server:
`PYTHONPATH=tests python tests/probe/recording.py PORT MODEL_DIR OUT.json [real|dummy]`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probe.asker import Asker
from sglsweep.keeper_files import HttpResponse, Listener
from sglsweep.probe import target as targets
from sglsweep.probe.proof import Asked, prove
from sglsweep.probe.target import KnownAnswer, Need, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglsweep.probe.steps import ProofStepPlan

CASES = Path(__file__).parent / "cases"
_KEPT = {
    "version",
    "max_total_num_tokens",
    "chunked_prefill_size",
    "page_size",
    "dp_size",
    "max_running_requests",
    "internal_states",
    "effective_max_running_requests_per_dp",
    "memory_usage",
    "load_format",
    "disable_radix_cache",
    "watchdog_timeout",
    "attention_backend",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A server as it answered once, and what the proof must make of it."""

    name: str
    target: Target
    answers: dict[str, Asked]
    expected: dict[str, Any]

    def __str__(self) -> str:
        return self.name

    def ask(self, step: ProofStepPlan) -> Asked:
        """Answer as the server did; a step it was never asked is an error in the case."""
        return self.answers[step.name]


def load(path: Path) -> Case:
    raw = json.loads(path.read_text())
    base = load(CASES / f"{raw['like']}.json") if "like" in raw else None
    answers = dict(base.answers) if base else {}
    answers |= {name: _asked(said) for name, said in raw.get("answers", {}).items()}
    settings = _target(raw.get("target", {}), base.target if base else Target())
    return Case(path.stem, settings, answers, raw["expected"])


def _target(raw: dict[str, Any], base: Target) -> Target:
    known = {f.name for f in fields(Target)}
    assert set(raw) <= known, f"not a field of Target: {set(raw) - known}"
    raw = dict(raw)
    if "need" in raw:
        raw["need"] = Need(**raw["need"])
    if "known_answers" in raw:
        raw["known_answers"] = tuple(KnownAnswer(**k) for k in raw["known_answers"])
    if "load" in raw:
        raw["load"] = tuple(raw["load"])
    if "special_ids" in raw:
        raw["special_ids"] = frozenset(raw["special_ids"])
    return Target(**{f: getattr(base, f) for f in known} | raw)


def _asked(raw: dict[str, Any]) -> Asked:
    raw = dict(raw)
    responses = [
        HttpResponse(
            **{**r, "body": _body(r.get("body", "")), "chunks": tuple(r.get("chunks", ()))}
        )
        for r in raw.pop("responses", ())
    ]
    holder = raw.pop("listener", None)
    return Asked(responses=responses, listener=Listener(**holder) if holder else None, **raw)


def _body(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body)


def save(path: Path, target: Target, had: Sequence[tuple[ProofStepPlan, Asked]]) -> None:
    """Write what was asked and answered; `expected` is for a person to fill in."""
    raw = {
        "source": "recorded from real SGLang on CPU by tests/probe/recording.py",
        "target": {"vocab": target.vocab, "special_ids": sorted(target.special_ids)},
        "expected": {},
        "answers": {step.name: _plain(asked) for step, asked in had},
    }
    path.write_text(json.dumps(raw, indent=1) + "\n")


def _plain(asked: Asked) -> dict[str, Any]:
    responses = []
    for response in asked.responses:
        kept = {k: v for k, v in asdict(response).items() if v not in (None, "", (), False, 0.0)}
        kept["body"] = _trimmed(response.body)
        times = [round(t, 4) for t in response.chunks]
        if times:
            kept["chunks"] = [times[0], times[-1]] if len(times) > 1 else times
        for name in ("elapsed_s", "first_byte_s", "started_s"):
            if name in kept:
                kept[name] = round(kept[name], 4)
        responses.append(kept)
    return {"elapsed_s": round(asked.elapsed_s, 4), "responses": responses}


def _trimmed(body: str) -> object:
    if body.startswith("data:"):
        events = [e.strip() for e in body.split("data:") if e.strip().startswith("{")]
        return f"data: {json.dumps(_small(json.loads(events[-1])))}\n\ndata: [DONE]\n\n"
    return _small(json.loads(body))


def _small(said: Any) -> Any:  # noqa: ANN401 - whatever JSON a server sends
    if isinstance(said, dict) and "internal_states" in said:
        kept = {k: v for k, v in said.items() if k in _KEPT}
        kept["internal_states"] = [
            {k: v for k, v in state.items() if k in _KEPT} for state in said["internal_states"]
        ]
        return kept
    if isinstance(said, dict) and "meta_info" in said:
        drop = (
            "weight_versions",
            "weight_version",
            "id",
            "response_sent_to_client_ts",
            "e2e_latency",
        )
        said["meta_info"] = {k: v for k, v in said["meta_info"].items() if k not in drop}
    if isinstance(said, dict) and "is_generation" in said:
        return {k: said[k] for k in ("model_path", "is_generation", "model_type", "architectures")}
    return said


def main(port: str, model: str, out: str, weights: str = "real") -> None:
    config = json.loads((Path(model) / "config.json").read_text())
    settings = targets.ProbeSettings(has_random_weights=weights == "dummy")
    target = targets.from_launch({}, config, settings=settings)
    asker = Asker(int(port))
    session = prove(target, asker)
    for step in session.proof.steps:
        sys.stderr.write(f"{step.elapsed_s:6.2f} {step.name:16} {step.state:15} {step.detail}\n")
    save(Path(out), session.target, asker.had)


if __name__ == "__main__":
    main(*sys.argv[1:])
