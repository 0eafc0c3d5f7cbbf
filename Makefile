# Every recipe sets up what it needs: local environments .venv-*/ from the hash-pinned requirements/*.txt,
# and a release wheel of this tree in them.  Nothing is rebuilt unless its sources changed.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh
PYTHON ?=

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust/core rust/bindings -type f 2>/dev/null)
PYTHON_SOURCES := $(shell find python -type f ! -name '*.pyc' ! -name '*.so' 2>/dev/null)
WHEEL_SOURCES := pyproject.toml README.md LICENSE $(RUST_SOURCES) $(PYTHON_SOURCES)
WHEEL := .venv-build/wheel.stamp
PROFILE := target/profile.profdata
ABI3_PROFILE := target/abi3.profdata
RELEASE_WHEEL := .venv-build/release-wheel.stamp
NODE_MODULES := tests/external/judges/ts/node_modules/.package-lock.json
CLIENT_MODULES := tests/external/clients/node_modules/.package-lock.json
GO_JUDGES := tests/external/judges/go/judges
CARGO_CHECKED := --workspace --locked --exclude deltafold-python

# requirements/frameworks.txt holds what needs openai 3, requirements/strands.txt what needs an older one.
NEWER_FRAMEWORKS := $(foreach name,langchain openai_agents pydantic_ai,$(wildcard tests/external/frameworks/test_$(name)*.py))
SHARED_BY_ADAPTERS := $(foreach name,carried failed outlines token_logprobs,python/deltafold/integrations/$(name).py)
NEWER_TYPED := $(wildcard $(foreach name,langchain openai_agents pydantic_ai,python/deltafold/integrations/$(name) tests/external/frameworks/user_$(name).py)) \
	$(SHARED_BY_ADAPTERS)
OLDER_TYPED := $(wildcard $(foreach name,litellm strands,python/deltafold/integrations/$(name) tests/external/frameworks/user_$(name).py)) \
	$(SHARED_BY_ADAPTERS)
OLDER_FRAMEWORKS := $(foreach name,litellm strands,$(wildcard tests/external/frameworks/test_$(name)*.py))

SECONDS_EACH ?= 60
MINUTES ?=
NEWEST ?=

# A family takes a name: `make check NAME=frameworks`.  A NAME of the environment is none.
NAME :=
CHECKS := $(shell sed -n 's/^check-\([a-z]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
BENCHES := $(shell sed -n 's/^bench-\([a-z]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
BLESSED := $(shell sed -n 's/^bless-\([a-z]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

.PHONY: help demo docs docs-serve newcomer test lint check bench bless wheel clean
.PHONY: $(addprefix check-,$(CHECKS)) $(addprefix bench-,$(BENCHES)) $(addprefix bless-,$(BLESSED))

help: ## what can be made
	@sed -n -e '/^check-/d' -e '/^bench-/d' -e '/^bless-/d' -e 's/^\([a-z-]*\):.*## /  make \1@/p' $(firstword $(MAKEFILE_LIST)) | awk -F@ '{ printf "%-22s %s\n", $$1, $$2 }'

demo: .venv-demo/installed ## `deltafold demo`: recordings through the real SDKs and a gateway, then an agent
	@.venv-demo/bin/deltafold demo

test: .venv-test/installed ## Rust tests, Python tests against the installed wheel, the instruction gate
	cargo test $(CARGO_CHECKED)
	.venv-test/bin/python -m pytest -m "not slow" --numprocesses auto --dist worksteal
	.venv-test/bin/python tools/instruction_gate.py

lint: .venv-lint/installed ## formatters, linters, the import contract, citations, type checkers, stubs, licences
	.venv-lint/bin/ruff check
	.venv-lint/bin/ruff format --check
	.venv-lint/bin/typos
	PYTHONPATH=python .venv-lint/bin/lint-imports --no-logo --no-cache
	.venv-lint/bin/python tools/rust_cycles.py
	.venv-lint/bin/python tools/citations.py
	.venv-lint/bin/mypy
	.venv-lint/bin/basedpyright
	.venv-lint/bin/python tools/documented_types.py
	MYPYPATH=python .venv-lint/bin/python -m mypy.stubtest deltafold._core --mypy-config-file pyproject.toml
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package deltafold-python --features abi3 --locked -- -D warnings
	cargo fmt --manifest-path rust/fuzz/Cargo.toml --check
	cargo clippy --manifest-path rust/fuzz/Cargo.toml --no-default-features --locked -- -D warnings
	.venv-lint/bin/python tools/check_licenses.py

check: $(if $(filter $(CHECKS),$(NAME)),check-$(NAME),names-of-check) ## a check that needs more than `make test`, by NAME=...; without NAME: their names

bench: $(if $(filter $(BENCHES),$(or $(NAME),streams)),bench-$(or $(NAME),streams),names-of-bench) ## a measurement, by NAME=streams, gateway, scale, frameworks, takeover, loops or requests; without NAME: streams

bless: $(if $(filter $(BLESSED),$(or $(NAME),expectations)),bless-$(or $(NAME),expectations),names-of-bless) ## rewrites what tests compare with, by NAME=expectations, models or gate; without NAME: expectations

newcomer: .venv-test/installed ## what newcomers do by README and docs alone, each task in a fresh environment (needs a package index, chromium)
	PYTHONPATH=tests/support .venv-test/bin/python tools/newcomer.py

docs: .venv-docs/installed ## the documentation site in site/; a warning, a wrong link or a wrong anchor fails
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict --clean

docs-serve: .venv-docs/installed ## the documentation site at 127.0.0.1:8000, built again after each change of a page
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs serve --dev-addr 127.0.0.1:8000

wheel: $(WHEEL) ## dist/*.whl, release build
	@ls dist/*.whl

clean: ## removes everything that was made
	rm -rf .venv-*/ dist site target .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks tests/external/judges/ts/node_modules tests/external/clients/node_modules tests/external/browser/states $(GO_JUDGES)

names-of-%:
	@echo "make $* NAME=..."
	@sed -n 's/^$*-\([a-z]*\):.*## /  \1@/p' $(firstword $(MAKEFILE_LIST)) | awk -F@ '{ printf "%-14s %s\n", $$1, $$2 }'
	@exit 2

check-slow: .venv-test/installed ## the tests that `make test` leaves out: real waits, kills, growth, and all of each large set (needs nothing more)
	cargo test $(CARGO_CHECKED) -- --ignored
	.venv-test/bin/python -m pytest -m slow --numprocesses auto --dist worksteal

check-loops: .venv-test/installed $(NODE_MODULES) ## an agent whose process is killed and whose runs are cancelled anywhere, its stores, messages, approvals, fallbacks and MCP servers; the pages of npm's clients (needs npm)
	.venv-test/bin/python -m pytest --numprocesses auto --dist worksteal tests/agent tests/conversation tests/testing/test_check_store.py tests/models/test_fallback.py tests/docs/test_agent_endpoint.py
	tests/external/judges/ts/node_modules/.bin/tsc --project tests/external/judges/ts
	.venv-test/bin/python -m pytest -c tests/external/judges/pytest.ini --rootdir tests/external/judges tests/external/judges/test_run_clients.py

check-sdks: .venv-sdks/installed .venv-test/installed ## the official clients, accelerated ones, and llm-babel's golden cases; rewrites docs/sdks.md (installs the clients)
	PYTHONPATH=tests/support .venv-test/bin/python -m pytest --numprocesses auto tests/external/sdks/test_accelerated.py
	.venv-sdks/bin/python -W ignore tests/external/sdks/sdks.py

check-frameworks: .venv-frameworks/installed .venv-strands/installed .venv-frameworks/sdists ## the adapters inside their frameworks, and the frameworks' own suites; the types of user code (installs the frameworks)
	.venv-frameworks/bin/mypy --config-file tests/external/frameworks/mypy.ini $(NEWER_TYPED)
	.venv-frameworks/bin/basedpyright --project tests/external/frameworks/newer.pyright.json
	.venv-frameworks/bin/python -m pytest -c tests/external/frameworks/pytest.ini --rootdir tests/external/frameworks $(NEWER_FRAMEWORKS)
	.venv-strands/bin/mypy --config-file tests/external/frameworks/mypy.ini $(OLDER_TYPED)
	.venv-strands/bin/basedpyright --project tests/external/frameworks/older.pyright.json
	.venv-strands/bin/python -m pytest -c tests/external/frameworks/pytest.ini --rootdir tests/external/frameworks $(OLDER_FRAMEWORKS)

check-takeover: .venv-takeover/installed .venv-llm/installed .venv-gptme/installed .venv-takeover/sdists ## the own tests of other projects with deltafold beneath their models; rewrites docs/takeovers.md (installs the projects)
	.venv-takeover/bin/python tests/external/takeover/projects.py

check-tracing: .venv-tracing/installed ## the spans of tracing packages over streams that deltafold reads; the table in docs/how-to/tracing.md (installs the packages)
	.venv-tracing/bin/python -m pytest -c tests/external/tracing/pytest.ini --rootdir tests/external/tracing tests/external/tracing

check-engines: .venv-engines/installed ## Ray Data, Spark, Polars and DuckDB fold 100,000 rows with two workers each (installs them; Spark needs java)
	.venv-engines/bin/python -m pytest -c tests/external/engines/pytest.ini --rootdir tests/external/engines tests/external/engines

check-clients: .venv-test/installed .venv-aider/ready $(CLIENT_MODULES) ## agents that nobody here wrote, against the gateway (needs npm)
	PYTHONPATH=tests/support:tests/external/clients .venv-test/bin/python -m pytest -c tests/external/clients/pytest.ini --rootdir tests/external/clients tests/external/clients

check-judges: .venv-judges/installed $(NODE_MODULES) $(GO_JUDGES) ## the official TypeScript and Go clients read what the encoders write; rewrites docs/judges.md (needs npm, go)
	tests/external/judges/ts/node_modules/.bin/tsc --project tests/external/judges/ts
	PYTHONPATH=tests/support .venv-judges/bin/python tests/external/judges/judges.py

check-browser: .venv-browser/installed docs ## the page of `deltafold inspect` and each page of the site in a browser: content, layout, accessibility, times, pictures (needs chromium)
	PYTHONPATH=tests/external/browser:tests/support:tools .venv-browser/bin/python -m pytest -c tests/external/browser/pytest.ini --rootdir tests/external/browser tests/external/browser
	PYTHONPATH=tests/external/browser .venv-browser/bin/python tests/external/browser/measure.py

check-local: .venv-local/installed ## a model of transformers in this process (installs torch: several GB)
	.venv-local/bin/python -m pytest tests/external/local/test_local.py

check-extras: .venv-extras/ready $(WHEEL) ## each extra with the lowest and the highest versions of its bounds (installs many environments)
	.venv-extras/bin/python tools/extras.py

check-wheels: .venv-wheels/ready $(PROFILE) $(ABI3_PROFILE) ## release wheels for each CPython that is here, examined, and tested without Rust (needs glibc, x86-64)
	.venv-wheels/bin/python tools/wheels.py

check-release: .venv-release/ready .venv-release/bin/actionlint $(WHEEL) ## the workflows by actionlint and zizmor, and a dry run of the release (needs go)
	.venv-release/bin/actionlint
	.venv-release/bin/zizmor --offline --no-progress .github
	.venv-build/bin/maturin sdist --out dist
	.venv-release/bin/python tools/release_check.py --tag v$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

check-newcomer: .venv-test/installed ## the tasks of newcomers by the text of README and docs, each in a fresh environment, and without each block (needs a package index, chromium)
	PYTHONPATH=tests/support .venv-test/bin/python tools/newcomer.py --without-each

check-toy: .venv-test/ready ## toy additions by the lists of CONTRIBUTING.md work with all rows, and fail without any one (needs a quarter of an hour)
	.venv-test/bin/python tools/toy_additions.py --each

check-soak: .venv-test/installed ## 500 streams at once for MINUTES minutes (45): faults, cancels, the gateway; rewrites the figures in docs/reliability.md (needs Linux)
	.venv-test/bin/python tools/soak.py --minutes $(or $(MINUTES),45) --docs docs/reliability.md

check-badday: .venv-test/installed ## 500 calls at once for MINUTES minutes (20) while stores, hooks, tools, clients, connections and descriptors fail; rewrites the figures in docs/reliability.md (needs Linux)
	.venv-test/bin/python tools/bad_day.py --minutes $(or $(MINUTES),20) --docs docs/reliability.md

check-fuzz: .venv-test/installed ## the five groups of fuzz targets and loops (GROUPS=..., SEED=..., COUNT=...), SECONDS_EACH seconds a target (needs nightly, cargo-fuzz)
	tools/fuzz.sh $(SECONDS_EACH) $(GROUPS)

check-models: .venv-modeltable/installed ## the table of models against the pinned packages, or with NEWEST=1 against the newest ones (installs them)
	.venv-modeltable/bin/python tools/model_table.py $(if $(NEWEST),--newest,--compare)

check-drift: .venv-drift/installed ## a marker in each member that the newest official SDKs know, and what is kept of it; rewrites docs/drift.md (installs the SDKs)
	PYTHONPATH=tests/support .venv-drift/bin/python tools/markers.py --newest --docs docs/drift.md

check-gate: .venv-test/ready ## counts instructions against rust/benches/instructions.json (needs valgrind)
	.venv-test/bin/python tools/instruction_gate.py

bench-streams: .venv-bench/installed ## ours and our peers in three passes; rewrites docs/bench* and the table in README.md (installs the peers)
	set -e; for pass in 1 2 3; do \
		cargo run --release --locked --package deltafold-benches --bin stages_together > .venv-bench/stages-$$pass.jsonl; \
		.venv-bench/bin/python -m pytest -c benches/pytest.ini --rootdir benches benches --benchmark-json .venv-bench/results-$$pass.json; \
	done
	.venv-bench/bin/python benches/report.py .venv-bench/results-?.json --stages .venv-bench/stages-?.jsonl --docs .

bench-gateway: .venv-gateway/installed .venv-peers/ready ## the gateway beside a bare forwarder, 1,000 streams each, and other gateways; rewrites the tables in docs/gateway.md
	.venv-gateway/bin/python benches/gateway/bench_gateway.py --docs docs/gateway.md

bench-scale: .venv-bench/installed ## columns of 100,000 bodies beside a process pool, and files of 1,000,000; rewrites the tables in docs/scale.md
	.venv-bench/bin/python -W ignore benches/scale.py measure --docs docs/scale.md
	PYTHONPATH=tests/support .venv-bench/bin/python -W ignore benches/rollouts.py --docs docs/scale.md

bench-frameworks: .venv-frameworks/installed .venv-strands/installed ## the adapters beside the frameworks' own models; rewrites the table in docs/frameworks.md (installs the frameworks)
	.venv-frameworks/bin/python -W ignore benches/frameworks/bench_frameworks.py --docs docs/frameworks.md
	.venv-strands/bin/python -W ignore benches/frameworks/bench_frameworks.py --docs docs/frameworks.md

bench-takeover: .venv-bench/installed ## two assemblers written by hand, with an accelerated client, and with stream(); rewrites the table in docs/migrate/hand-written.md
	.venv-bench/bin/python -W ignore benches/takeover.py --docs docs/migrate/hand-written.md

bench-loops: .venv-loops/installed .venv-strands/installed ## agent loops of pydantic-ai, openai-agents and strands; rewrites docs/loops.md (installs them)
	.venv-loops/bin/python benches/loops/loops.py --strands-python .venv-strands/bin/python

bench-requests: .venv-requests/installed ## the translation of requests of 1 to 300 turns, and a call of the gateway, beside other packages; rewrites the table in docs/requests.md (installs them)
	.venv-requests/bin/python benches/translation/bench_translation.py --docs docs/requests.md
	.venv-requests/bin/python benches/translation/open_streams.py --docs docs/requests.md

bless-expectations: .venv-test/installed ## rewrites the expectations of tests/fixtures, docs/stream*.svg, docs/vendors.md and the outputs in the documentation, from what the code does now
	.venv-test/bin/python tools/bless.py
	.venv-test/bin/python tests/support/goldens.py
	.venv-test/bin/python tools/stream_picture.py
	.venv-test/bin/python tools/vendors_page.py
	.venv-test/bin/python tests/support/documented_runs.py

bless-models: .venv-modeltable/installed ## rewrites the table of models from the pinned packages; says what they disagree about (installs them)
	.venv-modeltable/bin/python tools/model_table.py

bless-gate: .venv-test/ready ## rewrites rust/benches/instructions.json from what the code needs now
	.venv-test/bin/python tools/instruction_gate.py --bless

$(WHEEL): $(WHEEL_SOURCES) .venv-build/ready
	@echo "building the wheel, which takes some minutes after a change of Rust"
	@rm -f dist/*.whl
	@tools/quietly.sh .venv-build/bin/maturin build --release --locked --auditwheel skip --compression-level 9 --interpreter .venv-build/bin/python --out dist
	@touch $@

# What is measured is what a user installs: an extension that was optimized with a profile.
$(PROFILE) $(ABI3_PROFILE): $(RUST_SOURCES) tools/training.py tools/profiled.py benches/bodies.py benches/other_bodies.py .venv-build/ready .venv-test/ready
	rm -f $@
	.venv-build/bin/python tools/profiled.py $@ $(if $(filter $(ABI3_PROFILE),$@),--features abi3)

$(RELEASE_WHEEL): $(WHEEL_SOURCES) $(PROFILE)
	rm -rf dist/measured
	.venv-build/bin/python tools/profiled.py $(PROFILE) -- .venv-build/bin/maturin build --release --locked --auditwheel skip --target-dir target/profiled --interpreter .venv-build/bin/python --out dist/measured
	@touch $@

$(foreach name,bench gateway frameworks strands requests,.venv-$(name)/installed): .venv-%/installed: .venv-%/ready $(RELEASE_WHEEL)
	.venv-$*/bin/python -m pip install --quiet --no-deps --force-reinstall dist/measured/*.whl
	@touch $@

.venv-%/installed: .venv-%/ready $(WHEEL)
	@tools/quietly.sh .venv-$*/bin/python -m pip install --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	@touch $@

.venv-%/ready: requirements/%.txt tools/preflight.sh
	@python=$$(tools/preflight.sh $(PYTHON)) && rm -rf .venv-$* && "$$python" -m venv .venv-$*
	@tools/quietly.sh .venv-$*/bin/python -m pip install --disable-pip-version-check --no-deps --require-hashes --requirement $<
	@touch $@

.venv-release/bin/actionlint: .venv-release/ready
	GOBIN=$(CURDIR)/.venv-release/bin go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.venv-%/sdists: tests/external/%/sdists.txt .venv-%/ready
	rm -rf $@
	.venv-$*/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --require-hashes --dest $@ --requirement $<
	for archive in $@/*.tar.gz; do tar -xzf "$$archive" -C $@; done

$(NODE_MODULES): tests/external/judges/ts/package.json tests/external/judges/ts/package-lock.json
	npm ci --prefix tests/external/judges/ts --no-audit --no-fund
	@touch $@

$(CLIENT_MODULES): tests/external/clients/package.json tests/external/clients/package-lock.json
	npm ci --prefix tests/external/clients --ignore-scripts --no-audit --no-fund
	@touch $@

$(GO_JUDGES): $(wildcard tests/external/judges/go/*.go) tests/external/judges/go/go.mod tests/external/judges/go/go.sum
	cd tests/external/judges/go && go vet . && go build -o judges .

.PRECIOUS: .venv-%/ready .venv-%/installed
