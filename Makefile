# The commands of this repository; `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test build install package container nightly bench book lint format

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Show it at work: SQLite on a volume, kills and power cuts, the same trace on simulated devices
	cargo run --release --package tantalum-demo -- demo

test: ## Install what the tests need (as root) or say what is missing, then run them all
	scripts/deps
	scripts/test

build: ## Build the programs, the C library and the SQLite extension for use
	cargo build --profile dist --locked $$(scripts/programs) --package tantalum-capi --package tantalum-sqlite

install: ## Install what `build` built, in PREFIX (/usr/local)
	scripts/install

package: build ## Make a Debian package of it
	scripts/package

container: package ## Make a container image of the package
	scripts/container

nightly: ## The same tests, exhaustive where they otherwise sample
	scripts/deps
	scripts/nightly

bench: ## Run every benchmark; docs/benchmarks.md says how to read them
	scripts/deps
	scripts/bench

book: ## Render the documentation, docs/, as a site in book/
	scripts/book

lint: ## Check formatting, lints and shell scripts
	scripts/lint

format: ## Format the code
	cargo fmt --all
