"""Known incompatibilities: each names its source, and the lead case is decided right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglsweep.catalogue.incompatible import Advice, FirstCell, Incompatible, load, version_key
from sglsweep.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglsweep.matrix import Value

LEAD = load().for_launch(version="0.5.9", arch="sm120", model="GlmMoeDsaForCausalLM")
NIGHT = {
    "attention-backend": "flashinfer",
    "kv-cache-dtype": "fp8_e4m3",
    "quantization": "modelopt_fp4",
}


def held(effective: Mapping[str, Value]) -> list[str]:
    return [entry.id for entry in LEAD.incompatible if entry.holds(effective)]


def test_the_cells_of_that_night_are_known_to_make_nan() -> None:
    for decode in ("flashmla_kv", "flashmla_sparse"):
        for more in ({}, {"fp8-gemm-backend": "cutlass"}, {"disable-cuda-graph": True}):
            found = held({**NIGHT, "nsa-decode-backend": decode, **more})
            assert "dsa-flashinfer-packed-fp8" in found


@pytest.mark.parametrize(
    "change",
    [
        {"kv-cache-dtype": "bf16"},
        {"nsa-prefill-backend": "trtllm", "nsa-decode-backend": "trtllm"},
    ],
)
def test_the_remedies_stay(change: dict[str, str]) -> None:
    excluded = [
        entry.id
        for entry in LEAD.incompatible
        if entry.advice is Advice.EXCLUDE and entry.holds({**NIGHT, **change})
    ]
    assert excluded == []


def test_other_architectures_and_versions_are_left_alone() -> None:
    cell = {"moe-runner-backend": "flashinfer_trtllm"}
    for arch, expected in (("sm120", True), ("sm100", False)):
        known = load().for_launch(version="0.5.9", arch=arch, model="GlmMoeDsaForCausalLM")
        assert (
            "moe-trtllm-sm120" in [e.id for e in known.incompatible if e.holds(cell)]
        ) is expected
    for version, expected in (("0.5.20", True), ("0.5.20.post1", True), ("0.5.23", False)):
        known = load().for_launch(version=version, arch="sm120", model="GlmMoeDsaForCausalLM")
        fits = "glm-dsa-sm120-fp8-only-sparse-mla" in [e.id for e in known.incompatible]
        assert fits is expected


def test_every_version_that_serves_glm5_on_sm120_has_a_first_cell_that_nothing_excludes() -> None:
    for version in ("0.5.9", "0.5.15", "0.5.17", "0.5.23"):
        known = load().for_launch(version=version, arch="sm120", model="GlmMoeDsaForCausalLM")
        assert known.first
        for cell in known.first:
            effective = {**cell.flags, **{f"env.{k}": v for k, v in cell.env.items()}}
            against = [
                entry.id
                for entry in known.incompatible
                if entry.advice is Advice.EXCLUDE and entry.holds(effective)
            ]
            assert against == [], cell.id


ENTRIES: list[Incompatible | FirstCell] = [*load().incompatible, *load().first]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_says_why_and_whence(entry: Incompatible | FirstCell) -> None:
    assert len(entry.reason) > 15
    assert "http" in entry.source or "0.5." in entry.source or "InferenceX" in entry.source
    assert entry.scope.arch
    if isinstance(entry, Incompatible):
        assert entry.instead
        assert entry.verdict is not Verdict.SERVING


def test_ids_are_unique() -> None:
    ids = [entry.id for entry in ENTRIES]
    assert len(set(ids)) == len(ids)


def test_versions_compare_by_number() -> None:
    assert version_key("0.5.9") < version_key("0.5.15") < version_key("0.5.15.post1")
