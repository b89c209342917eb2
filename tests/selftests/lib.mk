# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The few rules of the kernel's lib.mk that the selftests need: all, run_tests, clean.

CLANG  ?= clang-19
BUILD  ?= $(abspath ../../build)
OUTPUT ?= $(BUILD)/selftests
ARCH   := $(shell $(CXX) -dumpmachine)

.DELETE_ON_ERROR:
.PHONY: all run_tests clean

all: $(TEST_GEN_FILES:%=$(OUTPUT)/%)

$(OUTPUT)/%.bpf.o: %.bpf.c
	@mkdir -p $(@D)
	$(CLANG) -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror -I/usr/include/$(ARCH) -c $< -o $@

# This program makes a command fail at a system call (tests/faults).
$(OUTPUT)/inject: ../faults/inject.cpp
	@mkdir -p $(@D)
	$(CXX) -O2 -std=c++20 -Wall -Wextra -Werror $< -o $@

run_tests: all
	@ALL_SKIPPED=0 BUILD=$(BUILD) exec ./runner.sh $(TEST_PROGS) # make tells it alone to end

clean:
	rm -rf $(OUTPUT)
