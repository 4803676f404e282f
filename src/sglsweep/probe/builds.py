"""Judges what is to be launched: SGLang builds and models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglsweep.probe.checks import GIB, Check, ok, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglsweep.probe.checks import Facts

# NVIDIA's table of CUDA toolkits and the oldest driver that runs them (minor versions compatible).
_OLDEST_DRIVER = {13: 580, 12: 525, 11: 450}
# Kernels for compute capability 10 and above cannot be compiled by an older nvcc.
_BLACKWELL, _BLACKWELL_NVCC = 10, (12, 8)
_SHARD_ENDINGS = (".safetensors", ".bin", ".gguf", ".pt")


def judge_build(name: str, python: Facts, facts: Facts, flags: int) -> Iterator[Check]:
    """Judge an SGLang that can be imported.

    Args:
        name: the build's.
        python: what `facts.py --python` says of its interpreter.
        facts: of the machine, with `tools` as that interpreter finds them.
        flags: how many launch flags it takes.
    """
    packages = python.get("packages") or {}
    words = [f"SGLang {python.get('sglang')}", f"{flags} flags"]
    words += [f"{p} {packages[p]}" for p in ("torch", "flashinfer-python") if packages.get(p)]
    yield ok(f"build {name}", ", ".join(words))
    cuda = str(python.get("torch_cuda") or "")
    if cuda:
        yield from _driver(name, cuda, facts)
        yield from _compilers(name, facts)


def _driver(name: str, cuda: str, facts: Facts) -> Iterator[Check]:
    driver = str(facts.get("driver") or "").partition(".")[0]
    least = _OLDEST_DRIVER.get(int(cuda.partition(".")[0] or 0))
    if driver.isdigit() and least is not None and int(driver) < least:
        said = f"its torch is for CUDA {cuda}, which needs driver {least} or later; here {driver}"
        step = f"Update the driver to {least} or later, or use a build for an older CUDA."
        yield problem(f"build {name}", said, step)


def _compilers(name: str, facts: Facts) -> Iterator[Check]:
    """Judge what kernels need that are compiled at their first use (FlashInfer, DeepGEMM)."""
    toolkit, tools = facts.get("cuda_toolkit") or {}, facts.get("tools") or {}
    missing = [tool for tool, there in (
        ("nvcc", toolkit.get("nvcc")), ("ninja", tools.get("ninja")), ("g++", tools.get("g++"))
    ) if not there]  # fmt: skip
    if missing:
        said = f"no {' and no '.join(missing)}: kernels compiled at first use will fail"
        ways = {
            "nvcc": "install the CUDA toolkit and set CUDA_HOME",
            "ninja": "pip install ninja",
            "g++": "install g++",
        }
        step = "; ".join(ways[tool] for tool in missing)
        yield warning(f"build {name}", said, f"{step[0].upper()}{step[1:]}.")
    nvcc = _version(str(toolkit.get("nvcc_version") or ""))
    capability = max(
        (_version(str(g.get("compute_capability") or "0"))[0] for g in facts.get("gpus") or ()),
        default=0,
    )
    if nvcc > (0,) and capability >= _BLACKWELL and nvcc < _BLACKWELL_NVCC:
        said = f"nvcc {toolkit['nvcc_version']} cannot compile for compute capability {capability}"
        yield warning(f"build {name}", said, "Install CUDA 12.8 or later and set CUDA_HOME to it.")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(p) for p in text.split(".")[:2] if p.isdigit()) or (0,)


def judge_model(name: str, model: Facts | None, *, is_offline: bool, error: str = "") -> Check:
    """Judge whether all files of a model are there."""
    label = f"model {name}"
    if model is None:
        return problem(label, error or "cannot be looked at", "Look at its folder by hand.")
    if not model.get("found"):
        if is_offline or name.startswith(("/", "~", ".")):
            return problem(label, "not on this host", _download(name))
        said = "not on this host: the first attempt downloads it within its time limits"
        return warning(label, said, _download(name))
    return _files(label, name, model)


def _files(label: str, name: str, model: Facts) -> Check:
    files = model.get("files") or []
    shards = [f for f in files if str(f["name"]).endswith(_SHARD_ENDINGS)]
    broken = [str(f["name"]) for f in shards if not f["size"]]
    missing = [*(model.get("missing") or ()), *(b for b in broken if b not in model["missing"])]
    if missing:
        said = f"missing or empty: {len(missing)}, the first: {missing[0]}"
        return problem(label, said, _download(name))
    damaged = model.get("damaged") or ()
    if damaged:
        said = f"not as long as their headers say: {len(damaged)}, the first: {damaged[0]}"
        return problem(label, f"{said} (a copy that was interrupted?)", _download(name))
    if model.get("config") is None:
        return problem(label, f"no config.json in {model.get('path')}", _download(name))
    noun = "file" if len(shards) == 1 else "files"
    size = f"{_size(model.get('bytes') or 0)} in {len(shards)} weight {noun}"
    if not shards:
        said = f"no weight files in {model.get('path')}"
        return warning(label, said, "Only `probe: {weights: dummy}` can do without them.")
    if model.get("incomplete"):
        said = f"{size}; {model['incomplete']} downloads are unfinished"
        return warning(label, said, "Wait for them, or remove the *.incomplete files.")
    commit = f", commit {str(model['commit'])[:12]}" if model.get("commit") else ""
    return ok(label, size + commit)


def _size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / (1 << 20):.0f} MiB"


def _download(name: str) -> str:
    if name.startswith(("/", "~", ".")):
        return "Copy it there, or correct the path."
    return f"Download it there: `hf download {name}`."
