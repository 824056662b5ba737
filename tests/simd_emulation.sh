#!/bin/bash
# Runs programs on emulated CPUs without AVX, with AVX only, with AVX and FMA, and with AVX2.
#
#   tests/simd_emulation.sh [--build DIR] [--cpu NAME]... [-- COMMAND...]
#
# On each CPU (all four, or those named: nehalem, sandybridge, piledriver, haswell) it checks that the
# right tier is chosen and runs the kernel tests; then COMMAND, whose environment holds the expected
# tier as GLAIVE_EXPECTED_TIER. COMMAND must start with a program file (the emulator does not follow
# a script's first line). Needs qemu-user.
set -euo pipefail

build=build/release
cpus=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --cpu) cpus+=("$2"); shift 2 ;;
    --) shift; break ;;
    *) echo "simd_emulation: unknown argument '$1'" >&2; exit 2 ;;
  esac
done
[ ${#cpus[@]} -gt 0 ] || cpus=(nehalem sandybridge piledriver haswell)

# QEMU's model of the CPU, and the tier that the library must choose on it. QEMU lacks XOP and FMA4,
# so the CPU with FMA but without AVX2 is a Haswell with AVX2 taken away.
describe() {
  case $1 in
    nehalem) model=Nehalem tier=scalar ;;
    sandybridge) model=SandyBridge tier=avx ;;
    piledriver) model=Haswell,-avx2 tier=avx_fma ;;
    haswell) model=Haswell tier=avx2_fma ;;
    *) echo "simd_emulation: unknown CPU '$1'" >&2; exit 2 ;;
  esac
}

command -v qemu-x86_64 >/dev/null || { echo "simd_emulation: install qemu-user" >&2; exit 2; }
test_program=$build/simd_test
[ -x "$test_program" ] || { echo "simd_emulation: build $test_program first" >&2; exit 2; }
unset GLAIVE_SIMD

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Emulated, with QEMU's remarks on CPU features it does not know left out.
emulate() {
  timeout --kill-after=10 600 qemu-x86_64 -cpu "$model" "$@" >"$log" 2>&1
  local code=$?
  grep -v "^qemu-x86_64: warning: TCG doesn't support" "$log" || true
  return $code
}

for cpu in "${cpus[@]}"; do
  describe "$cpu"
  chosen=$(emulate "$test_program" --gtest_filter=Dispatch.PrintsItsChoice | sed -n 's/^simd tier: //p')
  if [ "$chosen" != "$tier" ]; then
    echo "simd_emulation: $cpu: the tier is '$chosen', expected '$tier'" >&2
    exit 1
  fi
  # QEMU reads masked-off lanes too, which real CPUs do not: no guard pages. The choice by environment
  # starts processes, which would not be emulated.
  if ! output=$(emulate "$test_program" \
      --gtest_filter='-*.ReadsNothingPastTheEnd:Dispatch.TheEnvironmentForcesATier:Dispatch.WrongTiers*'); then
    echo "$output" | tail -40
    echo "simd_emulation: $cpu: the kernel tests failed" >&2
    exit 1
  fi
  # Forced tiers: each one that this CPU has, and an error for the next one up.
  export GLAIVE_SIMD=avx512
  emulate "$test_program" --gtest_filter=Dispatch.PrintsItsChoice |
    grep -q "^simd error: GLAIVE_SIMD is 'avx512', which this CPU cannot run; available here: .*$tier" ||
    { echo "simd_emulation: $cpu: no error for a tier that is not there" >&2; exit 1; }
  unset GLAIVE_SIMD
  if [ $# -gt 0 ]; then
    export GLAIVE_EXPECTED_TIER=$tier
    if ! output=$(emulate "$@"); then
      echo "$output" | tail -40
      echo "simd_emulation: $cpu: failed: $*" >&2
      exit 1
    fi
    echo "$output"
  fi
  echo "$cpu: $tier, ok"
done
