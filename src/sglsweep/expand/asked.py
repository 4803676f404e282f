"""What came of asking SGLang about cells, before anything is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglsweep.config.sweep import Sweep
    from sglsweep.flags import FlagTable
    from sglsweep.matrix import Cell


class State(StrEnum):
    """What came of asking SGLang about a cell."""

    RESOLVED = "resolved"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """One cell's answer.

    Attributes:
        effective: SGLang's field -> value; empty unless resolved.
        error: SGLang's own exception and message, or why nothing is known.
        verdict: of a refused cell, by the catalogue: bad-config or kernel-unsupported.
        cause: of a refused cell, by the catalogue. next_step: what helps, where that is known.
        lines: what it logs meanwhile, `LEVEL: text`.
        unknown: what the answer was guessed for: the host could not be asked.
    """

    state: State
    effective: Mapping[str, object] = field(default_factory=dict, repr=False)
    error: str = ""
    verdict: Verdict | None = None
    cause: str = ""
    next_step: str = ""
    lines: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """What an answer depends on beside the cell.

    Attributes:
        arch: `sm120` and the like; "" = no GPU, or not known.
        architectures: model -> the class that its config.json names.
        assumed: packages that are not installed where the question was asked.
        is_described: the GPU is one that the user described.
    """

    version: str = ""
    gpu: str = ""
    arch: str = ""
    architectures: Mapping[str, str] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    is_described: bool = False
    import_s: float = 0.0
    resolve_s: float = 0.0

    def after(self, earlier: BuildFacts | None) -> BuildFacts:
        """Return the same with the time and the models of an earlier question to the build."""
        if earlier is None:
            return self
        return replace(
            self,
            architectures={**earlier.architectures, **self.architectures},
            import_s=self.import_s + earlier.import_s,
            resolve_s=self.resolve_s + earlier.resolve_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A cell that SGLang would not start with, in its own words: an outcome in phase args."""

    cell: Cell
    because: str
    verdict: Verdict = Verdict.BAD_CONFIG
    cause: str = ""
    next_step: str = ""

    @classmethod
    def by(cls, cell: Cell, answer: Resolved) -> Refused:
        """Return what an answer that refuses comes to."""
        return cls(
            cell=cell,
            because=answer.error,
            verdict=answer.verdict or Verdict.BAD_CONFIG,
            cause=answer.cause,
            next_step=answer.next_step,
        )

    @property
    def told(self) -> str:
        """SGLang's words, and what the catalogue makes of them."""
        named = f" {self.cause}" if self.cause and ":" not in self.cause else ""
        return f"{self.because} [{self.verdict}{named}]"

    def to_json(self) -> dict[str, object]:
        """Return it as `--json` and run.json have it."""
        return {
            "cell": dict(self.cell.values),
            "because": self.because,
            "verdict": str(self.verdict),
            "phase": str(Phase.ARGS),
            "cause": self.cause or None,
            "next_step": self.next_step or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Everything the settling of a matrix depends on.

    Attributes:
        answers: key of a cell -> what its build made of it; a missing one is not known.
        builds: name of a build -> what it is.
        setting: what no argument of a cell shows: its build, environment and model.
        env: the environment of a cell.
    """

    sweep: Sweep
    tables: Mapping[str, FlagTable]
    answers: Mapping[str, Resolved]
    builds: Mapping[str, BuildFacts]
    setting: Callable[[Cell], str]
    env: Callable[[Cell], Mapping[str, str]]
