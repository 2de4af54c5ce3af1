# `make test` and `make demo` each do all set-up by themselves on a Debian or Ubuntu with git, make and Python >= 3.11.
SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
# Stamps of the two sizes of set-up: to run topicshark, and to test it.
RUNS  := $(VENV)/.ready-to-run
TESTS := $(VENV)/.ready-to-test

# Those of the packages that are there, and everything Python that is checked.
PACKAGES := $(patsubst %/__init__.py,%,$(wildcard $(addsuffix /__init__.py,pcap_tools reference_broker generators \
              spark_analysis topicshark)))
PYTHON_CODE := $(PACKAGES) $(wildcard tests benchmarks fuzzing notebooks scripts)
LUA_CODE := $(shell find . -name '*.lua' -not -path './.*' -not -path './build/*')

.PHONY: help setup test long lint bench accuracy fuzz soak demo notebook release clean
.DEFAULT_GOAL := help

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(RUNS): pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh run $(CURDIR)/$(VENV)
	@touch $@

$(TESTS): $(RUNS)
	@scripts/setup.sh test $(CURDIR)/$(VENV)
	@touch $@

setup: $(RUNS) ## Java and the virtual environment (.venv), all that `topicshark` needs; again costs nothing

test: $(TESTS) lint ## set-up, lint and all tests
	$(BIN)/pytest -n 2 --dist loadgroup -m "not long"

long: $(TESTS) ## the tests that `make test` leaves out, as they take minutes each
	$(BIN)/pytest -m long

lint: $(TESTS) ## ruff, mypy --strict, import contracts, how files and folders are cut, luacheck
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/mypy --strict $(PYTHON_CODE)
	@for package in $(PACKAGES); do \
	    grep -q "^root_packages = .*\"$$package\"" pyproject.toml || \
	    { echo "pyproject.toml: add \"$$package\" to root_packages of [tool.importlinter]" >&2; exit 1; }; \
	done
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.house --check
ifneq ($(LUA_CODE),)
	@if command -v luacheck >/dev/null; then luacheck $(LUA_CODE); \
	else echo "luacheck is missing, the Lua code was NOT checked (sudo apt-get install lua-check)" >&2; fi
endif

bench: $(TESTS) ## benchmarks beside the tools one would use instead (minutes)
	$(BIN)/python -m benchmarks.decode
	$(BIN)/python -m benchmarks.dissector
	$(BIN)/python -m benchmarks.broker
	$(BIN)/python -m benchmarks.bulk
	$(BIN)/python -m benchmarks.kernel
	$(BIN)/python -m benchmarks.tiers
	$(BIN)/python -m benchmarks.parquet
	$(BIN)/python -m benchmarks.rates
	$(BIN)/python -m benchmarks.checking
	$(BIN)/python -m benchmarks.steps
	$(BIN)/python -m benchmarks.memory

accuracy: $(TESTS) ## what the checker finds of every fault on 20 dialects, and what it says where there are none (15 min)
	$(BIN)/python -m benchmarks.accuracy
	TOPICSHARK_CAPTURES=200 $(BIN)/pytest -q tests/spark_analysis/checker/test_check_engines.py

fuzz: $(TESTS) ## datagrams by the ten million through all decoders, captures by 100,000, brokers, simulations (hours)
	$(BIN)/python -m fuzzing.decoders.differential --codec-columnar 1e7 --walk 1e6 --layers 1e6 --lua 1e6 --tshark 1e5 --dialects 1000
	$(BIN)/python -m fuzzing.captures.run --count 1e5
	$(BIN)/python -m fuzzing.simulations.run --seeds 10000 --jobs 2
	TOPICSHARK_FUZZ=1000000 $(BIN)/pytest -n 2 -k fuzz --timeout 3600
	TOPICSHARK_EDITCAP_PASSES=200 $(BIN)/pytest -n 2 tests/dissector/test_stability.py --timeout 3600
	TOPICSHARK_MANY=1000 $(BIN)/pytest tests/spark_analysis/engine/test_spark_faults.py --timeout 3600

soak: $(TESTS) ## an hour of broker, faulty clients, rotating capture, stream and checker together (needs root)
	$(BIN)/python -m fuzzing.soak --minutes 60 --output build/soak-$$(date +%Y%m%d-%H%M%S)

demo: setup ## set-up, then the main job end to end on generated traffic
	$(BIN)/topicshark demo

notebook: setup ## the notebooks in JupyterLab
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[notebook]'
	$(BIN)/jupyter lab notebooks

release: $(TESTS) ## sdist and wheel, tried in empty environments; scripts/release.sh tag also tags
	scripts/release.sh check

clean: ## remove the virtual environment and everything generated
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
