"""Says what a machine is, as one JSON document; standard library only.

    python3 facts.py [--python P] [--model PATH_OR_ID [--revision R]] [--hub DIR]
                     [--path DIR]... [--port N]

`--python` adds the versions that interpreter has, `--model` the model's files, each `--path` the
space on its disk, `--port` who listens there; `--hub` is the launch's Hugging Face cache where
that is not the login's. A fact that cannot be had is null and the reason
stands below `errors`; nothing here raises, and after 20 seconds what is known by then is printed.
Secrets in the environment are not read. Sizes are bytes unless the name says MiB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from typing import Callable

LIMIT_S = 20.0
_MAX_FILES = 4000
_PACKAGES = [
    "sglang",
    "torch",
    "flashinfer-python",
    "sgl-kernel",
    "sglang-kernel",
    "transformers",
    "triton",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
]
_GPU_FIELDS = [
    "index",
    "uuid",
    "name",
    "memory.total",
    "memory.used",
    "memory.free",
    "compute_cap",
    "driver_version",
    "vbios_version",
    "power.limit",
    "power.max_limit",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "persistence_mode",
    "ecc.mode.current",
    "compute_mode",
    "mig.mode.current",
    "temperature.gpu",
    "utilization.gpu",
]
_SMI = ["nvidia-smi", "--format=csv,noheader,nounits"]
_PROCESS_FIELDS = ["gpu_uuid", "pid", "process_name", "used_memory"]
_TEXT_FIELDS = {"uuid", "name", "compute_cap", "driver_version", "vbios_version"}
_UNITS = {
    "compute_cap": "compute_capability",
    "memory.total": "memory_total_mib",
    "memory.used": "memory_used_mib",
    "memory.free": "memory_free_mib",
    "power.limit": "power_limit_w",
    "power.max_limit": "power_max_limit_w",
    "temperature.gpu": "temperature_c",
    "utilization.gpu": "utilization_percent",
}
_ENVIRONMENT = re.compile(
    r"^(CUDA|NVIDIA|NCCL|SGLANG|SGL|HF_HOME|HF_HUB_CACHE|HF_HUB_OFFLINE|TORCH|TRITON|OMP|LD_LIBRARY_PATH)"
)
# Secrets, and a list of drivers that fills a page in NVIDIA's images.
_NOISE = re.compile(r"TOKEN|KEY|SECRET|PASS|^NVIDIA_REQUIRE", re.IGNORECASE)
_SECRET_OPTION = re.compile(r"(--?[\w-]*(?:key|token|secret|passw)[\w-]*[ =])\S+", re.IGNORECASE)
# Run by the build's Python. Nothing is imported: torch alone would take seconds.
_VERSIONS = """
import importlib.metadata as md, importlib.util as iu, json, os, re, sys
def version(name):
    try:
        return md.version(name)
    except Exception:
        return None
def source(name):
    try:
        return iu.find_spec(name).origin
    except Exception:
        return None
def cuda():
    try:
        text = open(os.path.join(os.path.dirname(source("torch")), "version.py")).read()
        return re.search(r"^cuda\\b[^=]*=\\s*['\\"]([^'\\"]+)", text, re.M).group(1)
    except Exception:
        return None
def commit():
    try:
        direct = json.loads(md.distribution("sglang").read_text("direct_url.json"))
        return direct.get("vcs_info", {}).get("commit_id")
    except Exception:
        return None
print(json.dumps({"version": sys.version.split()[0], "executable": sys.executable,
    "packages": {name: version(name) for name in json.loads(sys.argv[1])},
    "torch_cuda": cuda(), "sglang_file": source("sglang"), "sglang_commit": commit()}))
"""


def main(argv: list[str]) -> int:
    """Print the facts; always exit status 0 unless the options are wrong."""
    parser = argparse.ArgumentParser(description="Say what this machine is, as JSON.")
    parser.add_argument("--python")
    parser.add_argument("--model")
    parser.add_argument("--revision")
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--port", type=int)
    parser.add_argument("--hub", metavar="DIR")
    options = parser.parse_args(argv)
    if options.hub:
        os.environ["HF_HUB_CACHE"] = os.path.expanduser(options.hub)
    print(json.dumps(gather(options)), flush=True)
    # A thread that waits for a dead file system must not keep us.
    sys.stdout.flush()
    os._exit(0)


def gather(options: argparse.Namespace) -> dict[str, object]:
    """Ask for all facts side by side and return what is known when the time is up."""
    started = time.monotonic()
    questions = {
        "kernel": _kernel,
        "os": _os,
        "boot_id": lambda: _read("/proc/sys/kernel/random/boot_id").strip(),
        "uptime_s": lambda: int(float(_read("/proc/uptime").split()[0])),
        "user": _user,
        "cpu": _cpu,
        "memory": _memory,
        "cgroup": _cgroup,
        "disks": lambda: _disks(options.path),
        "limits": _limits,
        "environment": _environment,
        "gpus": _gpus,
        "gpu_processes": _gpu_processes,
        "xids": _xids,
        "cuda_toolkit": _cuda,
        "tools": lambda: _tools(options.python),
        "sessions": _sessions,
        "port": lambda: _port(options.port) if options.port else None,
        "python": lambda: _python(options.python) if options.python else None,
        "model": lambda: _model(options.model, options.revision) if options.model else None,
    }
    facts: dict[str, object] = dict.fromkeys(questions)
    errors: dict[str, str] = {}
    threads = {}
    for name, question in questions.items():
        arguments = (name, question, facts, errors)
        threads[name] = threading.Thread(target=_answer, args=arguments, daemon=True)
        threads[name].start()
    for name, thread in threads.items():
        thread.join(max(0.0, started + LIMIT_S - time.monotonic()))
        if thread.is_alive():
            errors[name] = "no answer in %d s" % LIMIT_S
    facts["driver"] = _first(facts.get("gpus"), "driver_version")
    facts["cuda"] = _first([facts.get("cuda_toolkit")], "nvcc_version")
    elapsed = round(time.monotonic() - started, 3)
    return {"schema": 1, **facts, "errors": dict(errors), "elapsed_s": elapsed}


def _first(entries: object, name: str) -> object:
    """Return a fact of the first entry of a list, null where there is none."""
    first = entries[0] if isinstance(entries, list) and entries else None
    return first.get(name) if isinstance(first, dict) else None


def _answer(
    name: str,
    question: Callable[[], object],
    facts: dict[str, object],
    errors: dict[str, str],
) -> None:
    """Put one answer in its place; a failure is null with its reason."""
    try:
        facts[name] = question()
    except Exception as error:  # noqa: BLE001 - a fact that cannot be had must not cost the others
        errors[name] = "%s: %s" % (type(error).__name__, str(error)[:300])


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as source:
        return source.read()


def _ask(command: list[str], limit_s: float = LIMIT_S - 4) -> str:
    """Return what a command prints; raises with its last words where it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=limit_s, check=False
    )
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        said = (text + done.stderr.decode("utf-8", "replace")).strip()
        raise RuntimeError("%s ended with %d: %s" % (command[0], done.returncode, said[-250:]))
    return text


def _kernel() -> str:
    return os.uname().release


def _os() -> str | None:
    pairs = (line.split("=", 1) for line in _read("/etc/os-release").splitlines() if "=" in line)
    return {key: value.strip('"') for key, value in pairs}.get("PRETTY_NAME")


def _user() -> dict[str, object]:
    import pwd

    entry = pwd.getpwuid(os.getuid())
    return {"name": entry.pw_name, "uid": os.getuid(), "home": os.path.expanduser("~")}


def _cpu() -> dict[str, object]:
    found = re.search(r"^model name\s*:\s*(.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    nodes = [n for n in os.listdir("/sys/devices/system/node") if re.match(r"node\d+$", n)]
    return {
        "model": found.group(1) if found else None,
        "count": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
        "numa_nodes": len(nodes),
        "load": list(os.getloadavg()),
    }


def _memory() -> dict[str, object]:
    sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB", _read("/proc/meminfo"), re.MULTILINE))
    names = {
        "total_mib": "MemTotal",
        "available_mib": "MemAvailable",
        "swap_total_mib": "SwapTotal",
        "swap_free_mib": "SwapFree",
    }
    return {
        ours: int(sizes[name]) // 1024 if name in sizes else None for ours, name in names.items()
    }


def _cgroup() -> dict[str, object]:
    """Return the memory limit that applies to us; null where there is none."""
    limit = used = None
    for folder, names in (
        ("/sys/fs/cgroup", ("memory.max", "memory.current")),
        ("/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ):
        paths = [os.path.join(folder, name) for name in names]
        if all(os.path.exists(path) for path in paths):
            limit, used = (_read(path).strip() for path in paths)
            break
    # A cgroup v1 without a limit shows the largest page count there is.
    is_limited = limit is not None and limit.isdigit() and int(limit) < 1 << 60
    return {
        "memory_max": int(limit) if is_limited and limit else None,
        "memory_current": int(used) if used and used.isdigit() else None,
        "in_container": os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"),
    }


def _disks(paths: list[str]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for path in ["~", "/tmp", "/dev/shm", _hub(), *paths]:
        full = os.path.abspath(os.path.expanduser(path))
        existing = full
        while not os.path.exists(existing):
            existing = os.path.dirname(existing)
        usage = shutil.disk_usage(existing)
        status = os.statvfs(existing)
        found.append(
            {
                "path": full,
                "exists": existing == full,
                "total": usage.total,
                "free": usage.free,
                "inodes_free": status.f_favail,
                "is_writable": os.access(existing, os.W_OK),
            }
        )
    return found


def _limits() -> dict[str, object]:
    names = {
        "nofile": "NOFILE",
        "memlock": "MEMLOCK",
        "nproc": "NPROC",
        "as": "AS",
        "core": "CORE",
    }
    limits: dict[str, object] = {}
    for ours, name in names.items():
        pair = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
        limits[ours] = [
            "unlimited" if value == resource.RLIM_INFINITY else value for value in pair
        ]
    return limits


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if _ENVIRONMENT.match(name) and not _NOISE.search(name)
    }


def _smi(query: str, fields: list[str]) -> list[list[str]]:
    """Ask nvidia-smi for a table; a field that this driver does not know comes back as N/A."""
    asked = list(fields)
    text: str | None = None
    while text is None:
        try:
            text = _ask([*_SMI, "--query-%s=%s" % (query, ",".join(asked))], limit_s=12)
        except RuntimeError as error:
            unknown = re.search(r'[Ff]ield "([^"]+)" is not a valid field', str(error))
            if unknown is None or unknown.group(1) not in asked:
                raise
            asked.remove(unknown.group(1))
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) >= len(asked):
            known = dict(zip(asked, cells))  # noqa: B905 - Python 3.8 has no strict
            rows.append([known.get(field, "[N/A]") for field in fields])
    return rows


def _known(text: str) -> str | None:
    """Return a cell of nvidia-smi, None for the many ways it says that it does not know."""
    return None if not text or text.startswith("[") or text in {"N/A", "Not Supported"} else text


def _gpus() -> list[dict[str, object]]:
    """Return the GPUs; none where there is no nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return []
    gpus = []
    for row in _smi("gpu", _GPU_FIELDS):
        gpu: dict[str, object] = {}
        for field, text in zip(_GPU_FIELDS, row):  # noqa: B905 - Python 3.8 has no strict
            value = _known(text)
            name = _UNITS.get(field, field.replace(".", "_"))
            gpu[name] = value if field in _TEXT_FIELDS else _number(value)
        gpus.append(gpu)
    return gpus


def _number(text: str | None) -> object:
    if text is None or not re.match(r"^-?\d+(\.\d+)?$", text):
        return text
    return float(text) if "." in text else int(text)


def _gpu_processes() -> list[dict[str, object]]:
    """Return who holds GPU memory, with what /proc says about them."""
    if shutil.which("nvidia-smi") is None:
        return []
    text = _ask([*_SMI, "--query-compute-apps=%s" % ",".join(_PROCESS_FIELDS)], limit_s=12)
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(_PROCESS_FIELDS) or not cells[1].isdigit():
            continue
        pid = int(cells[1])
        found.append(
            {
                "gpu_uuid": cells[0],
                "pid": pid,
                "name": ", ".join(cells[2:-1]),  # a process's name may hold commas
                "memory_mib": _number(_known(cells[-1])),
                "command": _command(pid),
                "user": _owner(pid),
                "keeper_marker": _marker(pid),
                **_belonging(pid),
            }
        )
    return found


def _marker(pid: int) -> str | None:
    """Return the mark of an attempt of ours."""
    try:
        found = re.search("(?:^|\0)SGLSWEEP_MARKER=([^\0]*)", _read("/proc/%d/environ" % pid))
    except OSError:
        return None
    return found.group(1) if found else None


_CONTAINER = re.compile(r"[-/:]([0-9a-f]{64})\b")
_UNIT = re.compile(r"/([^/\n]+\.service)(?=[/\n]|$)")
_SLURM = re.compile(r"slurm\S*/job_(\d+)")
_POD = re.compile(r"kubepods\S*?pod([0-9a-f_-]{32,36})")


def _belonging(pid: int) -> dict[str, object]:
    """Say what a process is part of: whoever stops it must stop that."""
    try:
        return belonging(_read("/proc/%d/cgroup" % pid))
    except OSError:
        return belonging("")


def belonging(cgroup: str) -> dict[str, object]:
    """Read container, unit, Slurm job and pod from the text of a process's cgroup."""
    container, pod = _CONTAINER.search(cgroup), _POD.search(cgroup)
    job = _SLURM.search(cgroup)
    # The innermost unit is the one to stop; `user@1000.service` only holds the user's own.
    units = [unit for unit in _UNIT.findall(cgroup) if not unit.startswith("user@")]
    is_own = "/user.slice/" in cgroup
    is_whole = container is None and job is None
    return {
        "container": _container(container.group(1)) if container else None,
        "unit": {"name": units[-1], "is_user": is_own} if units and is_whole else None,
        "slurm_job": job.group(1) if job else None,
        "pod": pod.group(1) if pod else None,
    }


def _container(name: str) -> dict[str, object]:
    """Ask the engine that knows a container for its name and what restarts it."""
    form = "{{.Name}}\t{{.HostConfig.RestartPolicy.Name}}\t{{.Config.Image}}"
    for engine in ("docker", "podman"):
        if shutil.which(engine) is None:
            continue
        try:
            said = _ask([engine, "inspect", "--type", "container", "--format", form, name], 6)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            continue
        parts = [*said.strip().split("\t"), "", "", ""][:3]
        return {
            "id": name[:12],
            "engine": engine,
            "name": parts[0].lstrip("/") or None,
            "restart": parts[1] or None,
            "image": parts[2] or None,
        }
    return {"id": name[:12], "engine": None, "name": None, "restart": None, "image": None}


def _command(pid: int) -> str | None:
    try:
        command = _read("/proc/%d/cmdline" % pid).replace("\0", " ").strip()
        return _SECRET_OPTION.sub(r"\1***", command)[:500] or None
    except OSError:
        return None  # in another container, or gone


def _owner(pid: int) -> str | None:
    import pwd

    try:
        return pwd.getpwuid(os.stat("/proc/%d" % pid).st_uid).pw_name
    except (OSError, KeyError):
        return None


def _cuda() -> dict[str, object]:
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    candidates = [os.path.join(home, "bin", "nvcc")] if home else []
    candidates += [shutil.which("nvcc") or "", "/usr/local/cuda/bin/nvcc"]
    nvcc = next((path for path in candidates if path and os.path.exists(path)), None)
    found = re.search(r"release (\S+?),?\s+V(\S+)", _ask([nvcc, "--version"], 8)) if nvcc else None
    return {
        "home": home,
        "nvcc": nvcc,
        "nvcc_version": found.group(2) if found else None,
        "ptxas": shutil.which("ptxas"),
    }


def _tools(python: str | None) -> dict[str, str | None]:
    """Return where compilers of kernels are; a build brings its own ninja."""
    path = os.environ.get("PATH", "")
    if python:
        path = os.path.dirname(os.path.expanduser(python)) + os.pathsep + path
    return {name: shutil.which(name, path=path) for name in ("ninja", "gcc", "g++", "cmake")}


def _xids() -> list[str] | None:
    """Return the last errors of GPUs that the kernel tells; None where we may not read them."""
    if shutil.which("dmesg") is None:
        return None
    try:
        lines = _ask(["dmesg", "--ctime"], 6).splitlines()
    except RuntimeError:
        return None
    return [line[:200] for line in lines if "NVRM: Xid" in line][-5:]


def _sessions() -> dict[str, object]:
    """Say whether what we start outlives our last session."""
    folders = ("/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d")
    paths = ["/etc/systemd/logind.conf"]
    for folder in folders:
        if os.path.isdir(folder):
            paths += [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    kills = False
    for path in paths:
        text = _read(path) if os.path.isfile(path) else ""
        for word in re.findall(r"^\s*KillUserProcesses\s*=\s*(\S+)", text, re.MULTILINE):
            kills = word.lower() in ("yes", "true", "on", "1")
    import pwd

    name = pwd.getpwuid(os.getuid()).pw_name
    return {
        "kills_user_processes": kills,
        "lingers": os.path.exists("/var/lib/systemd/linger/" + name),
    }


def _port(port: int) -> dict[str, object]:
    """Say who keeps a server from a port; the socket's user where its process is hidden."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _read(path).splitlines()[1:] if os.path.exists(path) else []:
            field = line.split()
            if field[3] == "0A" and int(field[1].rpartition(":")[2], 16) == port:
                pid = _holds("socket:[%s]" % field[9])
                return {
                    "port": port,
                    "is_free": False,
                    "pid": pid,
                    "command": _command(pid) if pid else None,
                    "uid": int(field[7]),
                    "user": _owner(pid) if pid else None,
                    "keeper_marker": _marker(pid) if pid else None,
                }
    return {"port": port, "is_free": True}


def _holds(socket: str) -> int | None:
    for name in os.listdir("/proc"):
        folder = "/proc/%s/fd" % name
        if not name.isdigit() or not os.access(folder, os.R_OK):
            continue
        try:
            for number in os.listdir(folder):
                if os.readlink(os.path.join(folder, number)) == socket:
                    return int(name)
        except OSError:
            continue  # it ended meanwhile
    return None


def _python(python: str) -> object:
    text = _ask([os.path.expanduser(python), "-c", _VERSIONS, json.dumps(_PACKAGES)])
    found = json.loads(text.strip().splitlines()[-1])
    return {"sglang": found["packages"]["sglang"], **found}


def _hub() -> str:
    """Return the Hugging Face cache of this environment."""
    home = os.environ.get("HF_HOME") or os.path.join("~", ".cache", "huggingface")
    return os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")


def _model(model: str, revision: str | None) -> dict[str, object]:
    """Describe a model's folder, or its snapshot in the cache; `found` false where neither is."""
    folder: str | None = os.path.expanduser(model)
    commit = None
    incomplete = 0
    if not os.path.isdir(str(folder)):
        cache = os.path.join(os.path.expanduser(_hub()), "models--" + model.replace("/", "--"))
        commit = _commit(cache, revision or "main")
        folder = os.path.join(cache, "snapshots", commit) if commit else None
        blobs = os.path.join(cache, "blobs")
        if os.path.isdir(blobs):
            incomplete = sum(name.endswith(".incomplete") for name in os.listdir(blobs))
    if folder is None or not os.path.isdir(folder):
        return {"name": model, "found": False, "commit": commit, "incomplete": incomplete}
    files = _files(folder)
    return {
        "name": model,
        "found": True,
        "path": os.path.abspath(folder),
        "commit": commit,
        "incomplete": incomplete,
        "bytes": sum(int(str(f["size"])) for f in files if f["size"] is not None),
        "files": files,
        "missing": _missing(folder),
        "damaged": _damaged(folder, files),
        "config": _config(os.path.join(folder, "config.json")),
    }


def _commit(cache: str, revision: str) -> str | None:
    """Return the commit that a revision means in the cache."""
    reference = os.path.join(cache, "refs", revision)
    if os.path.isfile(reference):
        return _read(reference).strip()
    if os.path.isdir(os.path.join(cache, "snapshots", revision)):
        return revision
    return None


def _files(folder: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for parent, _folders, names in os.walk(folder):
        for name in names:
            if len(found) >= _MAX_FILES:
                return found
            path = os.path.join(parent, name)
            entry: dict[str, object] = {"name": os.path.relpath(path, folder)}
            try:
                status = os.stat(path)
                entry.update(size=status.st_size, mtime=int(status.st_mtime))
            except OSError:  # a link into the cache whose blob is gone
                entry.update(size=None, mtime=None)
            found.append(entry)
    return sorted(found, key=lambda entry: str(entry["name"]))


def _missing(folder: str) -> list[str]:
    """Return the shards that the index lists and the folder lacks."""
    missing: set[str] = set()
    for name in os.listdir(folder):
        if name.endswith(".index.json"):
            shards = set(json.loads(_read(os.path.join(folder, name)))["weight_map"].values())
            missing |= {s for s in shards if not os.path.exists(os.path.join(folder, s))}
    return sorted(missing)


_MAX_HEADER = 100_000_000


def _damaged(folder: str, files: list[dict[str, object]]) -> list[str]:
    """Return the safetensors files that are not as long as their own header says.

    An interrupted copy leaves such a file, and SGLang finds out minutes after the launch.
    """
    names = [
        str(f["name"]) for f in files if str(f["name"]).endswith(".safetensors") and f["size"]
    ]
    return [name for name in names if not _is_whole(os.path.join(folder, name))]


def _is_whole(path: str) -> bool:
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MAX_HEADER:
            return False
        try:
            header = json.loads(file.read(length))
        except ValueError:
            return False
        ends = [int(t["data_offsets"][1]) for n, t in header.items() if n != "__metadata__"]
        return os.fstat(file.fileno()).st_size == 8 + length + max(ends, default=0)


def _config(path: str) -> dict[str, object] | None:
    if not os.path.exists(path):
        return None
    config = json.loads(_read(path))
    inner = config.get("text_config") or {}
    quantization = config.get("quantization_config") or inner.get("quantization_config") or {}
    return {
        "architectures": config.get("architectures"),
        "model_type": config.get("model_type"),
        "max_position_embeddings": config.get(
            "max_position_embeddings", inner.get("max_position_embeddings")
        ),
        "torch_dtype": config.get("torch_dtype", config.get("dtype", inner.get("torch_dtype"))),
        "quantization": quantization.get("quant_method") or quantization.get("quant_algo"),
        "kv_cache_quantization": bool(
            quantization.get("kv_cache_scheme") or quantization.get("kv_cache_quant_algo")
        ),
        "mamba_ssm_dtype": config.get("mamba_ssm_dtype", inner.get("mamba_ssm_dtype")),
        "vocab_size": config.get("vocab_size", inner.get("vocab_size")),
        "num_hidden_layers": config.get("num_hidden_layers", inner.get("num_hidden_layers")),
        "transformers_version": config.get("transformers_version"),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
