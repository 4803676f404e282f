"""The host's own deadline leaves room for all that is asked."""

from __future__ import annotations

from sglsweep.drive import more_s
from sglsweep.keeper_files import HttpRequest
from sglsweep.probe.target import ProbeSettings, QualitySettings, Traffic


def test_whatever_is_asked_beside_the_usual_proof_has_its_time() -> None:
    assert more_s(ProbeSettings()) == 0
    asked = [
        ProbeSettings(requests=tuple(HttpRequest(id=str(n), path="/") for n in range(1000))),
        ProbeSettings(quality=QualitySettings(needle=100_000)),
        ProbeSettings(traffic=Traffic()),
        ProbeSettings(soak_s=36_000.0),
    ]
    assert [more_s(probe) for probe in asked] == [30_000, 3600, 3600, 36_000]
