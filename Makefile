# The commands of this project; `make help` lists them. So that dependencies are compiled once, one cargo profile, release,
# serves them all, and none chooses a package: cargo would give dependencies other features, and compile them again. For
# the same reason the demo is built along with the command: an example brings in the features that tests need. What the
# commands need beyond Rust, make and a C compiler is fetched into target/tools.

CARGO ?= cargo

.DEFAULT_GOAL := help
.PHONY: help setup build demo test tools soak bench lint clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: ## find or install a compiler for the modules (wasm32)
	@sh tests/tools/wasm-compiler.sh

build: setup ## the verbatim command, at target/release/verbatim
	$(CARGO) build --release --bin verbatim --example demo

demo: setup ## the main job, shown on a host of its own in a temporary folder
	$(CARGO) run --release --example demo

test: build tools ## every test, real clients included
	$(CARGO) test --release --workspace

tools: ## the test tools (kcat, Apache Kafka, other clients and their suites); without one its tests are skipped
	@for tool in kcat kafka python node go; do sh tests/tools/$$tool.sh || true; done
	@for suite in franz-go kafka-python; do sh tests/compat/$$suite.sh || true; done

soak: build tools ## the long runs of the whole-system suites
	VERBATIM_SOAK=1 $(CARGO) test --release --test suites -- --nocapture

bench: build ## the benchmarks
	$(CARGO) bench --workspace --benches

lint: setup ## formatting, clippy and documentation, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps

clean: ## remove everything that was built or fetched
	$(CARGO) clean
