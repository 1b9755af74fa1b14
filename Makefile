# Two commands do everything on a fresh machine, set-up included: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COURSE_ANSWERS := tests/coursework/test_course_answers.py
CHECKER := find derive docs/derivations.md constraints.txt $(COURSE_ANSWERS) tests/coursework/derivations -type f -not -path '*/__pycache__/*' -not -path '*/.*'
CHECKED := $(VENV)/.derive-tested-$(shell $(CHECKER) | LC_ALL=C sort | xargs cksum | cksum | cut -d ' ' -f 1)

.PHONY: demo test test-derive test-all test-page lint docs bench results clean

demo: $(READY)
	$(BIN)/python scripts/demo.py

test: $(READY) $(CHECKED)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" tests

# The checker's tests passed with the files whose checksum is in the name. `make test` runs them again when that is another.
$(CHECKED): | $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" derive
	$(BIN)/python -m pytest -q -n 2 $(COURSE_ANSWERS)
	touch $@

test-derive: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" derive
	touch $(CHECKED)

test-all: $(READY)
	LMLAB_THOROUGH=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal derive
	LMLAB_THOROUGH=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal tests

# Pages in a real browser: Debian's chromium (or one that is there), playwright and axe.
test-page: $(READY)
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ./derive -e ".[page]"
	$(BIN)/python -m pytest -q tests/page

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, under site/: `python -m http.server -d site` shows it. A dead link or anchor is an error.
docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ./derive -e ".[docs]"
	$(BIN)/python scripts/make_site.py

bench: $(READY)
	$(BIN)/python bench/run_all.py --write

# docs/results.md, its charts, and the marked numbers in prose, from the newest records.
results: $(READY)
	$(BIN)/python bench/make_results.py

$(READY): pyproject.toml derive/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ./derive -e ".[test]"
	touch $@

clean:
	rm -rf $(VENV) runs build site .pytest_cache .ruff_cache .mypy_cache
