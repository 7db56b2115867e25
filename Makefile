# Everything a contributor types. `make` alone lists it.
.DEFAULT_GOAL := help
.PHONY: help setup demo test long browser lint types imports check cover bench samples wheel clean

BIN := .venv/bin

PYTEST := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
# With ARGS one half of the tests may have none to run.
OR_NONE = $(if $(ARGS),|| [ $$? = 5 ])

# Where it is set (images of containers do), every process of a test compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

# demo: SCENARIO=name RANKS=4 OUT=folder    test: COVER=1 ARGS="-k walk"    bench: NAME=name
RANKS ?= 4

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv with all that is needed (does nothing when it is up to date)
	@tools/setup.sh

demo: setup ## Run a real job with a real fault and show it live (SCENARIO=, RANKS=4, OUT=, HEADLESS=1)
	@echo "demo: a training job of $(RANKS) ranks that meets a fault; its page opens, its report follows"
	@$(BIN)/cascade demo $(if $(HEADLESS),--headless) --ranks $(RANKS) \
		$(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(OUT),--out $(OUT))

test: setup ## Run the tests (COVER=1: with branch coverage; ARGS="-k walk": some of them)
	@echo "test: pytest, two workers$(if $(COVER), and branch coverage); first all that needs no browser"
	@$(PYTEST) -m "not browser and not long" $(if $(COVER),--cov --cov-report= --cov-fail-under=0) $(ARGS) $(OR_NONE)
	@$(MAKE) --no-print-directory browser

browser: setup ## Those of the tests that drive pages in Chromium, on samples and on a live job (ARGS=)
	@echo "browser: Playwright over the real servers"
	@$(PYTEST) -m browser $(if $(COVER),--cov --cov-append) $(ARGS) $(OR_NONE)

long: setup ## Those of the tests that make test leaves out: whole matrices of faults, short benchmarks (ARGS=)
	@echo "long: further cases of what make test runs a part of"
	@$(PYTEST) -m long $(if $(COVER),--cov --cov-append) $(ARGS) $(OR_NONE)

lint: setup ## Check style and formatting (ruff)
	@echo "lint: ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup ## Check types (mypy, strict)
	@echo "types: mypy, strict"
	@$(BIN)/mypy

imports: setup ## Check which package imports which (import-linter)
	@echo "imports: import-linter"
	@$(BIN)/lint-imports --no-logo

check: lint types imports test ## All of the above: what a change must pass

cover: ## Run the tests and show the lines and branches that they miss
	@$(MAKE) --no-print-directory test COVER=1
	@$(MAKE) --no-print-directory long COVER=1

bench: setup ## List the benchmarks; NAME=name runs one
ifdef NAME
	@$(BIN)/python -m benchmarks $(NAME) $(ARGS)
else
	@$(BIN)/python -m benchmarks
endif

samples: setup ## Make sample_traces/ anew from real runs (NAME=rejoin: one of them)
	@echo "samples: playing scenarios and keeping their traces in sample_traces/"
	@$(BIN)/python tools/make_samples.py $(NAME)
	@$(if $(NAME),,$(BIN)/python tools/make_broken_samples.py)

wheel: setup ## Build the wheel into dist/ and check what is in it
	@echo "wheel: building into dist/"
	@rm -rf dist
	@$(BIN)/python -m build --wheel --outdir dist . >/dev/null
	@$(BIN)/check-wheel-contents dist/*.whl

clean: ## Remove what building and checking made; .venv stays
	@echo "clean: removing build outputs and caches"
	@rm -rf build dist out htmlcov .coverage .coverage.* \
		.hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -not -path './.venv/*' -type d -prune -exec rm -rf {} +
