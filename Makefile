# A fresh checkout needs Python 3.11 or newer, pip, make and git; `make demo` and `make test` do the rest.

PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$each" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$each" && break; done)
# Two more than cores: a test often waits for another process.
JOBS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
BIN := .venv/bin
# All tests of a file run in one process, and in the order of tests/conftest.py.
PYTEST := $(BIN)/pytest -n $(JOBS) --no-loadscope-reorder
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: demo test test-all test-console docs pictures client installed check lint types dev clean setup

demo: .venv/.demo
	$(BIN)/mneme demo

# In memory, where there is room: a ledger's files take three times the time on a disk, which syncs each.
ROOM := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR > 1 && $$4 > 6000000 { print "/dev/shm" }')
test test-all: export PYTEST_DEBUG_TEMPROOT ?= $(ROOM)

# Many an image forbids Python to keep what it compiled, and then each of a test's processes compiles all anew.
test test-all test-console: export PYTHONDONTWRITEBYTECODE =

test: lint types
	$(PYTEST) -m 'not long' --ignore tests/console

# Before a release: also what kills many times, trains whole models, or runs whole evaluations.
test-all: lint types
	$(PYTEST)

# Needs Chromium (apt-get install chromium); without it the tests skip. It also makes the README's pictures.
test-console: setup
	$(BIN)/pytest -n 2 --no-loadscope-reorder tests/console -m console

# Into build/site. A link that leads nowhere, a page that no list has, or what nobody described fails.
docs: export NO_MKDOCS_2_WARNING = 1
docs: setup
	$(BIN)/mkdocs build --strict
	MNEME_TEST_SITE=build/site $(BIN)/pytest -q tests/test_site.py -k 'not strict'

# Needs Chromium, and Mermaid (docs/generate/pictures/diagram.py). The plots are of the tables in docs/measurements.md, the recording is of what `mneme demo` prints.
pictures: setup
	for each in diagram plots recording; do $(BIN)/python docs/generate/pictures/$$each.py || exit 1; done

# Needs Node 20 and npm.
client: setup
	$(BIN)/python docs/generate/openapi.py >clients/typescript/openapi.json
	cd clients/typescript && npm ci --silent && npm run --silent build
	$(BIN)/pytest -q tests/mneme/test_typescript.py

# Needs Node 20 and npm. The result is committed, so that nobody who installs Mneme needs them.
console: setup
	$(BIN)/python docs/generate/openapi.py >clients/console/openapi.json
	cd clients/console && npm ci --silent && npm run --silent build

installed:
	PYTHON=$(PYTHON) .ci/installed

check: lint types

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy --num-workers auto

# Without the option one run at a time is served; without the variable, each start is reported to LangChain.
dev: setup
	LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev --no-browser --n-jobs-per-worker 64

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: .venv/.dev

# Each mark is younger than what it was made from, or it is made again.
.venv/.dev: .venv/.made pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	PIP_CONSTRAINT=constraints.txt $(BIN)/mneme embedder install
	@touch $@

.venv/.demo: .venv/.made pyproject.toml constraints.txt
	$(PIP) --no-compile --editable .
	PIP_CONSTRAINT=constraints.txt $(BIN)/mneme embedder install
	@touch $@

.venv/.made:
	@test -n "$(PYTHON)" || { echo "Mneme needs Python 3.11 or newer, with its venv module:" \
		"install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@
