# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
SGLANG := .sglang-cpu
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo rehearse test check bench install models fix clean

install: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml src/sglsweep/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sglsweep needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -e '.[dev]'
	@touch $@

$(SGLANG)/.sglang-cpu-0.5.23: tools/sglang-cpu/install.sh tools/sglang-cpu/requirements.txt
	PYTHON=$(PYTHON) tools/sglang-cpu/install.sh $(SGLANG)

# Tiny GPT-2 models, healthy and broken on purpose, for the demo and the tests against real SGLang.
models: $(SGLANG)/.sglang-cpu-0.5.23
	$(SGLANG)/bin/python tools/sglang-cpu/make_gpt2.py models/gpt2-ok ok models/gpt2-nan nan \
	  models/gpt2-truncated truncated models/gpt2-large large

demo: install models
	$(BIN)/sglsweep sweep configs/demo-cpu.yaml --out runs/demo
	@echo "findings: runs/demo/FINDINGS.md"

# The lead case on any laptop: no GPU, no SGLang, about half a minute.
rehearse: install
	$(BIN)/sglsweep sweep configs/rehearsal.yaml --out runs/rehearsal

test: install models
	tools/test-packages.sh
	$(MAKE) --no-print-directory check

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist loadfile

fix: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install models
	$(BIN)/pip install --quiet -e '.[bench]'
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/triage.py
	$(BIN)/python bench/slots.py
	$(BIN)/python bench/ask_first.py
	$(BIN)/python bench/proof.py
	$(BIN)/python bench/planner/measure.py

clean:
	rm -rf $(VENV) $(SGLANG) models runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
