LINT_VERSION := v2.12.2
VULN_VERSION := v1.9.0
# A count, as the fuzzer can fail on its own deadline (golang/go#75804).
FUZZTIME     ?= 200000x

MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod */*/go.mod))
LINT    := $(CURDIR)/bin/$(LINT_VERSION)/golangci-lint

# runtime/race builds only where cgo and its C compiler work; tried once, when needed.
RACE   = $(eval RACE := $(shell go build -race runtime/race 2>/dev/null && echo -race))$(RACE)
GOTEST = $(if $(RACE),go test -race,CGO_ENABLED=0 go test) -shuffle=on -count=1

# each runs a command in every module, and stops at the first that fails.
each = for module in $(MODULES); do (cd "$$module" && $(1)) || exit 1; done

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: test-root test-nested ## Run all tests; without a database its tests are skipped and named

.PHONY: test-root
test-root: ## Run the tests of the root module
	$(if $(RACE),,@echo "race detection is off: it needs cgo and a C compiler")
	@$(GOTEST) ./...

# In a package's own folder go test shows what a passing test printed, here the
# databases that were skipped.
.PHONY: test-nested
test-nested: MODULES := $(filter-out .,$(MODULES))
test-nested: ## Run the tests of the nested modules
	@$(call each,dirs=$$(go list -f '{{.Dir}}' ./...) && for dir in $$dirs; do (cd "$$dir" && $(GOTEST)) || exit 1; done)
	@cd internal/integration/brokers && CGO_ENABLED=0 go test -count=1 -run 'TestAMQP/a_broker_that_goes_away' . # has a data race in watermill-amqp

# The linter's cache keeps paths, so two checkouts must not share one.
.PHONY: lint
lint: export GOLANGCI_LINT_CACHE := $(CURDIR)/bin/cache
lint: $(LINT) ## Run golangci-lint in every module
	@$(call each,$(LINT) run --allow-parallel-runners --config "$(CURDIR)/.golangci.yml" ./...)

.PHONY: fmt
fmt: $(LINT) ## Format every module
	@$(call each,$(LINT) fmt --config "$(CURDIR)/.golangci.yml" ./...)

.PHONY: vet
vet: ## Run go vet in every module
	@$(call each,go vet ./...)

.PHONY: tidy
tidy: ## Run go mod tidy in every module
	@$(call each,go mod tidy)

.PHONY: tidy-check
tidy-check: ## Fail where go mod tidy would change something
	@$(call each,go mod tidy -diff)

.PHONY: vuln
vuln: ## Look for known vulnerabilities (needs the online database)
	@$(call each,go run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) ./...)

.PHONY: examples
examples: ## Run the examples that need nothing but Go
	go run -C _examples ./quickstart
	go run -C _examples ./edi
	go run -C _examples ./cqrs
	go run -C _examples ./brokers -broker gochannel
	go run -C _examples ./brokers -broker kafka
	go run -C _examples ./brokers -broker nats

.PHONY: examples-servers
examples-servers: ## Run the examples that need PostgreSQL
	go run -C _examples ./outbox

.PHONY: check
check: test lint vet tidy-check examples ## Run what CI runs

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (200000x); those of keys and tables need the databases
	@$(call each,targets=$$(go test -list '^Fuzz' ./...) || { echo "$$targets"; exit 1; }; \
	echo "$$targets" | \
	awk '/^Fuzz/ { name[n++] = $$1 } /^ok/ { while (n) print $$2 " " name[--n] }' | \
	while read -r pkg name; do \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || exit 1; \
	done)

.PHONY: bench
bench: ## Run the benchmarks, with allocations
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: bench-retention
bench-retention: ## Measure what removing old keys costs beside it (needs PostgreSQL alone, takes 10 minutes)
	go run -C internal/bench ./retention

.PHONY: test-long
test-long: ## Run the tests of retention with a million keys, and for a minute (needs the databases)
	cd internal/integration && INBOX_TEST_LONG=1 go test -count=1 -timeout 30m -v -run 'TestSweepOfManyRows|TestCleanerBesideConsumers' .

.PHONY: crash
crash: ## Kill workers at each step of a delivery, on each database and broker; prints the matrix (needs all services)
	cd internal/integration/crash && INBOX_TEST_LONG=1 INBOX_TEST_REQUIRE=all go test -count=1 -timeout 30m .

.PHONY: soak
soak: ## Run two services for about 20 minutes with all trouble at once; SOAK_SEED repeats it (needs the databases)
	cd internal/integration/soak && INBOX_TEST_LONG=1 go test -count=1 -timeout 90m -v -run '^TestSoak$$' .

.PHONY: services
services: ## Start the databases and brokers of the integration tests
	docker compose up --detach --wait

$(LINT):
	GOFLAGS= GOBIN="$(@D)" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
