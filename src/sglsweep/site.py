"""What one attempt acts through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglsweep.slots import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglsweep.catalogue import Catalogue
    from sglsweep.catalogue.limits import Limits
    from sglsweep.clock import Clock
    from sglsweep.events import Listener
    from sglsweep.hosts.base import Host
    from sglsweep.journal import Journal
    from sglsweep.probe.target import ProbeSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything outside that an attempt needs.

    Attributes:
        keeper_python: any Python from 3.8 on, on the host; runs the keeper.
        secrets: name -> value, handed to the keeper and to nobody else.
        cwd: the server's working folder; None = the login user's home.
        probe: what has to be proven.
        place: what it shares with attempts beside it.
        enough: why an attempt that is not ready yet is needed no more; "" while it is.
    """

    host: Host
    keeper_python: str
    journal: Journal
    catalogue: Catalogue
    limits: Limits
    clock: Clock
    listener: Listener
    secrets: Mapping[str, str]
    cwd: str | None
    probe: ProbeSettings
    place: Place = field(default_factory=Place)
    enough: Callable[[], str] = str
