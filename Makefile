# All that a developer types. Prerequisites: Go, make and git; for `make test` also a C compiler, which Go's race detector needs.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

MODULE      := github.com/virtualcluster/virtualcluster
BIN         := $(CURDIR)/bin
TOOLS       := $(BIN)/tools
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The Kubernetes that vc-standalone runs. Without it, clients would be told v0.0.0-master+$Format:%H$.
KUBERNETES  := $(shell sed -n 's|^[[:space:]]*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' standalone/go.mod)
KUBE_PARTS  := $(subst ., ,$(KUBERNETES:v%=%))

LDFLAGS     := -s -w -X $(MODULE)/internal/version.version=$(VERSION)
KUBE_LDFLAGS = $(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version,-X $(p).gitVersion=$(KUBERNETES) \
	-X $(p).gitMajor=$(word 1,$(KUBE_PARTS)) -X $(p).gitMinor=$(word 2,$(KUBE_PARTS)) -X $(p).gitTreeState=clean)

# Static binaries, and one build cache for programs, linters and the tests of standalone. -race turns cgo on by itself.
export CGO_ENABLED ?= 0
# Without the paths of this folder, so that another clone on this machine finds what is built and tested in the cache.
export GOFLAGS += -trimpath -buildvcs=false
GO_BUILD    := go build -buildvcs=false
# Without go vet: make lint runs its checks (govet of golangci-lint) for all modules with tests. In go test it also reads every
# dependency, once with the race detector and once without: several minutes if no build cache has the results.
GO_TEST     := go test -vet=off
GINKGO      := go tool ginkgo --vet=off
# The tests of packages: a test that fails runs once more, alone, unless more than three fail, one panics or races.
tests        = $(TOOLS)/gotestsum --no-color --format pkgname --format-hide-empty-pkg --rerun-fails=1 --rerun-fails-max-failures=3 \
	--rerun-fails-abort-on-data-race --rerun-fails-run-root-test --packages '$(1)' -- -vet=off -timeout $(TEST_TIMEOUT)
# Empty: with the race detector the apiservers in standalone's tests are several times slower. STANDALONE_RACE=1 turns it on.
STANDALONE_RACE ?=
TEST_TIMEOUT    ?= 10m
# More flags for a benchmark, such as --scenarios=throughput --throughput=5000/50; bin/vc-bench --help lists them, and
# make bench-hosting BENCH_FLAGS=--help lists those of bench-hosting.
BENCH_FLAGS     ?=
# The same for make conformance: --focus=sig-network, --on=shared, --failed.
CONFORMANCE_FLAGS ?=

GENERATED   := ':(glob)apis/**/zz_generated.*.go' ':(glob)config/crd/*_*.yaml' ':(glob)config/networks/*_*.yaml' ':(glob)config/rbac/*/role.yaml' docs/metrics.md docs/kubectl-vc.md docs/security.md README.md docs/admins charts/virtualcluster/templates capi/apis capi/config
RACE_PACKAGES = $(shell go list ./... | grep -v -e '^$(MODULE)/test/integration' -e '^$(MODULE)/test/e2e' -e '^$(MODULE)/test/escapes')

##@ Try it

# What a first look needs, and nothing else: the other programs take as long again to compile.
.PHONY: standalone
standalone:
	@echo 'Compiling vc-standalone, with kube-apiserver: minutes the first time, seconds later'
	@cd standalone && $(GO_BUILD) -ldflags '$(LDFLAGS) $(KUBE_LDFLAGS)' -o $(BIN)/ ./cmd/vc-standalone

.PHONY: demo
demo: standalone ## Three tenants, one without a control plane, run the same Deployment; prints what happened, removes everything
	$(BIN)/vc-standalone demo

.PHONY: run
run: standalone ## Start vc-standalone with two tenants and stay; prints what to type next
	$(BIN)/vc-standalone run

##@ Develop

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build all binaries into bin/
	$(GO_BUILD) -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...
	cd standalone && $(GO_BUILD) -ldflags '$(LDFLAGS) $(KUBE_LDFLAGS)' -o $(BIN)/ ./cmd/...
	cd standalone && $(GO_BUILD) -ldflags '-s -w' -o $(BIN)/etcd go.etcd.io/etcd/server/v3
	cd dns && $(GO_BUILD) -ldflags '-s -w' -o $(BIN)/ ./cmd/...
	cd capi && $(GO_BUILD) -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

# A node's programs, and the images that run on it: those of Kubernetes are of the same module as vc-standalone, so that they
# share its build cache.
NODE_LDFLAGS = -s -w -X github.com/containerd/containerd/v2/version.Version=$(shell cd test/node && go list -m -f '{{.Version}}' \
	github.com/containerd/containerd/v2)

# Reports what is missing before the node is compiled, which takes four minutes. test/node may want a newer Go.
.PHONY: node-requirements node-can-build node-can-run
node-requirements:
	@cd standalone && $(GO_BUILD) -o $(BIN)/ ./nodes/cmd/node-requirements
node-can-build: node-requirements
	@cd test/node && go version >/dev/null && $(BIN)/node-requirements
node-can-run: node-requirements
	@cd test/node && go version >/dev/null && $(BIN)/node-requirements --run

.PHONY: node
node: node-can-build build ## Build what `vc-standalone up --nodes real` needs: containerd, kubelet, kube-proxy and images, into bin/node
	cd standalone && $(GO_BUILD) -ldflags '-s -w $(KUBE_LDFLAGS)' -o $(BIN)/node/ \
		k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kube-proxy k8s.io/kubernetes/cmd/kubectl ./nodes/cmd/node-policies
	cd test/node && $(GO_BUILD) -ldflags '$(NODE_LDFLAGS)' -tags 'no_btrfs no_devmapper no_zfs' -o $(BIN)/node/ \
		github.com/containerd/containerd/v2/cmd/containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 \
		github.com/containerd/containerd/v2/cmd/ctr
	cd standalone && $(GO_BUILD) -ldflags '-s -w $(KUBE_LDFLAGS)' -o $(BIN)/node/programs/ k8s.io/kubernetes/test/images/agnhost
	cd test/node && $(GO_BUILD) -ldflags '-s -w' -o $(BIN)/node/programs/ ./cmd/coredns ./cmd/pause
	cp $(BIN)/vc-dns $(BIN)/kubectl-vc $(BIN)/node/programs/
	cd test/node/metrics-server && $(GO_BUILD) -ldflags '-s -w' -o $(BIN)/node/programs/ sigs.k8s.io/metrics-server/cmd/metrics-server
	cd test/node && go run -buildvcs=false ./cmd/images --programs $(BIN)/node/programs --out $(BIN)/node/images

# What specs of routes run on a node. Traefik takes minutes to build, so it is none of the node's own images.
.PHONY: traefik
traefik: ## Build the image of Traefik, a controller of Gateways, for a real node into bin/traefik
	cd test/node/traefik && $(GO_BUILD) -ldflags '-s -w' -o $(BIN)/traefik/programs/ github.com/traefik/traefik/v3/cmd/traefik
	cd test/node && go run -buildvcs=false ./cmd/images --traefik --programs $(BIN)/traefik/programs --out $(BIN)/traefik/images

# What the conformance suite runs: Kubernetes' own tests, and the images that they name, of the same module as vc-standalone.
CONFORMANCE_SUITE := $(BIN)/conformance

.PHONY: conformance-suite
conformance-suite: node ## Build Kubernetes' conformance suite and its images into bin/conformance
	cd standalone && $(GO_BUILD) -ldflags '-s -w' -o $(CONFORMANCE_SUITE)/programs/ k8s.io/kubernetes/test/images/nonewprivs
	cd test/conformance/sample-apiserver && $(GO_BUILD) -ldflags '-s -w' -o $(CONFORMANCE_SUITE)/programs/ k8s.io/sample-apiserver
	cp $(BIN)/etcd $(CONFORMANCE_SUITE)/programs/
	cp $(BIN)/node/programs/agnhost $(CONFORMANCE_SUITE)/programs/
	cd standalone && $(GO_TEST) -c -ldflags '-s -w $(KUBE_LDFLAGS)' -o $(CONFORMANCE_SUITE)/e2e.test k8s.io/kubernetes/test/e2e
	$(GO_BUILD) -o $(CONFORMANCE_SUITE)/ github.com/onsi/ginkgo/v2/ginkgo
	cd test/node && go run -buildvcs=false ./cmd/images --programs $(CONFORMANCE_SUITE)/programs --out $(CONFORMANCE_SUITE)/images \
		--conformance $$(cd ../../standalone && go list -m -f '{{.Dir}}' k8s.io/kubernetes)

.PHONY: generate
generate: $(TOOLS)/controller-gen ## Generate what lists kinds, deepcopy functions, CRDs, RBAC roles, and the references of metrics and commands
	go run ./hack/kinds .
	$(TOOLS)/controller-gen object paths=./apis/...
	$(TOOLS)/controller-gen crd:generateEmbeddedObjectMeta=true paths=./apis/tenancy/... output:crd:dir=config/crd
	$(TOOLS)/controller-gen crd paths=./apis/network/... output:crd:dir=config/networks
	$(TOOLS)/controller-gen rbac:roleName=vc-manager paths=./controllers/... output:rbac:dir=config/rbac/vc-manager
	cd capi && $(TOOLS)/controller-gen object paths=./apis/...
	cd capi && for p in infrastructure:nestedcluster control-plane:nestedcontrolplane; do dir=$${p%%:*}; \
		$(TOOLS)/controller-gen crd:generateEmbeddedObjectMeta=true paths=./apis/$${dir/-/}/... output:crd:dir=config/$$dir/crd; \
		$(TOOLS)/controller-gen rbac:roleName=vc-capi-$$dir paths=./controllers/$${p##*:} paths=./app output:rbac:dir=config/$$dir/rbac; done
	$(TOOLS)/controller-gen rbac:roleName=vn-agent paths=./vnagent/... output:rbac:dir=config/rbac/vn-agent
	$(TOOLS)/controller-gen rbac:roleName=vc-gateway paths=./gateway/... output:rbac:dir=config/rbac/vc-gateway
	go run ./hack/rbac config/rbac/vc-syncer/role.yaml
	go run ./hack/metrics docs/metrics.md
	go run ./hack/cli docs/kubectl-vc.md
	go run ./hack/chart .
	ATTACKS_DOCUMENT=$(CURDIR)/docs/security.md $(GINKGO) --dry-run --succinct ./test/escapes >/dev/null

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint ## Format the code
	$(TOOLS)/golangci-lint fmt ./...
	cd standalone && $(TOOLS)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...
	cd dns && $(TOOLS)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...
	cd capi && $(TOOLS)/golangci-lint fmt --config $(CURDIR)/.golangci.yml ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) $(DIST)

##@ Release

# Programs are compiled into bin/release, and a version's image archives are in bin/images.
DIST          := $(CURDIR)/dist
RELEASE_FLAGS = --version '$(VERSION)' --programs $(BIN)/release --ldflags '$(LDFLAGS)' --kubernetes-ldflags '$(KUBE_LDFLAGS)'

.PHONY: images
images: ## Build the container images of all programs, for amd64 and arm64, into bin/images
	rm -rf $(BIN)/images
	cd hack/release && go run -buildvcs=false ./cmd/images $(RELEASE_FLAGS) --out $(BIN)/images

# The folder of the archives to push: make push IMAGES=dist pushes a release.
IMAGES ?= $(BIN)/images

.PHONY: push
push: ## Push them: make push REGISTRY=registry.example.com/team; prints their digests
	cd hack/release && go run -buildvcs=false ./cmd/push --registry '$(REGISTRY)' --images $(abspath $(IMAGES))

.PHONY: release
release: ## Write a release into dist/: make release VERSION=v0.1.0
	cd hack/release && go run -buildvcs=false ./cmd/release --check --version '$(VERSION)'
	rm -rf $(DIST)
	cd hack/release && go run -buildvcs=false ./cmd/release $(RELEASE_FLAGS) --registry '$(REGISTRY)' --out $(DIST)

##@ Check

# Where steps write their output, suites their reports, and the race detector what it finds.
REPORTS := $(BIN)/reports
GATE     = go run ./hack/gate --reports $(REPORTS) --commit $$(git rev-parse HEAD) --seed $(SEED)

# Not empty: also the tests of what was green here and has not changed since.
ALL ?=

.PHONY: test
test: ## Run what every change has to pass: checks, tests on real apiservers, and a few pods on a real node; within the hour
	$(GATE) $(if $(ALL),--all)

.PHONY: full
full: ## Run that with the race detector, and what is slow: test-long, all of e2e, smoke of conformance and benchmarks; hours
	RACE=1 $(GATE) --full --budget 0

# What the tests use besides the programs.
.PHONY: programs
programs: build operators $(TOOLS)/helm $(TOOLS)/kubectl $(TOOLS)/gotestsum
	$(GO_BUILD) -o $(BIN)/podtemplates-syncer ./test/integration/testdata/podtemplates

.PHONY: test-unit
test-unit: $(TOOLS)/gotestsum ## Run the root module's tests with the race detector
	CGO_ENABLED=1 KUBE_CACHE_MUTATION_DETECTOR=true $(call tests,$(RACE_PACKAGES)) -race

# The packages that take longest are tested first.
.PHONY: test-standalone
test-standalone: $(TOOLS)/gotestsum ## Run the tests of the control planes in one process
	cd standalone && KUBE_CACHE_MUTATION_DETECTOR=true $(if $(STANDALONE_RACE),CGO_ENABLED=1) \
		$(call tests,./hosted ./hosted/chain ./...) $(if $(STANDALONE_RACE),-race)

.PHONY: test-dns
test-dns: $(TOOLS)/gotestsum ## Run the tests of the DNS that tenants share, with the race detector
	cd dns && CGO_ENABLED=1 $(call tests,./...) -race

# Operators of other projects, for tests. Those of Cluster API are of the module of its provider, and take minutes to build.
.PHONY: operators
operators:
	cd capi && $(GO_BUILD) -o $(BIN)/capi-core sigs.k8s.io/cluster-api/core
	cd test/operators && $(GO_BUILD) -o $(BIN)/trust-manager github.com/cert-manager/trust-manager/cmd/trust-manager

.PHONY: test-capi
test-capi: build operators $(TOOLS)/gotestsum ## Run the Cluster API provider with Cluster API's own controllers, on real apiservers
	cd capi && $(GO_BUILD) -o $(BIN)/clusterctl sigs.k8s.io/cluster-api/cmd/clusterctl
	cd capi && VC_STANDALONE=$(BIN)/vc-standalone CAPI_CORE=$(BIN)/capi-core CLUSTERCTL=$(BIN)/clusterctl $(call tests,./...)

.PHONY: capi-components
capi-components: ## Write what clusterctl installs into bin/capi: components of both providers, metadata, templates
	cd capi && for p in infrastructure control-plane; do dir=$(BIN)/capi/$$p-nested/$(VERSION); mkdir -p $$dir; \
		go tool kustomize build config/$$p >$$dir/$$p-components.yaml; cp config/metadata.yaml config/samples/*.yaml $$dir; done

# grep reads all that it is given: with -q, it may end before, and the writer fails.
.PHONY: test-plugins
test-plugins: build $(TOOLS)/gotestsum ## Build, test and start the examples of a syncer with a validator, of one with a provider of networks, and of a vc-manager with a provisioner of its own, a module each
	cd test/plugins/example && $(call tests,./...) && $(GO_BUILD) -o $(BIN)/example-syncer .
	$(BIN)/example-syncer --help | grep enable-quota-validation >/dev/null
	cd test/plugins/provisioner && VC_STANDALONE=$(BIN)/vc-standalone $(call tests,./...) && $(GO_BUILD) -o $(BIN)/example-manager .
	$(BIN)/example-manager --help | grep Adopted >/dev/null
	cd test/plugins/vpc && VC_STANDALONE=$(BIN)/vc-standalone $(call tests,./...) && $(GO_BUILD) -o $(BIN)/example-vpc-syncer .
	$(BIN)/example-vpc-syncer --help | grep networks >/dev/null

.PHONY: test-chart
test-chart: build $(TOOLS)/gotestsum ## Run the tests of the Helm chart with Helm's packages: what it makes of values, and which it refuses
	cd test/chart && $(call tests,./...)

.PHONY: test-release
test-release: build $(TOOLS)/gotestsum ## Test what makes a release, with images of the programs in bin/
	cd hack/release && PROGRAMS=$(BIN) $(call tests,./...)

# What both suites on real apiservers need. There is more memory than CPU, so that garbage is collected less often.
PROGRAMS = VC_STANDALONE=$(BIN)/vc-standalone VC_SYNCER=$(BIN)/vc-syncer VC_DNS=$(BIN)/vc-dns VC_MANAGER=$(BIN)/vc-manager VC_HELM=$(TOOLS)/helm VC_KUBECTL=$(TOOLS)/kubectl VC_ETCD=$(BIN)/etcd VC_HOST=$(BIN)/vc-host VC_CAPI_CORE=$(BIN)/capi-core VC_TRUST_MANAGER=$(BIN)/trust-manager VC_PODTEMPLATES_SYNCER=$(BIN)/podtemplates-syncer \
	VC_CUSTOM_RESOURCE_SERVER=$(BIN)/apiextensions-apiserver GOGC=200

# The order of the specs: one for each tree. SEED=7 makes the one of another run.
SEED ?= $(shell printf %d 0x$$(git rev-parse 'HEAD^{tree}' | cut -c1-7))
# Not empty: with the race detector, which finds what no assertion can, and takes half as much CPU again.
RACE ?=
# Suites, and what failed of them once more; with flags of hack/specs.
suites = go run ./hack/specs --reports $(REPORTS) --seed $(SEED) $(2) $(1) -- --no-color
# Not empty: a regular expression of files whose specs do not run.
SKIP_FILES ?=
# A suite on real apiservers: with the race detector, or without and in a budget of CPU time, of which a slow machine needs
# two thirds. If it is not enough, specs have to be cheaper, or get the label long.
specs = $(if $(1),CGO_ENABLED=1 GORACE='log_path=$(REPORTS)/races halt_on_error=1') $(PROGRAMS) \
	$(call suites,$(2),$(if $(1),--race,$(if $(3),--budget $(3)))) --timeout 40m --poll-progress-after 4m --poll-progress-interval 2m \
	$(if $(SKIP_FILES),--skip-file '$(SKIP_FILES)')

# The tests run the syncer in their own process. With three processes, each with a super cluster of its own, two cores are busy.
# Specs with the label long wait for outages, leases and schedules, and each has a shorter one beside it: test-long runs them.
.PHONY: test-integration
test-integration: programs ## Run the tests of the whole path, with vc-standalone and real apiservers
	$(call specs,$(RACE),./test/integration,55m) --label-filter '!long' --procs 3

# Here the mutation detector ends the process of a syncer that changes an object of a cache. It compares all of them each
# second, and so does not run together with the race detector: that would take twice the CPU of the suite.
.PHONY: test-escapes
test-escapes: programs ## Try what a hostile tenant would try, on real apiservers; prints how many attacks were refused
	KUBE_CACHE_MUTATION_DETECTOR=true $(call specs,,./test/escapes,38m) --procs 3

.PHONY: test-long
test-long: programs ## Run what the suite does not: specs that take minutes; at length what is short there, such as outages, kills, a restart among many objects, races for a last slot; attacks and hosted control planes with the race detector
	cd standalone && $(GO_BUILD) -o $(BIN)/ k8s.io/apiextensions-apiserver
	$(call specs,race,./test/integration) --label-filter long --skip 'Under faults' --procs 3
	$(call specs,race,./test/escapes) --procs 3
	AT_LENGTH=1 $(call specs,race,./test/integration) --v --focus 'Under faults|A syncer of several tenants|last slot|vc-host with many tenants'
	AT_LENGTH=1 $(call specs,race,./test/escapes) --v --focus 'Random requests of converted tenants'
	cd standalone && AT_LENGTH=1 $(GO_TEST) -v -timeout 20m -run TestRivals ./hosted/chain
	AT_LENGTH=1 $(MAKE) test-capi TEST_TIMEOUT=30m
	cd standalone && CGO_ENABLED=1 $(GO_TEST) -race -timeout 30m ./hosted/chain ./hosted/controllers

# To find out what is flaky, or no longer: make deflake SUITE=./test/escapes TIMES=20 FLAGS="--focus 'of another tenant'"
SUITE ?= ./test/integration
TIMES ?= 10
FLAGS ?= --label-filter '!long' --procs 3

.PHONY: deflake
deflake: SEED = $$run
deflake: programs ## Run a suite TIMES times, each in another order, beside a load of all cores
	@trap 'kill $$(jobs -p)' EXIT; for core in $$(seq $$(nproc)); do while :; do :; done & done; red=0; \
	for run in $$(seq $(TIMES)); do echo "=== run $$run of $(TIMES)"; $(call specs,$(RACE),$(SUITE)) $(FLAGS) || red=$$((red + 1)); done; \
	echo "=== $$red of $(TIMES) red"; [ $$red = 0 ]

E2E = CGO_ENABLED=0 VC_STANDALONE=$(BIN)/vc-standalone VC_HELM=$(TOOLS)/helm VC_IMAGES=$(BIN)/installed VC_PREVIOUS=$(BIN)/previous \
	VC_TRAEFIK_IMAGES=$(BIN)/traefik/images $(call suites,$(patsubst %/suite_test.go,./%,$(wildcard test/e2e/suite_test.go test/e2e/*/suite_test.go))) \
	--timeout 60m --v

# The tags are those of the two versions between which the specs of an installation upgrade.
.PHONY: installed-images
installed-images: build $(TOOLS)/helm ## Build images of the programs in bin/ for a real node into bin/installed, to install the chart there
	cd hack/release && for v in v0.0.1 v0.0.2; do go run -buildvcs=false ./cmd/images --version $$v --built $(BIN) --out $(BIN)/installed; done

# The version from which a spec upgrades: the last release, and before the first one a commit whose chart can be installed.
PREVIOUS ?= $(shell git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || echo 8a71350049a5)

.PHONY: previous-images
previous-images: ## Build an earlier version, of git, to upgrade from: make previous-images PREVIOUS=v0.1.0
	rm -rf $(BIN)/previous $(BIN)/earlier $(BIN)/installed/*_v0.0.0.oci.tar
	@if ! git cat-file -e '$(PREVIOUS)^{commit}' 2>/dev/null; then \
		echo 'git has no $(PREVIOUS), and so no spec upgrades from it; git fetch --unshallow --tags gets it'; exit; fi; \
	mkdir -p $(BIN)/earlier && git archive '$(PREVIOUS)' | tar -x -C $(BIN)/earlier && \
	$(MAKE) -C $(BIN)/earlier build VERSION=v0.0.0 && cd $(BIN)/earlier/hack/release && \
	go run -buildvcs=false ./cmd/images --version v0.0.0 --built $(BIN)/earlier/bin --out $(BIN)/installed && \
	mkdir $(BIN)/previous && mv $(BIN)/earlier/charts $(BIN)/previous && rm -rf $(BIN)/earlier

.PHONY: e2e
e2e: node-can-run node installed-images previous-images traefik ## Run the tests with containers, on a real node of this machine: root on Linux
	$(E2E)
	cd test/plugins/vpc && VC_STANDALONE=$(BIN)/vc-standalone VC_REAL_NODE=1 $(GO_TEST) -count=1 -timeout $(TEST_TIMEOUT) -run TestPodsOnARealNode .

.PHONY: e2e-smoke
e2e-smoke: node-can-run node installed-images ## Run the quick ones of them
	$(E2E) --label-filter smoke

CONFORMANCE = go run -buildvcs=false ./test/conformance $(CONFORMANCE_FLAGS)

.PHONY: conformance
conformance: node-can-run conformance-suite ## Run Kubernetes' conformance suite directly and through a tenant; hours, goes on where it was stopped
	$(CONFORMANCE) --document docs/conformance.md

# One or two specs of what a tenant is made of: pods, tokens, DNS, services, webhooks, logs.
SMOKE := via environment|mount an API token|DNS for the cluster|a basic endpoint from pods|able to deny pod|filter logs

.PHONY: conformance-smoke
conformance-smoke: node-can-run conformance-suite ## Run a handful of its specs through a tenant
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(CONFORMANCE) --on shared --focus '$(SMOKE)' --results "$$dir"

# What needs no containers: the API machinery and authentication.
RIVALS := sig-api-machinery|sig-auth

.PHONY: conformance-rivals
conformance-rivals: conformance-suite ## Run its specs of the API in two tenants at once, while an oracle checks the keys of every request
	cd standalone && $(GO_BUILD) -ldflags '-s -w $(KUBE_LDFLAGS)' -o $(BIN)/ ./hosted/oracle/cmd/vc-standalone-oracle
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(CONFORMANCE) --rivals --procs 2 --focus '$(RIVALS)' --results "$$dir"

.PHONY: bench
bench: build node-policies ## Measure throughput, latency, fairness and costs; a quarter of an hour, results in test/bench/results
	$(BIN)/vc-bench $(BENCH_FLAGS)

# A part of the node, whose memory the scenario networks measures.
.PHONY: node-policies
node-policies:
	cd standalone && $(GO_BUILD) -ldflags '-s -w $(KUBE_LDFLAGS)' -o $(BIN)/node/ ./nodes/cmd/node-policies

# The packages with benchmarks in folders: go test would link the tests of all others too, and run none.
benchmarks = $(addprefix ./,$(sort $(dir $(shell grep -rl '^func Benchmark' --include='*_test.go' $(1)))))

.PHONY: bench-micro
bench-micro: ## Run the benchmarks of the syncer's hot paths
	$(GO_TEST) -run '^$$' -bench . -benchmem $(call benchmarks,syncer)

BENCH_HOSTING = cd standalone && go run -buildvcs=false ./bench/cmd/bench-hosting

.PHONY: bench-gateway
bench-gateway: build ## Latency, throughput and memory that vc-gateway adds, in front of a real apiserver and of a server that answers at once
	$(BIN)/vc-bench --scenarios gateway --nodes 2 --runs 3 $(BENCH_FLAGS)
	$(GO_TEST) -run '^$$' -bench . -benchtime 3s ./gateway/front

.PHONY: bench-converted
bench-converted: build ## Requests, creation and memory of converted tenants; the conversion of a pod. With BENCH_FLAGS=--converted-tenants=2000, that many
	$(BIN)/vc-bench --scenarios converted --nodes 2 --runs 3 $(BENCH_FLAGS)
	$(GO_TEST) -run '^$$' -bench . -benchtime 2s -count 3 ./gateway/convert/document

.PHONY: bench-hosting
bench-hosting: ## Measure what hosted control planes cost, as a table in Markdown; half an hour
	$(BENCH_HOSTING) $(BENCH_FLAGS)

.PHONY: bench-dns
bench-dns: ## Measure what the shared DNS costs for each tenant, and its answers to a tenant with many networks; half a minute
	cd dns && $(GO_TEST) -count 1 -v -run TestCost ./tenants
	cd dns && $(GO_TEST) -count 5 -run '^$$' -bench BenchmarkNetworks -benchtime 20000x ./tenants

.PHONY: bench-smoke
bench-smoke: build node-policies ## Run every benchmark in a tiny size, to see that it works
	$(BIN)/vc-bench --smoke $(BENCH_FLAGS)
	$(GO_TEST) -run '^$$' -bench . -benchtime 1x $(call benchmarks,syncer gateway/convert)
	$(BENCH_HOSTING) --smoke
	$(BENCH_HOSTING) --smoke --isolation Dedicated --figures memory,requests,sleep

.PHONY: lint
lint: lint-generated lint-format lint-modules lint-words lint-code ## Check the code: linters, formatting, words, go.mod and generated files up to date

.PHONY: lint-generated
lint-generated: generate
	@changed=$$(git status --porcelain -- $(GENERATED)); if [ -n "$$changed" ]; then \
		git --no-pager diff -- $(GENERATED); \
		printf 'Generated files are not those of the sources. Commit what make generate writes:\n%s\n' "$$changed" >&2; exit 1; fi

.PHONY: lint-format
lint-format:
	@files=$$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 gofmt -l); if [ -n "$$files" ]; then \
		printf 'Not formatted; make fmt does it:\n%s\n' "$$files" >&2; exit 1; fi

# Reads nothing from the network but modules that the cache does not have yet.
.PHONY: lint-modules
lint-modules:
	@for mod in $$(git ls-files --cached --others --exclude-standard go.mod '*/go.mod'); do \
		(cd "$$(dirname "$$mod")" && go mod tidy -diff) || { \
			printf '%s is not tidy; go mod tidy does it\n' "$$mod" >&2; exit 1; }; done

.PHONY: lint-words
lint-words: ## Check documents, comments and messages for phrases to avoid
	go run ./hack/words

.PHONY: lint-code
lint-code: $(TOOLS)/golangci-lint
	$(TOOLS)/golangci-lint run ./...
	cd standalone && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd dns && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd capi && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd test/plugins/example && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd test/plugins/provisioner && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd test/plugins/vpc && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd test/node && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd test/chart && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...
	cd hack/release && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...

# The tools are pinned by the module in hack/tools; nothing is installed outside of bin/tools.
$(TOOLS)/controller-gen: TOOL = sigs.k8s.io/controller-tools/cmd/controller-gen
$(TOOLS)/gotestsum: TOOL = gotest.tools/gotestsum
$(TOOLS)/golangci-lint: TOOL = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/%: hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && go build -o $@ $(TOOL)

# Helm is the version that the tests of the chart are written for.
$(TOOLS)/helm: test/chart/go.mod test/chart/go.sum
	cd test/chart && go build -o $@ helm.sh/helm/v4/cmd/helm

# kubectl is that of the node: of the same module and with the same flags, so that it is compiled once.
$(TOOLS)/kubectl: standalone/go.mod standalone/go.sum
	cd standalone && $(GO_BUILD) -ldflags '-s -w $(KUBE_LDFLAGS)' -o $@ k8s.io/kubernetes/cmd/kubectl
