"""The loop with several attempts at once: one thread each, one that decides, starts and records.

What runs is taken and tells nothing: the next cell is chosen as if nobody knew its outcome. An
attempt whose answer neighbours could change waits until it has the host to itself, and is decided
on again then, by what the others came to. Once what is over reaches the goal nothing more is
started, and of what runs only those go on that are ready and being asked.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sglsweep import report
from sglsweep.attempt import numbered
from sglsweep.config.hosts import HIGHEST_PORT
from sglsweep.drive import finish_stopping, run_attempt, take_over
from sglsweep.errors import ConfigError, HostError
from sglsweep.events import Note
from sglsweep.launch import PortTaken
from sglsweep.plan.strategy import Finish
from sglsweep.slots import Place, Wanted, alone_because, slots_of
from sglsweep.sweep import (
    LOST_IN_A_ROW,
    command_for,
    is_lost,
    lost_too_often,
    new_attempt,
    next_step,
    port_of,
    probe_for,
    record_decision,
    run_sweep,
    site_for,
    traffic_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglsweep.attempt import Attempt, Outcome
    from sglsweep.clock import Clock
    from sglsweep.events import Event, Listener
    from sglsweep.matrix import Cell
    from sglsweep.plan.strategy import Launch
    from sglsweep.site import Site
    from sglsweep.slots import Slots
    from sglsweep.sweep import Sweeping

_SETTLED_S, _SETTLE_PATIENCE_S = 1.0, 30.0
_LOOK_EVERY_S = 0.5


def sweep_side_by_side(sweeping: Sweeping) -> str:
    """Sweep with as many attempts at once as there are slots; return why it ended."""
    ground = sweeping.ground
    slots = slots_of(ground.config, ground.facts, sweeping.settings.slots)
    _refuse_ports(port_of(ground), slots.count)
    journal = sweeping.journal
    left = len(journal.stopping_outcomes()) + len(journal.open_attempts())
    if slots.count == 1 and left < 2:  # noqa: PLR2004 - attempts side by side are at least two
        return run_sweep(sweeping)
    return _Crew(sweeping, slots).run()


def _refuse_ports(first: int, count: int) -> None:
    """Refuse slots whose ports do not exist: their servers would fail by that and by no flag."""
    if first + count - 1 > HIGHEST_PORT:
        raise ConfigError(
            f"{count} slots from port {first} on end above {HIGHEST_PORT}",
            next_step="Lower `port`, or `--slots`: each slot has the port after the one before.",
        )


@dataclass(frozen=True, slots=True)
class _Member:
    """An attempt that runs."""

    attempt: Attempt
    place: Place
    thread: threading.Thread


@dataclass(frozen=True, slots=True)
class _Done:
    """An attempt's thread is through; with its outcome, or with what stopped it."""

    number: int
    result: Outcome | BaseException


class _Crew:
    """The attempts that run; all but their threads is the deciding thread's alone."""

    def __init__(self, sweeping: Sweeping, slots: Slots) -> None:
        self._sweeping = sweeping
        self._slots = slots
        self._running: dict[int, _Member] = {}
        self._done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
        self._busy_ports: dict[int, PortTaken] = {}
        self._trouble: HostError | None = None
        self._losses = _Losses()
        self._stop = _Stop()
        self._enough = ""
        self._had_shared_memory = False
        self._told: set[str] = set()

    def run(self) -> str:
        """Fill the slots until there is nothing left to launch and nothing runs."""
        try:
            if self._slots.count > 1:
                self._tell(self._slots.told(port_of(self._sweeping.ground)))
            self._adopt()
            while True:
                why = self._fill()
                if not self._running:
                    break
                self._take(self._done.get())
        except BaseException as error:
            self._end_all("" if isinstance(error, KeyboardInterrupt) else f"the sweep: {error}")
            raise
        if self._trouble is not None:
            raise self._trouble
        return why

    # -- starting --------------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Go on with everything that an earlier call left, all at once."""
        journal = self._sweeping.journal
        for outcome in journal.stopping_outcomes():
            place = self._place_of(outcome.attempt)
            end = partial(finish_stopping, self._site(place), outcome)
            self._begin(outcome.attempt, place, end)
        for attempt in journal.open_attempts():
            place = self._place_of(attempt)
            facts = journal.opening_facts(attempt.number)
            self._begin(attempt, place, partial(take_over, self._site(place), attempt, facts))

    def _place_of(self, attempt: Attempt) -> Place:
        """Return where an attempt runs that an earlier call launched."""
        journal = self._sweeping.journal
        left = len(journal.open_attempts()) + len(journal.stopping_outcomes())
        place = self._place(attempt.slot, attempt.cell, attempt.relaunch_of)
        is_alone = place.is_alone and left == 1
        return replace(place, gpus=attempt.gpus, number=attempt.slot, is_alone=is_alone)

    def _fill(self) -> str:
        """Start what there is room for; with nothing left and nothing running, return why."""
        while self._trouble is None and (number := self._free_slot()) is not None:
            decision = next_step(self._sweeping, running=self._attempts())
            if isinstance(decision.step, Finish):
                if not self._running:
                    record_decision(self._sweeping, decision)
                return decision.step.why
            if not self._start(decision.step, number):
                break
            record_decision(self._sweeping, decision)
        return ""

    def _free_slot(self) -> int | None:
        if any(member.place.is_alone for member in self._running.values()):
            return None
        if len(self._running) >= self._slots.count:
            return None
        taken = {m.place.number for m in self._running.values()} | set(self._busy_ports)
        return next((n for n in range(self._slots.count) if n not in taken), None)

    def _start(self, step: Launch, number: int) -> bool:
        """Start an attempt; False where it has to wait for the host to itself."""
        place = self._place(number, step.cell, step.relaunch_of)
        if place.is_alone and self._running:
            return False
        if place.is_alone and self._had_shared_memory:
            self._let_memory_settle()
        attempt = new_attempt(
            self._sweeping, step.cell, why=step.why, relaunch_of=step.relaunch_of, place=place
        )
        site = replace(self._site(place), probe=probe_for(self._sweeping, step))
        facts = self._sweeping.ground.facts
        self._begin(attempt, place, partial(run_attempt, site, attempt, facts))
        return True

    def _place(self, number: int, cell: Cell, relaunch_of: int | None) -> Place:
        ground = self._sweeping.ground
        command = command_for(ground, cell)
        is_made_up = ground.sweep.build_of(cell).rehearsal is not None
        place = self._slots.place(number, command.env, is_made_up=is_made_up)
        wanted = Wanted(
            cell=cell,
            argv=command.argv,
            is_measured=traffic_of(ground.sweep) is not None,
            is_repeat=relaunch_of is not None,
        )
        because = alone_because(wanted, place, self._slots)
        if not because:
            return place
        self._tell_once(f"alone on the host: {because}")
        return self._slots.alone(command.env, number=number)

    def _site(self, place: Place) -> Site:
        site = site_for(self._sweeping)
        return replace(
            site,
            clock=_StoppableClock(site.clock, self._stop),
            listener=_Listener(site.listener, self._stop),
            place=place,
            enough=lambda: self._enough,
        )

    def _begin(self, attempt: Attempt, place: Place, do: Callable[[], Outcome]) -> None:
        self._had_shared_memory = self._had_shared_memory or place.shares_memory

        def work() -> None:
            result: Outcome | BaseException
            try:
                result = do()
            except BaseException as error:  # noqa: BLE001 - it is the deciding thread's to judge
                result = error
            self._done.put(_Done(attempt.number, result))

        # No reason to stay: whoever leaves at once (a second Ctrl-C) leaves them to their keepers.
        thread = threading.Thread(target=work, name=f"attempt-{attempt.number}", daemon=True)
        self._running[attempt.number] = _Member(attempt, place, thread)
        thread.start()

    def _let_memory_settle(self) -> None:
        """Wait until the cards' memory in use no longer falls: no keeper waits for shared ones."""
        self._had_shared_memory = False
        clock, host = self._sweeping.clock, self._sweeping.ground.host
        words = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        before: list[int] | None = None
        until = time.monotonic() + _SETTLE_PATIENCE_S
        while time.monotonic() < until:
            try:
                used = [int(w) for w in host.run(words).text.split() if w.isdigit()]
            except HostError:
                return
            if before is not None and all(b <= u for u, b in zip(used, before, strict=False)):
                return
            before = used
            clock.sleep(_SETTLED_S)

    # -- ending ----------------------------------------------------------------------------------

    def _attempts(self) -> list[Attempt]:
        return [member.attempt for member in self._running.values()]

    def _take(self, done: _Done) -> None:
        """Take what an attempt came to, and see whether the others are needed still."""
        member = self._running.pop(done.number)
        report.write(self._sweeping.journal)
        match done.result:
            case PortTaken() as taken:
                self._lose_slot(member.place.number, taken)
            case HostError() as error:
                self._stop_starting(member.attempt, error)
            case BaseException() as error:
                raise error
            case outcome:
                self._count_losses(outcome)
        self._enough = self._why_enough()

    def _lose_slot(self, number: int, taken: PortTaken) -> None:
        self._busy_ports[number] = taken
        left = self._slots.count - len(self._busy_ports)
        if not left:
            self._trouble = self._trouble or taken
            return
        self._tell(f"{taken.message}; slot {number} stays empty, {left} left. {taken.next_step}")

    def _stop_starting(self, attempt: Attempt, error: HostError) -> None:
        self._trouble = self._trouble or error
        left = f", only {numbered(self._running)} seen through" if self._running else ""
        self._tell(f"attempt {attempt.number}: {error.message}; nothing more is started{left}")

    def _count_losses(self, outcome: Outcome) -> None:
        newest = max([outcome.attempt.number, *self._running])
        lost = self._losses.after(outcome, newest)
        if lost >= LOST_IN_A_ROW and self._trouble is None:
            self._trouble = lost_too_often(self._sweeping, lost, outcome)

    def _why_enough(self) -> str:
        """Return why what runs is needed no more; "" while it is.

        It is not where the outcomes so far leave nothing to launch, not even what runs.
        """
        if not self._running:
            return ""
        step = next_step(self._sweeping, is_budgeted=False).step
        if not isinstance(step, Finish):
            return ""
        self._tell_once(f"{step.why}: attempts that are not ready yet are stopped")
        return f"not needed any more: {step.why}"

    def _end_all(self, why: str) -> None:
        """End and record everything that runs; a second Ctrl-C leaves it to the keepers."""
        self._stop.set(why)
        self._forget_the_dead()
        if self._running:
            self._tell(
                f"ending {numbered(self._running)}; Ctrl-C again leaves that to the next call"
            )
        try:
            while self._running:
                with suppress(queue.Empty):
                    self._running.pop(self._done.get(timeout=_LOOK_EVERY_S).number, None)
                self._forget_the_dead()
        except KeyboardInterrupt:
            # Threads that are left write no more: Python may be at its end already.
            self._stop.is_left = True
            raise
        with suppress(Exception):
            report.write(self._sweeping.journal)

    def _forget_the_dead(self) -> None:
        """Wait for no thread that is gone: a Ctrl-C may come before its start or at its end."""
        self._running = {n: m for n, m in self._running.items() if m.thread.is_alive()}

    def _tell(self, text: str) -> None:
        self._sweeping.listener.tell(Note(text=text))

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._tell(text)


class _Losses:
    """Attempts that the host lost, one after another; what it lost at once counts once."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._newest = 0

    def after(self, outcome: Outcome, newest: int) -> int:
        """Return how many in a row, `newest` being the number begun last."""
        if not is_lost(outcome):
            self._in_a_row = 0
        elif outcome.attempt.number > self._newest:
            self._in_a_row += 1
            self._newest = newest
        return self._in_a_row


class _Stop:
    """Tells threads to end what they follow: signals reach the deciding thread alone."""

    def __init__(self) -> None:
        self.is_set = False
        self.is_left = False
        self.why = ""

    def set(self, why: str) -> None:
        """Tell them; `why` stands in their records, "" for the user's own wish."""
        self.why = why
        self.is_set = True


class _Listener:
    """Hands on what a thread tells, until nobody waits for it any more."""

    def __init__(self, listener: Listener, stop: _Stop) -> None:
        self._listener = listener
        self._stop = stop

    def tell(self, event: Event) -> None:
        """Take one event."""
        if not self._stop.is_left:
            self._listener.tell(event)


class _StoppableClock:
    """One thread's clock: a Ctrl-C comes up where it waits, once, as in a loop without threads."""

    def __init__(self, clock: Clock, stop: _Stop) -> None:
        self._clock = clock
        self._stop = stop
        self._is_told = False

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._clock.now()

    def sleep(self, seconds: float) -> None:
        """Wait.

        Raises:
            KeyboardInterrupt: the attempt is to be ended.
        """
        self._clock.sleep(seconds)
        if self._stop.is_set and not self._is_told:
            self._is_told = True
            raise KeyboardInterrupt(self._stop.why)
