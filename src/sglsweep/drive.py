"""One attempt from launch to conclusion: launch, follow, prove, stop, diagnose."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from sglsweep import launch
from sglsweep.attempt import End, EndKind, Outcome
from sglsweep.beside import own_signs, with_neighbours
from sglsweep.clock import stamp
from sglsweep.conclude import conclude, ending_of, with_server_words
from sglsweep.equal import equal_outcome
from sglsweep.errors import HostError, HostUnreachable
from sglsweep.events import Ended, Note, Progress, Started, Stopping, Withdrawn
from sglsweep.keeper_files import GpuBefore
from sglsweep.prove import prove
from sglsweep.ranks import RankWatch
from sglsweep.slots import used_before
from sglsweep.stopwatch import Stopwatch
from sglsweep.triage.ending import Ending
from sglsweep.triage.follow import Follower
from sglsweep.watch import Continue, ReadyForProof, Watcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.attempt import Attempt, Diagnosis, Proof
    from sglsweep.catalogue.limits import Limits
    from sglsweep.keeper_files import KeeperState, Life, Listener, StopReport
    from sglsweep.probe.target import ProbeSettings
    from sglsweep.prove import Proved
    from sglsweep.site import Site
    from sglsweep.watch import Decision

_LOOK_EVERY_S = 0.2
_CHUNK = 1 << 20
# Without any other word an attempt ends on the host after this long, whoever else is gone.
_DEADLINE_S, _PROOF_S, _LADDER_S = 4 * 3600.0, 3600.0, 3600.0
_QUALITY_S, _OWN_REQUEST_S = 3600.0, 30.0


def run_attempt(site: Site, attempt: Attempt, facts: Mapping[str, object]) -> Outcome:
    """Launch `attempt`, see it through, close its record.

    Raises:
        PortTaken: nothing was started and the record was withdrawn.
        HostUnreachable: the link is gone for longer than its patience; the attempt goes on
            without us and its record stays open, to be taken over by the next call.
        KeyboardInterrupt: after the attempt was stopped and closed as interrupted.
    """
    started = site.clock.now()
    site.journal.open(attempt, facts)
    site.listener.tell(Started(attempt=attempt))
    try:
        launched = launch.start(
            site.host, site.keeper_python, PurePosixPath(attempt.keeper_dir), _spec(site, attempt)
        )
    except launch.PortTaken:
        site.journal.withdraw(attempt.number)
        site.listener.tell(Withdrawn(attempt=attempt))
        raise
    except KeyboardInterrupt:
        # It may or may not have been started: whoever looks knows, and ends it.
        take_over(site, attempt, facts, end=_stopped())
        raise
    watch = Stopwatch(started, call_at=site.journal.opened_at)
    return Drive(site, attempt, launched, facts=facts, stopwatch=watch).see_through()


def take_over(
    site: Site, attempt: Attempt, facts: Mapping[str, object], *, end: End | None = None
) -> Outcome:
    """See an attempt through that was left open: follow it, or reap what is left.

    Args:
        site: what to act through.
        attempt: as the journal has it.
        facts: what the host was when it was opened.
        end: stop it at once with this end.
    """
    site.listener.tell(Started(attempt=attempt, is_adopted=True))
    directory = PurePosixPath(attempt.keeper_dir)
    launched = launch.adopt(site.host, site.keeper_python, directory)
    if launched is None:
        return _close_unstarted(site, attempt, facts)
    state = launched.state()
    # In this machine's time: the host's clock may be another.
    started = site.clock.now() - max(state.beat_at - state.started_at, 0.0)
    watch = Stopwatch(started, call_at=site.journal.opened_at, is_adopted=True)
    drive = Drive(site, attempt, launched, facts=facts, stopwatch=watch)
    return drive.see_through() if end is None else drive.conclude(end)


def finish_stopping(site: Site, outcome: Outcome) -> Outcome:
    """Close an attempt whose stop was begun by a call that did not live to see its end."""
    directory = PurePosixPath(outcome.attempt.keeper_dir)
    launched = launch.adopt(site.host, site.keeper_python, directory)
    if launched is not None:
        launched.stop(is_ready=outcome.timings.ready_s is not None)
    site.journal.close(outcome)
    site.listener.tell(Ended(outcome=outcome))
    return outcome


def final_diagnosis(  # noqa: PLR0913 - all that a verdict is made of
    follower: Follower,
    end: End,
    proof: Proof | None,
    twin: Outcome | None = None,
    server_info: Mapping[str, object] | None = None,
    *,
    version: str | None = None,
) -> Diagnosis:
    """Return what log, end and proof together amount to.

    Args:
        follower: fed with the log up to the moment anything was stopped.
        end: how the wait ended.
        proof: what the server answered, if it was asked.
        twin: the finished attempt that this one equals, if that ended it.
        server_info: what the running server said of itself, if it was asked.
        version: the build's SGLang; logs rarely name it.
    """
    equal = twin.diagnosis if twin is not None else None
    told = follower.diagnose(ending_of(end))
    told = replace(told, sglang_version=told.sglang_version or version)
    final = conclude(told, end, proof, equal=equal)
    return with_server_words(final, server_info) if server_info else final


def version_of(build: str, facts: Mapping[str, object]) -> str | None:
    """Return the SGLang of a build, as the host's facts have it."""
    builds = facts.get("builds")
    known = builds.get(build) if isinstance(builds, dict) else None
    found = known.get("sglang") if isinstance(known, dict) else None
    return str(found) if found else None


def _spec(site: Site, attempt: Attempt) -> launch.LaunchSpec:
    return launch.LaunchSpec(
        argv=(attempt.python, *attempt.argv),
        env=attempt.env,
        marker=f"{site.journal.run_id}-{attempt.number:04d}",
        port=attempt.port,
        deadline_s=_deadline_s(site.limits) + more_s(site.probe),
        cwd=site.cwd,
        secrets=site.secrets,
        gpus=attempt.gpus,
        shares_gpus=site.place.shares_memory,
    )


def _deadline_s(limits: Limits) -> float:
    return _DEADLINE_S if limits.ready_s is None else limits.ready_s + _PROOF_S


def more_s(probe: ProbeSettings) -> float:
    """Return how long what a sweep asks for beside the usual proof may take."""
    own = _OWN_REQUEST_S * len(probe.requests)
    quality = _QUALITY_S if probe.quality is not None else 0.0
    ladder = _LADDER_S if probe.traffic is not None else 0.0
    return own + quality + ladder + (probe.soak_s or 0.0)


def _stopped(why: str = "") -> End:
    return End(kind=EndKind.INTERRUPTED, detail=why or "stopped by the user")


def _close_unstarted(site: Site, attempt: Attempt, facts: Mapping[str, object]) -> Outcome:
    """Close an attempt whose server was never started: the tool died between record and launch."""
    detail = "the tool ended before the server was started"
    end = End(kind=EndKind.INTERRUPTED, stop_offset=0, detail=detail)
    empty = Follower(site.catalogue).diagnose(Ending())
    outcome = Outcome(
        attempt=attempt,
        end=end,
        diagnosis=conclude(empty, end, None),
        ended_at=stamp(site.clock.now()),
        facts=facts,
    )
    site.journal.close(outcome)
    site.listener.tell(Ended(outcome=outcome))
    return outcome


class Drive:
    """A launched attempt and what is known of it so far."""

    def __init__(
        self,
        site: Site,
        attempt: Attempt,
        launched: launch.Launched,
        *,
        facts: Mapping[str, object],
        stopwatch: Stopwatch,
    ) -> None:
        self.site = site
        self.attempt = attempt
        self.launched = launched
        self.facts = facts
        self.follower = Follower(site.catalogue)
        self._watcher = Watcher(
            site.limits,
            started_at=stopwatch.begun_at,
            gpu_limit_w=_power_limits(facts, attempt.gpus),
            is_mute=_is_mute(attempt.argv),
        )
        self._stopwatch = stopwatch
        self._offset = 0
        self._oom_kills = 0
        self._before: GpuBefore | None = None
        self._stranger: Listener | None = None
        self._ranks = RankWatch()
        self._proved: Proved | None = None
        self._twin: Outcome | None = None
        self.life: Life | None = None
        self._phase_since = stopwatch.begun_at
        self._phase = self.follower.phase

    def see_through(self) -> Outcome:
        """Follow to the end, stop, diagnose, close."""
        try:
            self._catch_up()
            end = self._follow() or self._prove()
        except KeyboardInterrupt as stop:
            self.conclude(_stopped(str(stop)))
            raise
        except HostUnreachable:
            raise
        except Exception:
            # A full disk, or a fault of our own: leave no server behind that nobody follows.
            with suppress(HostError):
                self.launched.stop(is_ready=self._stopwatch.ready_at is not None)
            raise
        return self.conclude(end)

    def look(self) -> Decision:
        """Look once: state first, then the log, so that an exit has its last words."""
        state = self.launched.state()
        self.life = state.life
        self._oom_kills = state.oom_kills_cgroup or state.oom_kills_host or 0
        self._before = state.gpu_before or self._before
        self._ranks.look(process.title for process in state.processes)
        if state.listener is not None and not state.listener.is_ours:
            self._stranger = state.listener
        self._pump()
        now = self.site.clock.now()
        self._stopwatch.beat(state, now)
        if self.follower.terminal is not None or state.exited_at is not None:
            self._stopwatch.fatal(now)
        lost = _lost(state)
        if lost is not None:
            return lost
        seen = self._watcher.observe(
            now,
            self.follower,
            self._own_signs(state.life),
            server_alive=state.exited_at is None and not state.has_ended,
            exit_status=state.exit_status,
            is_listening=state.listener is not None and state.listener.is_ours,
        )
        self._tell_progress(now, seen)
        return seen

    def conclude(self, end: End) -> Outcome:
        """Say what it came to, stop whatever is left, close the record."""
        ended = self.site.clock.now()
        self._stopwatch.judged(ended)
        end = replace(end, stop_offset=self._offset, oom_kills=self._oom_kills)
        end = replace(end, **self._outsiders())
        end = with_neighbours(end, self.site.journal, self.attempt, self.facts)
        proved = self._proved
        proof = proved.proof if proved else None
        said = proved.server_info if proved else {}
        outcome = Outcome(
            attempt=self.attempt,
            end=end,
            diagnosis=final_diagnosis(
                self.follower,
                end,
                proof,
                self._twin,
                said,
                version=version_of(self.attempt.build, self.facts),
            ),
            proof=proof,
            timings=self._stopwatch.timings(),
            ended_at=stamp(ended),
            facts=self.facts,
            server_info=said,
            ladder=proved.ladder if proved else None,
            soak=proved.soak if proved else None,
            quality=proved.quality if proved else None,
        )
        self.site.journal.stopping(outcome)
        self.site.listener.tell(Stopping(outcome=outcome))
        stop = self.launched.stop(is_ready=self._stopwatch.ready_at is not None)
        stopped = self.site.clock.now()
        self._stopwatch.stopped(stop, stopped)
        self._fetch_teardown()
        timings = self._stopwatch.timings(closed_at=self.site.clock.now())
        outcome = replace(outcome, timings=timings, ended_at=stamp(stopped))
        self.site.journal.close(outcome)
        self._tell_leftovers(stop)
        self.site.listener.tell(Ended(outcome=outcome))
        return outcome

    def _outsiders(self) -> dict[str, Any]:
        """Return what others had of the server's cards before us, and who has our port."""
        before = self._before or GpuBefore()
        used = used_before(before, self.attempt, self.facts)
        most, stranger = max(used.values(), default=0), self._stranger
        holders = (
            f"pid {h.pid} ({h.title or 'unknown'})"
            + ("" if h.used_mib is None else f", {h.used_mib:,} MiB")
            for h in before.holders
            # Whoever has more than is in use here has it on another card.
            if h.used_mib is None or h.used_mib <= most
        )
        who = "" if stranger is None else f"pid {stranger.pid} ({stranger.title or 'unknown'})"
        if stranger is not None and stranger.pid is None:
            who = f"a process of user {stranger.user}"
        return {
            "gpu_before_mib": tuple(used.values()),
            "gpu_cards": tuple(used),
            "gpu_holders": tuple(holders),
            "port_holder": who,
            "first_gone": self._ranks.first_gone,
        }

    def _own_signs(self, life: Life) -> Life:
        place = self.site.place
        return life if place.is_alone else own_signs(life, shares_gpus=place.shares_memory)

    def _catch_up(self) -> None:
        """Feed what an earlier call already stored, so that nothing is fetched twice."""
        size = self.site.journal.log_size(self.attempt.number)
        if size:
            self.follower.feed(self.site.journal.read_log(self.attempt.number))
            self._offset = size

    def _pump(self) -> None:
        """Take what the log has grown by."""
        while chunk := self.launched.read_log(self._offset, _CHUNK):
            self.site.journal.append_log(self.attempt.number, chunk)
            self.follower.feed(chunk)
            self._offset += len(chunk)
            if len(chunk) < _CHUNK:
                break

    def _tell_progress(self, now: float, seen: Decision) -> None:
        if self.follower.phase is not self._phase:
            self._phase, self._phase_since = self.follower.phase, now
        waiting = seen if isinstance(seen, Continue) else None
        self.site.listener.tell(
            Progress(
                attempt=self.attempt,
                phase=self._phase,
                phase_s=now - self._phase_since,
                elapsed_s=now - self._stopwatch.begun_at,
                last_text=self.follower.last_text,
                bars=self.follower.progress,
                ranks=self.follower.captures,
                silent_s=None if waiting is None else waiting.silent_s,
                limit_s=None if waiting is None else waiting.limit_s,
                cap_s=self.site.limits.phases[self._phase].cap_s,
                sign="" if waiting is None else waiting.sign,
            )
        )

    def _follow(self) -> End | None:
        """Wait for an end or for ready (None)."""
        is_compared = False
        while True:
            seen = self.look()
            if isinstance(seen, End):
                return seen
            if not is_compared and self.follower.server_args:
                is_compared = True
                self._twin = equal_outcome(
                    self.attempt, self.follower.server_args, self.site.journal.history()
                )
                if self._twin is not None:
                    return _equal_end(self._twin)
            if isinstance(seen, ReadyForProof):
                self._stopwatch.ready(self.site.clock.now())
                return None
            if why := self.site.enough():
                return End(kind=EndKind.INTERRUPTED, detail=why)
            self.site.clock.sleep(_LOOK_EVERY_S)

    def _prove(self) -> End:
        self._proved = prove(self, self._keep)
        return self._proved.end

    def _keep(self, proved: Proved) -> None:
        self._proved = proved

    def _fetch_teardown(self) -> None:
        """Keep the log's last lines too; they are never read for a verdict."""
        while chunk := self.launched.read_log(self._offset, _CHUNK):
            self.site.journal.append_log(self.attempt.number, chunk)
            self._offset += len(chunk)

    def _tell_leftovers(self, stop: StopReport) -> None:
        left = ", ".join(f"pid {p.pid} ({p.title})" for p in stop.left)
        if left:
            self.site.listener.tell(Note(text=f"would not die: {left}"))
        if stop.gpu_left_mib is not None:
            shown = ", ".join(f"{mib} MiB" for mib in stop.gpu_left_mib)
            self.site.listener.tell(Note(text=f"GPU memory did not come back: {shown}"))


def _lost(state: KeeperState) -> End | None:
    """Return the end where something other than the server ended it."""
    if state.end_reason == "deadline":
        return End(kind=EndKind.DEADLINE, detail="the attempt's deadline passed on the host")
    if state.end_reason == "log-limit":
        return End(kind=EndKind.LOG_LIMIT, detail="the log grew beyond its limit on the host")
    if state.end_reason == "stopped":
        return End(kind=EndKind.INTERRUPTED, detail="somebody else stopped it on the host")
    is_gone = state.is_keeper_alive is False and not state.has_ended
    if is_gone or state.end_reason == "keeper-lost":
        detail = "the keeper is gone and left no exit status: killed, or the machine restarted"
        return End(kind=EndKind.HOST_LOST, detail=detail)
    return None


def _equal_end(twin: Outcome) -> End:
    number = twin.attempt.number
    detail = f"SGLang resolves it to the very configuration of attempt {number}"
    return End(kind=EndKind.EQUAL, equal_to=number, detail=detail)


def _is_mute(argv: Sequence[str]) -> bool:
    """Tell whether the log level hides every milestone."""
    words = " ".join(argv).replace("=", " ").split()
    quiet = {"warning", "warn", "error", "critical"}
    return any(word == "--log-level" and level in quiet for word, level in pairwise(words))


def _power_limits(facts: Mapping[str, object], which: tuple[int, ...] | None) -> Sequence[float]:
    gpus = facts.get("gpus")
    found = gpus if isinstance(gpus, list) else []
    cards = [g for g in found if isinstance(g, dict) and (not which or g.get("index") in which)]
    limits = [card.get("power_limit_w") for card in cards]
    return [float(limit) for limit in limits if isinstance(limit, int | float)]
