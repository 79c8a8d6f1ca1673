# SPDX-License-Identifier: Apache-2.0
# Thin: what to do is in scripts/, what to build in meson.build. CONTRIBUTING.md explains the tiers.
BUILD := build/release
SLUICE := $(BUILD)/src/app/cmd/sluice

.PHONY: all run test check test-deep bench fuzz fmt clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD) src/app/cmd/sluice

$(BUILD)/build.ninja:
	scripts/setup run
	meson setup $(BUILD) --buildtype=release -Dtests=false

# Builds the server, starts it, sends it telemetry and reports. ARGS="--json" for one object.
run: all
	$(SLUICE) demo $(ARGS)

test:
	scripts/setup test
	scripts/test all

# Unit, simulation and style in under a minute.
check:
	scripts/setup check
	scripts/test check

test-deep:
	scripts/setup deep
	scripts/test deep

bench: all
	scripts/setup bench
	scripts/bench $(B)

fuzz:
	scripts/setup test
	scripts/test fuzz

fmt:
	git ls-files 'src/*.[ch]' 'test/*.[ch]' 'bench/*.[ch]' 'examples/*.c' | xargs clang-format-14 -i

clean:
	rm -rf build
