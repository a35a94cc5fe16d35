# Every target sets up .venv by itself; `make help` prints this list.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
USABLE := $(VENV)/.usable
DATA   ?= ../shared/data
ENVIRONMENTS ?= .environments
PART ?= all
EVIDENCE ?= benchmarks/results/audit.jsonl
export PYTHONWARNINGS ?= default
unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes: each would compile the package again
# Two processes, a file in one of them; in the order of the folders, so that the small files come last.
PAIR   := -n 2 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup demo picture test check fmt unit statistical e2e coverage audit crash signatures bench scale outside peers papers docs site release-check reseal digests clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(STAMP) ## make .venv from pyproject.toml and constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; try make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fast,postgres,dev]'
	@touch $@

$(USABLE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; try make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test $(STAMP) -nt pyproject.toml -a $(STAMP) -nt constraints.txt || \
	  PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e .
	@touch $@

demo: $(USABLE) ## release an example table end to end: plan, pay, release, verify, evaluate; installs no developer tools
	$(BIN)/adumbra demo --out demo-out

picture: demo ## the README's picture: the demo's card in Chromium
	$(BIN)/python tools/picture.py demo-out/release/card.html docs/figures/card.png

test: setup ## unit, property, docs, e2e, small statistical and audit grids (below 8 minutes)
	$(BIN)/python -m pytest tests $(PAIR)

check: setup ## ruff, mypy --strict, import contracts, sealed proofs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/seal.py

coverage: setup ## every line and branch of privacy, statistics and mechanisms
	$(BIN)/python -m pytest tests $(PAIR) --cov --cov-report=
	$(BIN)/coverage report --skip-covered --show-missing --fail-under=100 --include='src/adumbra/privacy/*,src/adumbra/statistics/*,src/adumbra/mechanisms/*'

fmt: setup ## format and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

unit: setup ## unit and property tests alone, in two processes
	$(BIN)/python -m pytest tests/unit tests/property $(PAIR)

statistical: setup ## the whole statistical grids
	ADUMBRA_FULL=1 $(BIN)/python -m pytest tests/statistical

e2e: setup ## command line on real files
	$(BIN)/python -m pytest tests/e2e

AUDIT_all := tests/audit tests/statistical
AUDIT_statistical := tests/statistical
AUDIT_replay := $(wildcard tests/audit/test_*_replay.py)
AUDIT_claims := $(wildcard tests/audit/test_*_attack.py)
AUDIT_mutants := tests/audit/test_auditor_mutants.py tests/audit/test_auditor_alarms.py
AUDIT_recorder := tests/audit/test_auditor_recorder.py
AUDIT_branches := tests/audit/test_auditor_branches.py
WHOLE := ADUMBRA_FULL=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --evidence $(EVIDENCE) $(if $(K),-k "$(K)")

audit: setup ## the whole audit grids, in two processes; PART=replay|claims|mutants|recorder|branches|statistical and K=words run a part, and what passed at this commit is not run again
	$(WHOLE) $(AUDIT_$(PART)) -n 2 --dist worksteal

crash: setup ## kill -9 at every fault point, the whole grid, on every database at hand; 200 workers of a cluster
	$(WHOLE) tests/e2e tests/property -k "ledger"
	$(WHOLE) tests/e2e/test_dask.py

signatures: setup ## 10,000 forgeries, 1,000 roll-backs and forks, every right with every act, a log of 10^6 events
	ADUMBRA_FULL=1 $(BIN)/python -m pytest tests/property/test_forgeries.py tests/e2e/test_witnessed_log.py tests/e2e/test_signed_release.py tests/unit/privacy/ledger/test_operators.py
	$(BIN)/python benchmarks/log_proof.py

bench: setup ## speed as ratios, against a reference timed in the same run
	$(BIN)/python benchmarks/run.py

scale: setup ## whole releases beside bare references, growth, memory, a cluster (hours); writes docs/explanation/performance.md
	$(BIN)/python benchmarks/scale.py all

outside: setup ## releases of NIST's tables before NIST's judge and SDMetrics; writes docs/benchmarks/outside.md
	$(BIN)/python benchmarks/outside.py --data $(DATA)/nist_crc --environments $(ENVIRONMENTS)

peers: setup ## every peer in an environment of its own, same tables, budget and judges (hours); what changed
	$(BIN)/python benchmarks/throughput.py --environments $(ENVIRONMENTS)
	$(BIN)/python benchmarks/coming_from.py --environments $(ENVIRONMENTS)
	$(BIN)/python benchmarks/peers.py --data $(DATA) --environments $(ENVIRONMENTS)

papers: setup ## every table and figure of the five papers that data allow; writes docs/benchmarks/papers.md
	$(BIN)/python benchmarks/papers.py all --data $(DATA) --page

docs: setup ## run every snippet and check every link
	$(BIN)/python -m pytest tests/docs

site: setup ## the documentation as a site without a network, built strictly, in dist/site
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	$(BIN)/python tools/build_site.py dist/site

release-check: setup ## build sdist and wheel, look inside, install the wheel alone and run its demo
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	$(BIN)/python tools/release_check.py dist

reseal: setup ## after re-reading a proof: write its new seal
	$(BIN)/python tools/seal.py --write $(PROOF)

digests: setup ## after a meant change of released values: write their digests under the test key
	$(BIN)/python tools/digests.py --write

clean: ## remove what make made
	rm -rf $(VENV) demo-out dist try .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
