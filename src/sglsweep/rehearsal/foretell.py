"""What a stand-in makes of command lines, without a launch: as SGLang itself can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.rehearsal.arguments import UsageError, parse, requested_cell
from sglsweep.rehearsal.effective import ServerArgs, resolve
from sglsweep.rehearsal.failures import failure_for
from sglsweep.rehearsal.settings import read_settings
from sglsweep.rehearsal.world import Truth, deciding_rule
from sglsweep.verdict import Phase, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sglsweep.matrix import Cell

_REFUSALS = {Verdict.BAD_CONFIG, Verdict.KERNEL_UNSUPPORTED}

GPU = "eight made-up RTX PRO 6000"
ARCH = "sm120"
"""What `rehearsal.effective` resolves for."""


class RefusedError(Exception):
    """What the stand-in says in place of starting."""


class Foreteller:
    """A world that can be asked.

    Attributes:
        answers: True where the world rewrites cells: only then is there anything to ask for.
        version: the SGLang whose part it plays. architecture: the class of its model.
    """

    def __init__(self, world: Path) -> None:
        self._settings = read_settings(["--world", str(world)])
        self.answers = bool(self._settings.world.resolve)
        self.version = self._settings.stage.sglang_version
        self.architecture = self._settings.stage.architecture

    def server_args(self, words: Sequence[str], environment: Mapping[str, str]) -> ServerArgs:
        """Return what a launch with these words of SGLang's would print.

        Raises:
            RefusedError: it would end before that.
        """
        world, stage = self._settings.world, self._settings.stage
        try:
            arguments = parse(words, stage.sglang_version, world.axes)
        except UsageError as error:
            raise RefusedError(str(error)) from error
        effective = world.effective(requested_cell(arguments, world.axes, environment))
        self._check(effective)
        return resolve(arguments, effective, stage)

    def _check(self, effective: Cell) -> None:
        rule = deciding_rule(self._settings.world, effective)
        if rule is None or rule.verdict not in _REFUSALS or rule.phase.order > Phase.ARGS.order:
            return
        extra = self._settings.extras[self._settings.world.rules.index(rule)]
        failure = failure_for(Truth(rule.verdict, rule.phase, rule.cause), extra.shows)
        raise RefusedError(failure.headline if failure else rule.cause)
