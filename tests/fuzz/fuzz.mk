# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The fuzz targets: clang's libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer, in build/fuzz.
# tests/fuzz/NAME_fuzz.cpp is the target NAME. scripts/fuzz.sh runs them; docs/fuzzing.md says what they prove.

FUZZ        := $(B)/fuzz
FUZZ_CC     ?= clang-19
FUZZ_CXX    ?= clang++-19
FUZZ_NAMES  := bans capture changes configuration decisions feed image key list_format packet set_argument
FUZZ_BIN    := $(FUZZ_NAMES:%=$(FUZZ)/%)
FUZZ_FLAGS  := -O0 -g1 -fno-omit-frame-pointer -Wall -Wextra -Werror \
               -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined $(FUZZ_COUNTERS)

# The folders of libsieve that read untrusted input are built with the sanitizers. The code that they need comes from
# the normal library, which saves most of the build time. Its groups define again what is built here, which is linked
# first and holds.
FUZZ_ROOMS   := util keys feeds packets image
FUZZ_LIB_SRC := $(shell find $(FUZZ_ROOMS:%=userspace/libsieve/%) -name '*.cpp') \
                $(sort $(wildcard $(addprefix userspace/libsieve/filters/kinds/,*.cpp */*_kind.cpp exact/*.cpp)))
FUZZ_CLI_OBJ := $(addprefix $(FUZZ)/userspace/,front-end/set_argument.o libsieve/control/spec/build_options.o \
                libsieve/service/download/http_access.o)
FUZZ_TOML_SRC := $(wildcard $(addprefix userspace/libsieve/service/config/,*.cpp values/*.cpp)) \
                 $(addprefix userspace/libsieve/service/,safety/guards.cpp $(addprefix download/,exposed_password.cpp \
                 http_access.cpp libcurl_on_demand.cpp url.cpp))
FUZZ_OBJ     := $(call objects,$(FUZZ_LIB_SRC) $(FUZZ_TOML_SRC),$(FUZZ))
FUZZ_TOML_OBJ := $(FUZZ)/userspace/libsieve/control/spec/build_options.o \
                $(filter $(FUZZ)/userspace/libsieve/service/%,$(FUZZ_OBJ))
FUZZ_LIVE_OBJ := $(addprefix $(FUZZ)/userspace/libsieve/service/lists/,timed_entry.o decision_file.o timed_entry_record.o \
                 ban.o decisions.o plain_addresses.o record_log.o)
FUZZ_LIB_OBJ := $(filter-out $(FUZZ_TOML_OBJ),$(FUZZ_OBJ))
# The packet path's parser, once for each hook, and the noting program.
FUZZ_PARSERS := $(patsubst %,$(FUZZ)/tests/fuzz/packet_parser_%.o,XDP TC NOTE)
FUZZ_OWN_OBJ := $(patsubst %,$(FUZZ)/%.o,$(basename $(wildcard tests/fuzz/*.cpp tests/model/*.cpp))) \
                $(FUZZ_CLI_OBJ) $(FUZZ_TOML_OBJ) $(FUZZ_LIVE_OBJ) $(FUZZ_PARSERS)

# Where the targets spend their time. The rest compiles in half of the time without optimisation.
$(FUZZ_PARSERS) $(addprefix $(FUZZ)/,tests/model/%.o tests/fuzz/%.o \
$(addprefix userspace/libsieve/,filters/kinds/exact/%.o image/%.o keys/%.o packets/%.o feeds/text/%.o)): FUZZ_FLAGS += -O1

.PHONY: fuzz fuzz-build fuzz-stack

# The words of these targets' dictionaries that the code lists itself.
FUZZ_DICT    := $(FUZZ)/configuration.dict $(FUZZ)/set_argument.dict

fuzz-build: $(FUZZ_BIN) $(FUZZ_DICT)

$(FUZZ_DICT): $(FUZZ)/%.dict: tests/fuzz/%.dict $(FUZZ)/%
	{ cat $< && $(FUZZ)/$* --words; } >$@

# TIME: seconds for each target. TARGETS: some of the targets. Without TARGETS, root also fuzzes against the stack.
fuzz: fuzz-build
	scripts/fuzz.sh --time $(or $(TIME),60) $(TARGETS)
	$(if $(TARGETS),,[ "$$(id -u)" -ne 0 ] || $(MAKE) --no-print-directory fuzz-stack)

# Sends random frames into interfaces with the filter in force, TIME seconds in each mode. The kernel's stack must
# deliver none from a listed source. Each run draws other frames; SEED repeats a run.
fuzz-stack: $(B)/xdp-sieve $(BPF_OBJ)
	TIME=$(or $(TIME),60) SEED=$${SEED:-$$(date +%s)} tests/selftests/stack.sh

FUZZ_COMPILE = PRECOMPILED=$(PRECOMPILED) scripts/compile.sh $< $@ $(FUZZ_CXX) -iquote . $(CPPFLAGS) -std=c++20 \
	$(FUZZ_FLAGS)
$(FUZZ)/%.o: %.cpp
	@mkdir -p $(@D)
	$(FUZZ_COMPILE)

$(FUZZ)/%.o: $(FUZZ)/%.cpp
	$(FUZZ_COMPILE)

# toml++ 3.3 assumes that no character lies between the blocks of its table of blanks, but U+03DA does. The comparison
# that follows is right all the same.
$(FUZZ)/userspace/libsieve/service/config/configuration_toml.o: FUZZ_FLAGS += -fno-sanitize=unreachable
$(FUZZ)/userspace/libsieve/service/config/configuration_toml.o: PRECOMPILED :=

# The packet path reads headers at any alignment, as BPF may.
$(FUZZ_PARSERS): $(FUZZ)/tests/fuzz/packet_parser_%.o: tests/fuzz/packet_parser.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_FLAGS) -fno-sanitize=alignment -Wno-unused-function -DPACKET_PARSER_$* \
		-MMD -MP -c $< -o $@

$(FUZZ)/libsieve.a: $(FUZZ_LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^

$(FUZZ)/packet: $(FUZZ_PARSERS) $(FUZZ)/tests/model/parse_model.o $(FUZZ)/tests/model/reply_model.o
$(FUZZ)/feed $(FUZZ)/key: $(FUZZ)/tests/model/entry_model.o
$(FUZZ)/capture: $(FUZZ)/tests/model/link_model.o
$(FUZZ)/changes: $(FUZZ)/tests/model/exact_model.o
$(FUZZ)/image: $(addprefix $(FUZZ)/tests/,fuzz/guarded_pages.o model/exact_model.o model/image_model.o model/ranges_model.o)
$(FUZZ)/image: FUZZ_LINK := -Wl,--wrap=mmap,--wrap=munmap,--wrap=madvise
$(FUZZ)/set_argument: $(FUZZ_CLI_OBJ)
$(FUZZ)/configuration: $(FUZZ_TOML_OBJ)
$(FUZZ)/bans $(FUZZ)/decisions: $(FUZZ_LIVE_OBJ)
$(filter-out $(FUZZ)/packet,$(FUZZ_BIN)): $(FUZZ)/libsieve.a
$(FUZZ)/image $(FUZZ)/changes $(FUZZ)/set_argument $(FUZZ)/configuration: $(B)/libsieve.a

$(FUZZ_BIN): $(FUZZ)/%: $(FUZZ)/tests/fuzz/%_fuzz.o
	$(FUZZ_CXX) -fsanitize=fuzzer,address,undefined -Wl,-z,muldefs $(FUZZ_COUNTERS) $(FUZZ_LINK) $^ $(LIBS) -o $@

-include $(FUZZ_LIB_OBJ:.o=.d) $(FUZZ_OWN_OBJ:.o=.d)
