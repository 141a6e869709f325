# Everything is made from Python >= 3.10 (with venv), Java >= 17 and this file. The environment stands in .venv;
# what is downloaded besides Python packages is kept in ~/.cache/spark-elastic (or $SPARK_ELASTIC_CACHE).

PYTHON ?= python3
# The Spark in .venv: the first of the list, or make SPARK=X.Y.Z in a checkout without .venv.
SPARK ?= $(shell awk '!/^\#/ && NF { sub(/,.*/, "", $$3); print $$3; exit }' spark-versions.txt)
# Only if it was typed. A minor version such as 4.2 stands for its newest release.
ONLY := $(if $(filter file default,$(origin SPARK)),,$(SPARK))
override SPARK := $(shell awk -v asked='$(firstword $(subst _, ,$(SPARK)))' '!/^\#/ && index($$3, asked ".") == 1 { sub(/,.*/, "", $$3); print $$3; found = 1; exit } \
  END { if (!found) print asked }' spark-versions.txt)
# Tests run in so many processes, each file in one of them: most of them wait more than they work.
WORKERS ?= 2
BIN := .venv/bin
# Folders with Python code of our own; a folder appears when something lives in it.
CODE := $(wildcard python tests integration jvm-shim .ci)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help machine venv jar jars class-archives wheel maven release-check sign test test-unit test-integration test-kubernetes test-matrix test-suites lint format docs pictures manifests demo bench-rescale bench-flink bench-core bench-rest bench-planning bench-batch bench-nexmark bench-simulate bench-autoscale bench-advise chaos differential clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

machine: ## check that this machine has what is needed
	@command -v $(PYTHON) >/dev/null || { echo "spark-elastic: no $(PYTHON) on PATH: install Python 3.10 or later"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "spark-elastic: $(PYTHON) is older than 3.10: install a newer one and type make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "spark-elastic: $(PYTHON) has no venv: install it (Debian: apt-get install python3-venv)"; exit 1; }
	@$(PYTHON) python/spark_elastic_tools/java.py

venv: .venv/installed ## make .venv with the package (editable) and all that tests and lint need

.venv/installed: pyproject.toml spark-versions.txt | machine
	@echo "spark-elastic: installing PySpark $(SPARK) and the packages for tests, lint and docs into .venv;" \
	  "the first time they are fetched (600 MB), and it takes 2 to 5 minutes"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pyspark==$(SPARK)' -e '.[cli,demo,dev,docs]'
	touch $@

jar: venv machine ## build the shim's jar for the Spark in .venv
	@$(BIN)/python jvm-shim/build_jar.py

jars: venv machine ## build the shim's jars for all supported Spark versions
	@$(BIN)/python jvm-shim/build_jar.py --all

wheel: venv machine ## build dist/*.whl, with the jars inside (SPARK=4.2: only the one for that Spark)
	@$(BIN)/python jvm-shim/build_jar.py $(if $(ONLY),--spark $(ONLY),--all)
	rm -rf dist
	SPARK_ELASTIC_ONLY=$(ONLY) $(BIN)/python -m hatchling build -t wheel

maven: venv machine ## write dist/maven, a Maven repository whose jars carry the policy engine (for spark-submit --packages)
	@$(BIN)/python jvm-shim/maven_repository.py

release-check: jars ## build wheel, source distribution and Maven repository, and tell whether they can be released (needs pip's index)
	@echo "spark-elastic: installing what checks releases, some seconds; the checks build everything twice, some minutes"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[release]'
	$(BIN)/python .ci/release_check.py

sign: ## sign what release-check has built, with GnuPG and KEY=FINGERPRINT
	$(BIN)/python .ci/sign_release.py $(KEY)

class-archives: jar
	@$(BIN)/python -m integration.make_class_archive

test: class-archives ## run all tests but the slow ones
	$(BIN)/pytest -m "not slow and not matrix" -n $(WORKERS) --dist loadfile

test-unit: venv ## run the quick tests that need no Java, in less than a minute
	$(BIN)/pytest tests -m "not slow and not long and not integration" -n $(WORKERS) --dist loadfile

test-integration: class-archives ## run all tests on real clusters, the slow ones too
	$(BIN)/pytest integration

test-kubernetes: jar ## run the tests on a real Kubernetes of this machine's own processes (Linux, root; the first time its programs are built, 10 min and more; TESTS=client_mode: one file)
	$(BIN)/python -m integration.kubernetes
	$(BIN)/pytest $(if $(TESTS),integration/kubernetes/test_$(TESTS).py,integration/kubernetes)

test-matrix: venv machine ## run the core tests on the other Spark versions (SPARKS="4.0 3.5_2.13": these, SPARK is the one in .venv; QUICK=1: few tests)
	$(BIN)/python -m integration.matrix $(foreach spark,$(SPARKS),--spark $(spark)) $(if $(QUICK),--quick)

test-suites: jar ## run Spark's own test suites with the plugin on (SUITES=--all: more, 15 min; SWEEP=60: so many minutes of all that run queries, from where an earlier sweep ended)
	PYTHONPATH=jvm-shim $(BIN)/python -m integration.spark_suites$(if $(SWEEP),.sweep --minutes $(SWEEP)) $(SUITES)

lint: venv machine docs ## check style, types, imports, the layout of Scala, the docs and their words
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy $(filter-out .ci,$(CODE)) .ci/import_rules.py .ci/dashboard.py .ci/generated_docs.py .ci/promises.py .ci/words.py .ci/site_files.py .ci/release_check.py .ci/sign_release.py
	PYTHONPATH=.ci $(BIN)/lint-imports --no-cache
	$(BIN)/python jvm-shim/scalafmt.py
	$(BIN)/python .ci/generated_docs.py --check
	$(BIN)/python .ci/words.py

format: venv machine ## lay out Python and Scala as lint wants it
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	$(BIN)/python jvm-shim/scalafmt.py --write
	$(BIN)/python .ci/generated_docs.py

docs: venv ## build the site of docs/ into target/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: jar ## make the docs' pictures anew: a simulated day, and the Elastic tab from a real run (needs Chromium)
	$(BIN)/spark-elastic simulate --load counts=two-peaks:scale=20 --conf spark.elastic.query.counts.upperBound=64 \
	  --policy autoscale --svg target/pictures
	cp target/pictures/autoscale.svg docs/images/simulated.svg
	SPARK_ELASTIC_PICTURES=docs/images $(BIN)/pytest integration/browser/test_page.py

manifests: venv ## render conf/kubernetes/manifests from the chart (needs Go, from which Helm is built once)
	$(BIN)/python -m integration.chart.manifests

demo: jar ## watch an application follow a cluster (KEEP=1: leave it running; SOURCE=kafka; MODE=adaptive or autoscale)
	$(BIN)/spark-elastic demo $(if $(SOURCE),--source $(SOURCE)) $(if $(MODE),--mode $(MODE)) $(if $(KEEP),--keep) \
	  $(if $(filter kafka,$(SOURCE)),$$($(BIN)/python -m integration.kafka.token_provider))

bench-rescale: jar ## measure how long rescales take (BENCH=--quick: few rounds)
	$(BIN)/python -m integration.bench.rescale $(BENCH)

bench-flink: jar ## compare rescales with those of Flink in reactive mode, hours (BENCH=--quick: small states, one round, 10 min; BENCH="--sizes 50 --rounds 3": these)
	$(BIN)/python -m integration.bench.flink $(BENCH)

bench-core: venv ## measure the scheduler alone, on one core (BENCH=--quick: seconds)
	$(BIN)/python -m integration.bench.core $(BENCH)

bench-simulate: venv ## compare policies on simulated days, ours and others' (BENCH=--quick: seconds; --held-back: other loads)
	$(BIN)/python -m integration.bench.simulate $(BENCH)

bench-autoscale: jar ## hold the simulator against a real cluster, 12 min (BENCH=--quick: half the time)
	$(BIN)/python -m integration.bench.autoscale $(BENCH)

bench-advise: jar ## compare what `advise` says about runs of plain Spark with the plugin's runs, 15 min (BENCH=--quick: a third)
	$(BIN)/python -m integration.bench.advise $(BENCH)

bench-rest: jar ## measure what reads of the REST API cost a running query (BENCH=--quick: few rounds)
	$(BIN)/python -m integration.bench.rest_load $(BENCH)

bench-planning: jar ## measure what the plugin adds to planning (BENCH=--quick: smaller plans)
	$(BIN)/python -m integration.bench.planning $(BENCH)

bench-batch: jar ## measure TPC-H with the plugin and without (SUITE=tpcds: TPC-DS, hours; SF=1: scale; BENCH=--quick: few queries)
	$(BIN)/python -m integration.bench.batch $(if $(SUITE),--suite $(SUITE)) $(if $(SF),--sf $(SF)) $(BENCH)

bench-nexmark: jar ## run Nexmark's queries as streams, with the plugin and with dynamic allocation, 80 min (BENCH=--quick: one query, 10 min; BENCH="--queries q0,q5": these; BENCH="--variants all": Flink too)
	$(BIN)/python -m integration.bench.nexmark $(BENCH)

differential: jar ## run programs made by chance with the plugin and without, and compare (SEED=1; MINUTES=10, shared by the halves; ONLY=batch or streaming: one half; ONLY=large: some that need much memory; ONLY=tables: Delta Lake; ONLY=executors: streams that lose executors)
	$(BIN)/python -m integration.differential $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(ONLY),--only $(ONLY))

chaos: jar ## let one thing after another go wrong on a real cluster (FAULTS=20: so many; WHERE=kubernetes; MINUTES=60: none later; BURST=5: so many steps before all has to be well; SEED=1; KINDS=a,b; RESTARTS=no; PLAIN=yes; REACTIVE=yes; OLD=yes; SCRIPT=FILE; RERUN=no; AFTER=DIR)
	$(if $(filter kubernetes,$(WHERE)),$(BIN)/python -m integration.kubernetes)
	$(BIN)/python -m integration.chaos $(if $(WHERE),--where $(WHERE)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(BURST),--burst $(BURST)) $(if $(SEED),--seed $(SEED)) $(if $(KINDS),--kinds $(KINDS)) $(if $(filter no,$(RESTARTS)),--no-restarts) $(if $(filter yes,$(PLAIN)),--plain) $(if $(filter yes,$(REACTIVE)),--reactive) $(if $(filter yes,$(OLD)),--old) $(if $(SCRIPT),--script $(SCRIPT)) $(if $(filter no,$(RERUN)),--no-rerun) $(if $(AFTER),--after $(AFTER))

clean: ## remove all that was made in this checkout (not the cache of downloads)
	rm -rf .venv dist target project/target project/project jvm-shim/target python/spark_elastic/jars
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
