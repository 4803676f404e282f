#!/usr/bin/env bash
# Install real SGLang 0.5.23 for a machine without a GPU into VENV (about 80 s and 2.6 GB, once).
#
#   tools/sglang-cpu/install.sh VENV
#
# Does nothing if VENV already holds it. PYTHON names the interpreter (default python3); on a machine whose package
# index offers only CUDA builds of torch, PIP_EXTRA_INDEX_URL may name PyTorch's index of CPU builds to save space.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:?usage: install.sh VENV}
want=0.5.23
stamp="$venv/.sglang-cpu-$want"
[ -e "$stamp" ] && exit 0
echo "installing SGLang $want for CPU into $venv (once, about 2.6 GB)" >&2
rm -rf "$venv"
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "sglang==$want" torchvision==0.28.0
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cp "$here/torchvision_on_cpu.py" "$site/"
echo "import torchvision_on_cpu" > "$site/torchvision_on_cpu.pth"
"$venv/bin/python" -c 'import torchvision, sglang; assert sglang.__version__ == "'"$want"'", sglang.__version__'
touch "$stamp"
