#!/bin/bash
# Runs every fuzz target found in a folder: run_fuzz.sh FOLDER RUNS. The corpus of a target stands in
# fuzz/corpus/<target>, its words in fuzz/<target without _fuzz>.dict; new inputs go to a scratch
# folder, findings to fuzz-findings/.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 runs=$2
mkdir -p fuzz-findings
found=0
for target in "$folder"/*_fuzz; do
  [ -x "$target" ] || continue
  found=$((found + 1))
  name=$(basename "$target")
  scratch=$(mktemp -d)
  corpus=("$scratch")
  [ -d "fuzz/corpus/$name" ] && corpus+=("fuzz/corpus/$name")
  words=()
  [ -f "fuzz/${name%_fuzz}.dict" ] && words=(-dict="fuzz/${name%_fuzz}.dict")
  echo "fuzz: $name, $runs inputs"
  "$target" -runs="$runs" -timeout=20 -rss_limit_mb=4096 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix=fuzz-findings/"$name"- "${words[@]}" "${corpus[@]}" 2>&1 | grep -v '^INFO' | tail -8
  rm -rf "$scratch"
done
[ "$found" -gt 0 ] || { echo "fuzz: no targets in $folder" >&2; exit 1; }
