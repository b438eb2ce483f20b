# make lab   makes .venv, installs everything into it, and opens JupyterLab on notebooks/
# make test  the same environment, then every check
# make env   only the environment
# make test-all   the tests without the notebooks, with four times as many random cases and every combination

PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1 \
	&& { echo "$$python"; break; }; done)
BIN := .venv/bin
INSTALLED := .venv/installed
COMPILED := .venv/compiled
# two processes at a time, of searches long enough to come to every kernel: first those that several methods call
SEARCH := import planner; graph = planner.capture(planner.zoo.load("mlp:layers=3")); device = planner.machine("v100-16gb"); \
	search = lambda method: planner.search_swaps(graph, device, "60%", method=method, time_limit=None, evaluations=2000).wait();
COMPILE_SHARED := $(SEARCH) search("on-demand"); search("calendar"); \
	planner.swap.lower_bound(graph, device, 20_000_000, planner.machine.op_seconds(graph, device)); \
	planner.memory.pack([k * 5 % 13 for k in range(12)], [k * 5 % 13 + 1 + k * 5 % 7 for k in range(12)], \
	[1 + k * 25 % 9 for k in range(12)])
COMPILE_PARTITION := import planner; graph = planner.capture(planner.zoo.load("rnn"), progress=False); \
	planner.partition.optimize(planner.partition.coarsen(graph), 8); \
	planner.snapshot.check_plain(b"\x80\x04}."); \
	from planner.run.workers.communication import shared_memory; shared_memory.load_exchange()
COMPILE_SWAP := $(SEARCH) search("swap")
COMPILE_JOINT := $(SEARCH) search("joint"); search("swapadvisor")
# both, and whether both have worked
TOGETHER = $(BIN)/python -c '$(1)' & $(BIN)/python -c '$(2)'; second=$$?; wait $$! && exit $$second

# where this is set, every process would translate the sources of PyTorch anew, which takes longer than most tests
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lab test test-all env lint

lab: env
	$(BIN)/jupyter lab notebooks $(if $(filter 0,$(shell id -u)),--allow-root) # in a container one often is root

test:
	@$(MAKE) --no-print-directory --jobs=2 env lint # mypy beside compiling
	$(BIN)/pytest -n 4 --dist worksteal --nbmake --nbmake-timeout=200 --durations=20 notebooks tests # pages and peers wait: four keep two cores busy

test-all: env
	STOWAGE_EFFORT=4 $(BIN)/pytest -n 4 --dist worksteal tests

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

env: $(COMPILED)
	@command -v dot >/dev/null || echo "The program 'dot' is missing, which widgets.dataflow needs: install graphviz (apt install graphviz, brew install graphviz)."

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Stowage needs Python 3.11, 3.12 or 3.13 and found none: install one (apt install python3.11 python3.11-venv) and run make again."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python cannot make environments: install its venv module (apt install python3-venv) and run make again."; exit 1; }
	@echo "Making .venv and installing the packages, which takes about a minute."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable ".[test]" \
	|| { echo "The packages could not be installed: check the network and the message above, then run make again."; exit 1; }
	@touch $(INSTALLED)

$(COMPILED): $(INSTALLED)
	@echo "Compiling the planner, which takes another minute; otherwise the first plan would wait for it."
	@$(call TOGETHER,$(COMPILE_SHARED),$(COMPILE_PARTITION))
	@$(call TOGETHER,$(COMPILE_SWAP),$(COMPILE_JOINT))
	@touch $(COMPILED)
