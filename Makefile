# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# xdp-sieve: `make` builds the programs, `sudo make demo` shows them at work, `sudo make check` builds and runs every test,
# and `make deb` packages it.

CXX      ?= g++
CLANG    ?= clang-19
BPFTOOL  ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
B        := build
# `make ARCH=arm64 ...` cross-compiles into build/arm64 (docs/arm64.md).
ifeq ($(ARCH),arm64)
B        := build/arm64
AR       := aarch64-linux-gnu-ar
ifeq ($(origin CXX),default)
CXX      := aarch64-linux-gnu-g++
endif
endif
# clang compiles the tests without optimisation in a third of the time that g++ takes with little of it.
ifeq ($(CXX),g++)
TEST_CXX ?= $(CLANG:clang%=clang++%)
else
TEST_CXX ?= $(CXX)
endif
# clang includes the vendor in the triplet, too.
TRIPLET  := $(subst -pc-,-,$(shell $(CXX) -dumpmachine))
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
# Where zsh looks for completions. Distributions keep theirs in share/zsh/vendor-completions.
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
VERSION  := $(shell sed -n 's/.*version = "\(.*\)";/\1/p' userspace/libsieve/util/text/version.hpp)
# The soname changes with every release that breaks programs built against the previous one.
LIB_SONAME := libsieve.so.1
LIB_REAL := $(LIB_SONAME).$(VERSION)

CXXFLAGS ?= -O2
# Empty where another compiler may warn about other things, as for packages.
WERROR   ?= -Werror
CXXFLAGS += -std=c++20 -Wall -Wextra -Wunused-const-variable $(WERROR)
# The programs, the static library and the shared library share one set of objects. The shared library exports only
# the C interface.
CXXFLAGS += -fPIC -fvisibility=hidden -fvisibility-inlines-hidden
# A filter's bits depend on its list and its seed only, not on the processor: for arm64, g++ would join products and sums
# where it can, and round once instead of twice.
CXXFLAGS += -ffp-contract=off
# g++ 12 reports overflows in the standard library's strings and variants that do not exist. clang warns about fields
# that libbpf's option macros leave zero, and about what g++ 12's std::stable_sort calls. g++ looks for memory to free
# all the while; with a gigabyte at hand it takes an eighth less time, and a fifth more memory.
suited   = $(if $(findstring clang,$1),-Wno-missing-designated-field-initializers -Wno-deprecated-declarations,\
	-Wno-stringop-overflow --param ggc-min-heapsize=1000000)
# Tests that compute much themselves are worth more of the compiler's time.
$(B)/tests/%.o: COMPILER = $(TEST_CXX)
$(B)/tests/%.o: CXXFLAGS += -O0
$(B)/tests/bpf/%.o $(B)/tests/model/%.o $(B)/tests/unit/analysis/%.o $(B)/tests/unit/build/%.o \
$(B)/tests/unit/filters/%.o $(B)/tests/unit/sieve-lab/%.o: CXXFLAGS += -O1
$(B)/tests/bench/%.o: CXXFLAGS += -O2
# ThreadSanitizer must not see half of oneTBB: see task_pool.hpp.
$(B)/userspace/libsieve/util/parallel/task_pool.o: CXXFLAGS += -fno-sanitize=thread
$(B)/userspace/libsieve/util/parallel/task_pool.o: PRECOMPILED :=
COMPILER  = $(CXX)
CPPFLAGS += -Iinclude -Iuserspace -Itests -I$(B)/bpf
# Libraries for fetching, unpacking and confining sources, for the daemon's event loop, and for metrics and their HTTP
# server. The installed library does not need them. prometheus-cpp-dev cannot be installed for two architectures side
# by side, so a cross-build names the library by its file. libcurl, libarchive and libpcap are opened by their first
# calls: library_on_demand.hpp.
PROMETHEUS_LIB := $(if $(filter arm64,$(ARCH)),-l:libprometheus-cpp-core.so.1.0,-lprometheus-cpp-core)
SERVICE_LIBS := -Wl,--push-state,--as-needed -lseccomp -lsystemd -lmicrohttpd \
	$(PROMETHEUS_LIB) -Wl,--pop-state
# Only the programs of the package xdp-sieve-fleet.
FLEET_LIBS := -lcrypto -lzstd
LIBS     := -lxdp -lbpf -lmnl -lelf -lz -lfmt -lxxhash -ltbb -lpthread
# Objects name their sources from the tree's root, so that the same sources give the same bytes anywhere.
BPFFLAGS := -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror -ffile-prefix-map=$(CURDIR)=. -Iinclude \
	-I/usr/include/$(TRIPLET)

# The rooms of user space, the highest first, as the linker wants them. NAME/* is each folder in NAME.
ROOMS    := $(patsubst userspace/%/,%,$(wildcard $(patsubst %,userspace/%/,\
	$(shell sed 's/[\#|].*//' userspace/rooms | tac))))
# Scripts that call make themselves. Whoever asks for nothing else need not wait until the sources are grouped.
SCRIPTS  := check demo deps
# Sorted: the order of a folder differs between machines, and the linker keeps it.
SRC      := $(if $(filter-out $(SCRIPTS),$(or $(MAKECMDGOALS),all)),\
	$(sort $(shell find userspace $(addprefix tests/,bpf fleet model service unit) -name '*.cpp')))
LIB_HEADERS := userspace/libsieve/api/libsieve.h userspace/libsieve/api/libsieve.hpp
# Sources are compiled in groups, so that the compiler reads their headers once: see docs/testing.md. `make GROUPED=`
# compiles each source alone. A folder that was built one way stays so.
ifeq ($(origin GROUPED),undefined)
GROUPED  := $(if $(wildcard $(B)/userspace),$(wildcard $(B)/userspace/libsieve/*/group_1.cpp),1)
endif
# A group reads the headers that most sources include from here, compiled once. `make PRECOMPILED=` goes without.
PRECOMPILED ?= $(B)/precompiled
# These sources stay alone, since programs take them without the rest of their room, or need other options.
SINGLE   := %/main.cpp tests/unit/messages% tests/service/servers.cpp \
	$(addprefix userspace/libsieve/,service/config/configuration_toml.cpp util/parallel/task_pool.cpp)
# $(call objects,SOURCES,FOLDER): their objects in the folder.
objects   = $(patsubst %.cpp,$2/%.o,$(if $(GROUPED),$(filter $(SINGLE),$1) \
	$(shell scripts/group_sources.py $2 $(filter-out $(SINGLE),$1)),$1))
OBJ      := $(call objects,$(SRC),$(B))
# $(call below,FOLDER...): the objects of the sources in these folders.
below     = $(filter $(addprefix $(B)/,$(1:=/%)),$(OBJ))
USER_OBJ := $(call below,userspace)
# $(call objects_of,ROOM): those of its folder that are in no room inside it. Programs name their main.o themselves.
inside    = $(patsubst %,$(B)/userspace/%,$(1:=/%))
objects_of = $(filter-out %/main.o $(call inside,$(filter $1/%,$(ROOMS))),$(filter $(call inside,$1),$(USER_OBJ)))
# $(call libraries,ROOM...): each room is a library.
libraries = $(foreach room,$(filter $1,$(ROOMS)),$(B)/rooms/$(subst /,-,$(room)).a)
# Rooms that read, decide, talk and report compile in little more than half of the time with -Og, and so do keys,
# prefixes and joint filters, at the price of builds that take up to 3% longer. Filters and models are loops, so the
# vectoriser pays off.
QUICK    := $(addprefix libsieve/util/,files random results system text) libsieve/keys libsieve/build \
	$(addprefix libsieve/filters/,joint kinds prefixes) libsieve/packets \
	libsieve/image libsieve/feeds libsieve/feeds/% $(addprefix libsieve/kernel/,hooks host maps programs) \
	libsieve/control libsieve/control/% libsieve/api libsieve/fleet libsieve/fleet/% front-end front-end/% \
	libsieve/service/% xdp-sieve xdp-sieve/% xdp-sieved xdp-sieve-fleet sieve-bench sieve-lab
$(foreach room,$(filter $(QUICK),$(ROOMS)),$(call objects_of,$(room))) $(filter %/main.o,$(USER_OBJ)): CXXFLAGS += -Og
$(foreach room,$(filter-out $(QUICK) libsieve/bench%,$(ROOMS)),$(call objects_of,$(room))): CXXFLAGS += -O3
# The installed library.
LIB_ROOMS := $(filter-out libsieve/service/% libsieve/fleet% libsieve/bench%,$(filter libsieve/%,$(ROOMS)))
LIB_OBJ  := $(foreach room,$(LIB_ROOMS),$(call objects_of,$(room)))
# What the unit tests link: all.
UNIT_ROOMS := $(ROOMS)
# What programs link: rooms below their own, but for those that only some of them need.
LIBSIEVE := $(call libraries,$(filter-out libsieve/api,$(LIB_ROOMS)))
SERVICE  := $(call libraries,libsieve/service/%) $(LIBSIEVE)
FLEET    := $(call libraries,libsieve/fleet%) $(SERVICE)
FRONT_END := $(call libraries,front-end front-end/%)
MEASURING := $(call libraries,libsieve/bench%)
SERVICE_TEST_OBJ := $(call below,tests/service)
FLEET_TEST_OBJ := $(call below,tests/fleet)
UNIT_OBJ := $(call below,tests/unit tests/model)
KERN_OBJ := $(call below,tests/bpf tests/model)
# Each source is a program.
MEASUREMENT_OBJ := $(patsubst %.cpp,$(B)/%.o,$(sort $(wildcard tests/bench/*.cpp)))

# One object for each hook: XDP, and tc's ingress and egress. The one that notes flows is nothing without a controller,
# so it is not installed.
PROGRAMS := xdp_sieve xdp_sieve_tc
BPF_OBJ  := $(PROGRAMS:%=$(B)/%.bpf.o)
NOTE_OBJ := $(B)/sieve_note.bpf.o
SKELETON := $(patsubst %,$(B)/bpf/%.skel.h,$(PROGRAMS) sieve_note)
BENCH_SKELETON := $(B)/bpf/sieve_bench.skel.h $(B)/bpf/reply_bench.skel.h

.DELETE_ON_ERROR:
.PHONY: all programs tests deps check faults sanitize coverage vmtest soak demo demo-fleet bench bench-pages sizing figures install install-fleet install-lab uninstall deb \
	deb-test oci oci-test clean format tidy

all: programs

tests: $(B)/unit-tests $(B)/bpf-tests $(B)/service-tests $(B)/fleet-tests

# What `make install`, `make install-fleet` and `make install-lab` install.
FLEET_PROGRAMS := $(B)/fleet/xdp-sieve $(B)/fleet/xdp-sieved
programs: $(BPF_OBJ) $(B)/libsieve.so $(B)/libsieve.a $(B)/xdp-sieve $(B)/xdp-sieved $(FLEET_PROGRAMS) \
	$(B)/sieve-lab $(B)/sieve-bench

deps:
	scripts/install-deps.sh

$(BPF_OBJ) $(NOTE_OBJ): $(B)/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h include/sieve/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(BPFFLAGS) -c $< -o $@

$(SKELETON): $(B)/bpf/%.skel.h: $(B)/%.bpf.o
	@mkdir -p $(@D)
	$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(BENCH_SKELETON:.skel.h=.bpf.o): $(B)/bpf/%.bpf.o: bpf/bench/%.bpf.c $(wildcard bpf/bench/*.h bpf/*.h include/sieve/*.h)
	@mkdir -p $(@D)
	$(CLANG) $(BPFFLAGS) -c $< -o $@

$(BENCH_SKELETON): %.skel.h: %.bpf.o
	$(BPFTOOL) gen skeleton $< name $(*F)_bpf > $@

# The benchmark's controller shares a header with the benchmark's BPF programs.
BENCH_OBJ := $(filter $(B)/userspace/libsieve/bench/%,$(USER_OBJ))
$(BENCH_OBJ) $(B)/tests/bpf/live_exact_test.o: CPPFLAGS += -I.
$(BENCH_OBJ) $(KERN_OBJ) $(MEASUREMENT_OBJ): | $(BENCH_SKELETON)

# `make coverage` counts the lines of the tested code, not those of the tests.
$(B)/userspace/%.o: INSTRUMENT = $(COVERAGE)
LIBS     += $(COVERAGE)

COMPILE   = PRECOMPILED=$(PRECOMPILED) scripts/compile.sh $< $@ $(COMPILER) -iquote . $(CPPFLAGS) $(CXXFLAGS) \
	$(call suited,$(COMPILER)) $(INSTRUMENT)
$(B)/%.o: %.cpp | $(SKELETON)
	@mkdir -p $(@D)
	$(COMPILE)

# A group names its sources from the tree's root.
$(B)/%.o: $(B)/%.cpp | $(SKELETON)
	$(COMPILE)

$(B)/libsieve.a: $(LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^

LIB_MAP := userspace/libsieve/api/libsieve.map
$(B)/$(LIB_REAL): $(LIB_OBJ) $(LIB_MAP)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(LIB_SONAME) -Wl,--version-script=$(LIB_MAP) -Wl,--no-undefined \
		$(LIB_OBJ) $(LIBS) -o $@

$(B)/libsieve.so: $(B)/$(LIB_REAL)
	ln -sf $(LIB_REAL) $(B)/$(LIB_SONAME)
	ln -sf $(LIB_REAL) $@

define room_library
$(call libraries,$1): $(call objects_of,$1)
endef
$(foreach room,$(ROOMS),$(eval $(call room_library,$(room))))
$(B)/rooms/%.a:
	@mkdir -p $(@D)
	rm -f $@ && $(AR) rcs $@ $^

# Each program is its main() and the rooms that it links, its own the first.
LINK      = mkdir -p $(@D) && $(CXX) $(CXXFLAGS) $(LDFLAGS) $^
main_of   = $(B)/userspace/$1/main.o
$(B)/xdp-sieve: $(call main_of,xdp-sieve) $(call libraries,xdp-sieve xdp-sieve/%) $(FRONT_END) $(SERVICE)
	$(LINK) $(SERVICE_LIBS) $(LIBS) -o $@

$(B)/xdp-sieved: $(call main_of,xdp-sieved) $(call libraries,xdp-sieved) $(FRONT_END) $(SERVICE)
	$(LINK) $(SERVICE_LIBS) $(LIBS) -o $@

# The same two programs with a fleet.
$(FLEET_PROGRAMS): $(B)/fleet/%: $(B)/userspace/xdp-sieve-fleet/%/main.o $(call libraries,xdp-sieve-fleet) \
		$(call libraries,xdp-sieve xdp-sieve/% xdp-sieved) $(FRONT_END) $(FLEET)
	$(LINK) $(FLEET_LIBS) $(SERVICE_LIBS) $(LIBS) -o $@

$(B)/sieve-lab: $(call main_of,sieve-lab) $(call libraries,sieve-lab sieve-lab/%) $(LIBSIEVE)
	$(LINK) $(LIBS) -o $@

$(B)/sieve-bench: $(call main_of,sieve-bench) $(call libraries,sieve-bench front-end/console) $(MEASURING) $(LIBSIEVE)
	$(LINK) $(LIBS) -o $@

# The unit tests also cover the lab's own arithmetic and the command line's parsing.
$(B)/unit-tests: $(UNIT_OBJ) $(call libraries,$(UNIT_ROOMS))
	$(LINK) -lgtest -larchive $(FLEET_LIBS) $(SERVICE_LIBS) $(LIBS) -o $@

# This program starts refreshes, so it has its own main().
$(B)/service-tests: $(SERVICE_TEST_OBJ) $(SERVICE)
	$(LINK) -lgtest $(SERVICE_LIBS) $(LIBS) -o $@

# Real etcd and nginx, and servers that send what they should not.
$(B)/fleet-tests: $(FLEET_TEST_OBJ) $(B)/tests/service/servers.o $(FLEET)
	$(LINK) -lgtest $(FLEET_LIBS) $(SERVICE_LIBS) $(LIBS) -o $@

$(B)/bpf-tests: $(KERN_OBJ) $(MEASURING) $(LIBSIEVE)
	$(LINK) -lgtest -lgtest_main $(LIBS) -o $@

ALL_OBJ := $(USER_OBJ) $(FLEET_TEST_OBJ) $(SERVICE_TEST_OBJ) $(MEASUREMENT_OBJ) $(UNIT_OBJ) $(KERN_OBJ)
-include $(ALL_OBJ:.o=.d)

demo:
	scripts/demo.sh

# A fleet of three nodes, with etcd and nginx.
demo-fleet: $(BPF_OBJ) $(FLEET_PROGRAMS)
	scripts/demo-fleet.sh

check:
	scripts/check.sh

# BENCH holds further arguments, such as --quick or --keys 1e8, and PREFIXES the lists of prefixes. set-bench tabulates
# effort against rate, by kind.
PREFIXES ?= tests/data/de-ipv4.cidr,tests/data/de-ipv6.cidr,table:1e5,table:1e6,table6:2e5
bench: $(B)/sieve-bench $(B)/xdp-sieve $(B)/set-bench $(B)/live-bench $(B)/sandbox-bench
	@mkdir -p $(B)/bench
	$(B)/sieve-bench $(BENCH) --output $(B)/bench/kernel.json
	$(B)/sieve-bench --prefixes $(PREFIXES) $(BENCH) --output $(B)/bench/prefixes.json
	$(B)/set-bench --benchmark_out=$(B)/bench/user.json --benchmark_out_format=json
	$(B)/live-bench --output $(B)/bench/live.json
	$(B)/sandbox-bench

# Measures everything and writes the results, docs/benchmark.md and its figures.
bench-pages: bench $(B)/sieve-lab
	cp $(addprefix $(B)/bench/,kernel.json prefixes.json user.json) docs/results/bench/
	rm -f $(addprefix docs/results/bench/,lookups.json loading.json exact.json)
	scripts/figures.sh

# Lists that change in place, beside nftables.
$(B)/live-bench: $(B)/tests/bench/live_bench.o $(B)/tests/service/servers.o $(SERVICE)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(SERVICE_LIBS) $(LIBS) -o $@

# Lists read and built by children without privileges, beside the same in one process.
$(B)/sandbox-bench: $(B)/tests/bench/sandbox_bench.o $(SERVICE)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ $(SERVICE_LIBS) $(LIBS) -o $@

# Makes the lists of scripts/build_scale.py.
$(B)/write-addresses: $(B)/tests/bench/write_addresses.o
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -o $@

$(B)/set-bench: $(B)/tests/bench/set_bench.o $(MEASURING) $(LIBSIEVE)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) $^ -lbenchmark $(LIBS) -o $@

# Tests the kernel side on other kernels, in QEMU. With ARCH=arm64 it tests that processor instead.
ifeq ($(ARCH),arm64)
vmtest: $(B)/unit-tests $(B)/bpf-tests
	scripts/vmtest_arm64.sh
else
vmtest: $(BPF_OBJ) $(B)/xdp-sieve $(B)/sieve-bench $(B)/bpf-tests
	scripts/vmtest.sh
endif

# Runs every test of the kernel side many times while something else keeps all processors busy. This takes hours.
soak: programs tests
	$(MAKE) --no-print-directory -C tests/selftests all
	ROUNDS=288 tests/selftests/daemon_day.sh
	scripts/soak.sh 10 build/bpf-tests
	scripts/soak.sh 10 $(MAKE) --no-print-directory -s -C tests/selftests run_tests
	scripts/soak.sh 10 scripts/vmtest.sh
	scripts/soak.sh 3 scripts/check.sh

# Injects a fault at every system call of the commands that change something: see docs/faults.md. This takes an hour
# or two. EVERY=10 takes every tenth call; CASES="load swap" and HOOKS=xdp select cases and hooks. Before that it kills
# the daemon at KILLS random moments, 300 if not given, and daemon, etcd or nginx of a fleet at FLEET_KILLS ones, and
# lives a daemon's life of OPERATIONS random operations, 2,000 if not given, drawn by SEED.
faults: $(BPF_OBJ) $(B)/xdp-sieve $(B)/xdp-sieved $(FLEET_PROGRAMS)
	$(MAKE) --no-print-directory -C tests/selftests all
	KILLS=$(or $(KILLS),300) tests/selftests/daemon_kill.sh
	KILLS=$(or $(FLEET_KILLS),50) tests/selftests/fleet.sh
	OPERATIONS=$(or $(OPERATIONS),2000) SEED=$(or $(SEED),$$RANDOM$$RANDOM) tests/selftests/daemon_life.sh
	FAULTS="$(if $(EVERY),--every $(EVERY))" FAULT_CASES="$(CASES)" FAULT_HOOKS="$(HOOKS)" tests/selftests/faults.sh

# Measures how much memory sets take, and writes the table of docs/sizing.md. As root, for the daemon's part.
sizing: $(B)/xdp-sieve $(B)/xdp-sieved $(BPF_OBJ)
	scripts/sizing.py --build $(B) --write

# Draws the papers' tables and figures beside ours: docs/reproduction.md, docs/figures.
figures: $(B)/sieve-lab
	scripts/figures.sh

EXAMPLES := share/doc/xdp-sieve/examples
# Their names start from the folder examples/, here and where they are installed. The example's lists are beside it.
EXAMPLE_FILES := xdp-sieve.toml friends.txt c2.txt blocklist.d/sample.txt \
	$(addprefix monitoring/,xdp-sieve.rules.yml xdp-sieve.rules.test.yml grafana-dashboard.json)
# Where fail2ban looks for what carries out its bans.
FAIL2BAN_ACTION = $(DESTDIR)$(SYSCONFDIR)/fail2ban/action.d/xdp-sieve.conf
# The service reads /etc/xdp-sieve. A tree under another prefix is for packages and tests.
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)
# Each command has a page of its own, made of the one that describes them all.
COMMAND_PAGES = $(addprefix $(B)/man/,$(shell scripts/man_pages.py --list))
MAN_PAGES = $(COMMAND_PAGES) docs/xdp-sieved.8 docs/xdp-sieve.toml.5
LAB_PAGES := docs/sieve-lab.1 docs/sieve-bench.8
# man_page PAGE: where a page goes.
man_page  = $(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $1))/$(notdir $1)
# install_page PAGE: pages name installed files under /usr/local, the default prefix.
install_page = install -d $(dir $(call man_page,$1)) && \
	sed -E 's,/usr/local/(lib|share|sbin/xdp),$(PREFIX)/\1,g' $1 > $(call man_page,$1) && chmod 644 $(call man_page,$1)

$(B)/man/xdp-sieve.8: docs/xdp-sieve.8 scripts/man_pages.py
	scripts/man_pages.py $(@D)
# source file, and installed file
COMPLETIONS := xdp-sieve.bash:$(PREFIX)/share/bash-completion/completions/xdp-sieve \
	xdp-sieve.fish:$(PREFIX)/share/fish/vendor_completions.d/xdp-sieve.fish \
	_xdp-sieve:$(ZSHDIR)/_xdp-sieve
# Links, for shells that look for a file with the command's name.
MORE_COMPLETIONS := $(PREFIX)/share/bash-completion/completions/xdp-sieved \
	$(PREFIX)/share/fish/vendor_completions.d/xdp-sieved.fish
completion_source = $(firstword $(subst :, ,$1))
completion_file   = $(DESTDIR)$(lastword $(subst :, ,$1))

# Where systemd looks for units: /usr/local/lib/systemd/system is one of the places.
UNITDIR ?= $(PREFIX)/lib/systemd/system

install: $(BPF_OBJ) $(B)/libsieve.so $(B)/libsieve.a $(B)/xdp-sieve $(B)/xdp-sieved $(B)/man/xdp-sieve.8
	install -D -m 755 $(B)/xdp-sieve $(DESTDIR)$(PREFIX)/bin/xdp-sieve
	install -D -m 755 $(B)/xdp-sieved $(DESTDIR)$(PREFIX)/sbin/xdp-sieved
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@SBINDIR@|$(PREFIX)/sbin|' userspace/xdp-sieved/xdp-sieved.service.in > $(DESTDIR)$(UNITDIR)/xdp-sieved.service
	chmod 644 $(DESTDIR)$(UNITDIR)/xdp-sieved.service
	install -d -m 755 $(DESTDIR)$(SYSCONFDIR)/xdp-sieve/conf.d
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/xdp-sieve $(BPF_OBJ)
	$(foreach page,$(MAN_PAGES),$(call install_page,$(page)) &&) true
	$(foreach one,$(COMPLETIONS),install -D -m 644 userspace/xdp-sieve/completions/$(call completion_source,$(one)) \
		$(call completion_file,$(one)) &&) true
	for link in $(MORE_COMPLETIONS); do \
		ln -sf "$$(basename $$link | sed s/sieved/sieve/)" $(DESTDIR)$$link; \
	done
	$(foreach one,$(EXAMPLE_FILES),install -D -m 644 examples/$(one) $(DESTDIR)$(PREFIX)/$(EXAMPLES)/$(one) &&) true
	install -D -m 644 examples/fail2ban/xdp-sieve.conf $(FAIL2BAN_ACTION)
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/sieve include/sieve/*.h
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/libsieve $(LIB_HEADERS)
	install -D -m 644 -t $(DESTDIR)$(LIBDIR) $(B)/libsieve.a
	install -D -m 755 -t $(DESTDIR)$(LIBDIR) $(B)/$(LIB_REAL)
	ln -sf $(LIB_REAL) $(DESTDIR)$(LIBDIR)/$(LIB_SONAME)
	ln -sf $(LIB_SONAME) $(DESTDIR)$(LIBDIR)/libsieve.so
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	for name in libsieve libsieve-bpf; do \
		sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIBS)|' \
			userspace/libsieve/api/$$name.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc && \
		chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc; \
	done

# The fleet is not part of `make install`: a host without one has neither its code nor the libraries that it needs.
install-fleet: $(FLEET_PROGRAMS)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/xdp-sieve/fleet $^

# Experiments and benchmark are not part of `make install`: whoever filters packets needs neither.
install-lab: $(B)/sieve-lab $(B)/sieve-bench
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $^
	$(foreach page,$(LAB_PAGES),$(call install_page,$(page)) &&) true

# Removes what `make install` brought, and ends nothing. An administrator's configuration and lists stay.
uninstall:
	@[ -n "$(DESTDIR)" ] || scripts/still-running.sh $(PREFIX)/bin/xdp-sieve
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,xdp-sieve sieve-lab sieve-bench)
	rm -f $(DESTDIR)$(PREFIX)/sbin/xdp-sieved $(DESTDIR)$(UNITDIR)/xdp-sieved.service
	rm -f $(foreach page,$(MAN_PAGES) $(LAB_PAGES),$(call man_page,$(page)))
	rm -f $(EXAMPLE_FILES:%=$(DESTDIR)$(PREFIX)/$(EXAMPLES)/%)
	rm -f $(foreach one,$(COMPLETIONS),$(call completion_file,$(one))) $(MORE_COMPLETIONS:%=$(DESTDIR)%)
	rm -f $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/lib/xdp-sieve/%.bpf.o)
	rm -f $(FLEET_PROGRAMS:$(B)/%=$(DESTDIR)$(PREFIX)/lib/xdp-sieve/%)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/sieve/,$(notdir $(wildcard include/sieve/*.h)))
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/libsieve/,$(notdir $(LIB_HEADERS)))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libsieve.a libsieve.so $(LIB_SONAME) $(LIB_REAL))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/pkgconfig/,libsieve.pc libsieve-bpf.pc)
	for folder in lib/systemd/system lib/systemd lib/xdp-sieve/fleet lib/xdp-sieve include/sieve include/libsieve $(EXAMPLES)/blocklist.d \
			$(EXAMPLES)/monitoring $(EXAMPLES) \
			share/doc/xdp-sieve; do \
		[ ! -d $(DESTDIR)$(PREFIX)/$$folder ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/$$folder; \
	done
	rm -f $(FAIL2BAN_ACTION)
	for folder in fail2ban/action.d fail2ban; do \
		[ ! -d $(DESTDIR)$(SYSCONFDIR)/$$folder ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(SYSCONFDIR)/$$folder; \
	done
	for folder in xdp-sieve/conf.d xdp-sieve; do \
		[ ! -d $(DESTDIR)$(SYSCONFDIR)/$$folder ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(SYSCONFDIR)/$$folder; \
	done

# Debian packages of this tree: docs/packaging.md. They are in build/deb; with RELEASE=trixie they are built in a Debian of
# that release, and are in build/deb-trixie.
DEBS := $(B)/deb$(RELEASE:%=-%)
deb:
	$(if $(RELEASE),scripts/deb-release.sh $(RELEASE),scripts/deb.sh)

# Installs, uses, upgrades and purges these packages in a Debian that debootstrap makes. Then builds them again and
# compares: with RELEASE, not again, for this compares builds of this machine.
deb-test: export RELEASE := $(RELEASE)
deb-test: deb
	tests/packages/chroot.sh $(DEBS)
	tests/packages/systemd.sh $(DEBS)
	$(if $(RELEASE),,tests/packages/reproducible.sh $(DEBS))

# A container image of these packages, and its test: docs/containers.md.
oci: deb
	$(if $(RELEASE),RELEASE=$(RELEASE)) examples/oci/build.sh $(DEBS)

oci-test: deb
	$(if $(RELEASE),RELEASE=$(RELEASE)) tests/packages/oci.sh $(DEBS)

format:
	find bpf include userspace tests \( -name '*.[ch]' -o -name '*.[ch]pp' \) -exec clang-format -i {} +

# The analyser reports a leak in xdp_sieve.skel.h. bpftool generates that header, so the leak is not ours.
tidy: $(SKELETON) $(BENCH_SKELETON)
	printf '%s\n' $(filter userspace/%,$(SRC)) | xargs -P $$(nproc) -n 1 sh -c \
		'clang-tidy --quiet "$$0" -- -std=c++20 $(CPPFLAGS) -I. 2>/dev/null'

clean:
	rm -rf $(B)

# `sanitize` runs the tests under clang's sanitizers. `coverage` shows which lines the tests run. PARTS and SUITES
# select: see docs/sanitizers.md.
sanitize:
	scripts/sanitize.sh $(PARTS)

coverage:
	scripts/coverage.sh $(SUITES)

include tests/fuzz/fuzz.mk
