# Every target sets up what it needs: a new machine wants Python 3.11 or newer, git and make.
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
ARGS ?=
# Tests wait for disks and processes, so one process more than there are processors.
WORKERS := $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
# Sweeps that are not in tests/faults, and of which `make test` runs a part, too.
SWEEPS := tests/session_actor/hooks/test_kills.py tests/persistence/test_recovery_dying.py \
  tests/persistence/test_files_dying.py \
  tests/session_actor/window/test_validation.py::test_no_odd_value_in_any_single_place_makes_it_raise \
  tests/session_actor/window/test_window_real.py::test_every_prefix_is_asked_for_in_a_small_window \
  tests/session_actor/transfer/test_requests.py::test_prefixes_of_a_real_session_are_asked_for
# The tests start many processes, and each would compile all it imports where compiled files are not written.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-bench faults test-all check format bench clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

# The marker is newer than pyproject.toml when the environment holds what it asks for.
$(VENV)/.ready: pyproject.toml
	@test -x $(BIN)/python || "$${PYTHON:-$$(scripts/pythons first)}" -m venv $(VENV)
	@echo "setting up $(VENV) (once; again when pyproject.toml changes)" >&2
	@$(BIN)/python $(PIP_INSTALL) --upgrade 'pip>=25.1'  # the first one that knows --group
	@PYTHONWARNINGS=ignore $(BIN)/python $(PIP_INSTALL) --editable . --group test  # it warns of being editable
	@touch $@

$(VENV)/.ready-check: $(VENV)/.ready
	@$(BIN)/python $(PIP_INSTALL) --group check
	@touch $@

# The libraries that the benches measure beside: no test needs them.
$(VENV)/.ready-bench: $(VENV)/.ready
	@PYTHONWARNINGS=ignore $(BIN)/python $(PIP_INSTALL) --editable '.[bench]'
	@touch $@

setup: $(VENV)/.ready ## makes .venv with everything that demo and test need

demo: setup ## feeds a transcript, kills the process, recovers, compares; ARGS="PATH --kills 20"
	@$(BIN)/python -m session_actor demo $(ARGS)

test: setup ## the test suite; ARGS="tests/supervisors -k name"
	@$(BIN)/python -m pytest --ignore tests/test_bench.py -n $(WORKERS) --dist worksteal $(ARGS)

test-bench: setup ## every bench in its small size: it prints the agreed lines, whatever their figures
	@$(BIN)/python -m pytest tests/test_bench.py -n $(WORKERS) $(ARGS)

faults: setup ## every case of damage, loss of power and failing disks; ARGS="--faults-seed=N -k name"
	@$(BIN)/python -m pytest tests/faults $(SWEEPS) --faults=full -n $(WORKERS) --maxschedchunk 1 $(ARGS)

test-all: ## the test suite on every Python 3.11 to 3.14 of this machine
	@scripts/test-all $(ARGS)

check: $(VENV)/.ready-check ## lint, format, types (mypy and pyright, strict), the floors
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy examples/*.py
	@$(BIN)/mypy --strict bench
	@$(BIN)/pyright
	@$(BIN)/lint-imports

format: $(VENV)/.ready-check ## formats the code and mends what ruff can mend
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(VENV)/.ready-bench ## every bench, as tables; ARGS="operations --json" for one
	@$(BIN)/python -m bench $(or $(ARGS),all)

clean: ## removes what was built; the environments too
	@rm -rf $(VENV) .venv-* build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
