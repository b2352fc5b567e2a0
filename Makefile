# Everything here needs only make and a Python with venv: each target makes its
# own virtual environment, installs what it needs there, and does neither twice.
#
#   make PYTHON=python3.12 test          another interpreter
#   make test ARGS="-k walk -x"          more arguments for pytest
#   make bench ARGS="mnist labels"       or for the benchmarks
#   make reproduce ARGS="--quick"        or for the paper's tables and figures
#   make docs ARGS="-D plot_gallery=0"   or for Sphinx: pages without running examples

PYTHON ?= python3
ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1

minimum := $(shell sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
version := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
new_enough := $(shell $(PYTHON) -c 'import sys; print(sys.version_info[:2] >= tuple(map(int, "$(minimum)".split("."))))' 2>/dev/null)

python := .venv/bin/python
python_oldest := .venv-oldest/bin/python
pip_install := -m pip install -qq

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo torch locked lock audit test test-quick test-oldest fuzz bench bench-quick reproduce docs package \
	lint format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: .venv/.for-demo ## run the demonstration
	$(python) examples/demo.py

torch: .venv/.for-test ## install PyTorch, so that the GPU path is tested too
	@$(python) $(pip_install) "torch==2.13.0"

locked: .venv/.python$(version) ## install what the tests need in the versions of tools/test.lock, by their hashes
	@$(python) $(pip_install) --require-hashes --only-binary :all: --requirement tools/test.lock

lock: .venv/.python$(version) ## write tools/test.lock anew: the newest versions that fit, with their hashes
	@$(python) $(pip_install) "uv>=0.8"
	$(python) -m uv pip compile -q pyproject.toml --group test --universal --python-version $(minimum) --upgrade \
		--generate-hashes --no-annotate --no-header --output-file tools/test.lock

audit: .venv/.python$(version) ## ask whether anything in tools/test.lock has a known weakness
	@$(python) $(pip_install) "pip-audit>=2.9"
	$(python) -m pip_audit --requirement tools/test.lock --require-hashes --disable-pip

test: .venv/.for-test ## run every test
	$(python) -m pytest $(ARGS)

test-quick: .venv/.for-test ## run the tests that are not marked slow
	$(python) -m pytest -m "not slow" $(ARGS)

test-oldest: .venv-oldest/.for-test ## run the tests with the oldest dependencies allowed
	$(python_oldest) -m pytest -m "not slow" $(ARGS)

# Each ends with one line; the last figures are in fuzz/results.md.
fuzz: .venv/.for-test ## search for faults at length: hours
	@set -e; for script in $(filter-out fuzz/oracle.py fuzz/run.py,$(sort $(wildcard fuzz/*.py))); do \
		echo "$$script"; $(python) $$script $(ARGS); done

bench: .venv/.for-bench ## measure time, memory and error beside the peers
	$(python) benchmarks/run.py $(ARGS)

bench-quick: .venv/.for-bench ## the same at small sizes, in under three minutes
	$(python) benchmarks/run.py --quick $(ARGS)

reproduce: .venv/.for-reproduce ## make every table and figure of the paper
	$(python) -m manifoldknn reproduce $(ARGS)

docs: .venv/.for-docs ## build the site into build/docs/html and run every example in it
	$(python) -m sphinx -b html --fail-on-warning --keep-going -d build/docs/tree $(ARGS) docs build/docs/html

package: .venv/.for-package ## build wheel and source archive, and try both in environments of their own
	rm -rf dist build/package
	$(python) -m build --outdir dist
	$(python) -m twine check --strict dist/*
	@for archive in dist/*.whl dist/*.tar.gz; do \
		rm -rf build/package && $(python) -m venv build/package && \
		build/package/bin/python $(pip_install) "$$archive" && \
		cp examples/flowers.csv build/package && cd build/package && \
		bin/manifoldknn classify flowers.csv --label species --id id --quiet --out labelled.csv && cd ../.. || exit 1; \
	done

lint: .venv/.for-lint ## check style, formatting, types and who imports whom
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	$(python) -c "from importlinter.cli import lint_imports_command as lint; lint()" --no-cache --no-logo

format: .venv/.for-lint ## put style and formatting right where that is safe
	$(python) -m ruff check --fix-only .
	$(python) -m ruff format .

clean: ## remove the environments, caches and build products
	rm -rf .venv .venv-oldest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	rm -rf docs/gallery docs/tutorials docs/reference/generated docs/changelog.rst
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Below: the environments. A stamp file says that something is installed; it is
# older than pyproject.toml when that is no longer so. The first stamp bears the
# version of Python, so that another PYTHON gets a new environment.

.venv/.python$(version) .venv-oldest/.python$(version):
	$(if $(version),,$(error '$(PYTHON)' does not run: install Python $(minimum) or newer, or name one with 'make PYTHON=...'))
	$(if $(filter True,$(new_enough)),,$(error Python $(minimum) or newer is needed and '$(PYTHON)' is $(version): name another with 'make PYTHON=...'))
	@echo "Making $(@D) with Python $(version)"
	@test -d $(@D)/lib/python$(version) || rm -rf $(@D)
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(pip_install) --upgrade "pip>=25.1"
	@touch $@

.venv/.for-demo: pyproject.toml .venv/.python$(version)
	@echo "Installing manifoldknn and what the demonstration needs into $(@D)"
	@$(python) $(pip_install) --editable ".[plots]"
	@touch $@

.venv/.for-test: pyproject.toml .venv/.python$(version)
	@echo "Installing manifoldknn and what the tests need into $(@D)"
	@$(python) $(pip_install) --editable . --group test
	@touch $@

.venv/.for-bench: pyproject.toml .venv/.python$(version)
	@echo "Installing manifoldknn and its peers for the benchmarks into $(@D)"
	@$(python) $(pip_install) --editable . --group bench
	@touch $@

# GraphLearning gives extra columns; where it cannot be installed they are left out.
.venv/.for-reproduce: pyproject.toml .venv/.python$(version)
	@echo "Installing manifoldknn and what the paper's experiments need into $(@D)"
	@$(python) $(pip_install) --editable ".[plots]"
	@$(python) $(pip_install) "graphlearning>=1.7" || echo "GraphLearning is left out"
	@touch $@

.venv/.for-docs: pyproject.toml .venv/.python$(version)
	@echo "Installing manifoldknn and what the site needs into $(@D)"
	@$(python) $(pip_install) --editable . --group docs
	@touch $@

.venv/.for-package: pyproject.toml .venv/.python$(version)
	@echo "Installing what builds and checks packages into $(@D)"
	@$(python) $(pip_install) --group package
	@touch $@

.venv/.for-lint: pyproject.toml .venv/.python$(version)
	@echo "Installing manifoldknn and what the checks need into $(@D)"
	@$(python) $(pip_install) --editable . --group lint
	@touch $@

# Wheels only: an old release that has none for this Python fails at once,
# rather than after a long attempt at building it.
.venv-oldest/.for-test: pyproject.toml tools/oldest.py .venv-oldest/.python$(version)
	@echo "Installing manifoldknn, its oldest dependencies and what the tests need into $(@D)"
	@$(python_oldest) tools/oldest.py pyproject.toml > $(@D)/oldest.txt
	@$(python_oldest) $(pip_install) --only-binary :all: --constraint $(@D)/oldest.txt --editable . --group test
	@touch $@
