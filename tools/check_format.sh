#!/bin/bash
# Names the C++ files that are not as clang-format 14 leaves them; --fix formats them instead.
set -euo pipefail
cd "$(dirname "$0")/.."
formatter=${CLANG_FORMAT:-clang-format-14}
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- \
  'src/*.h' 'src/*.cc' 'include/*.h' 'tools/*.cc' 'python/*.h' 'python/*.cc' 'fuzz/*.cc' \
  'bench/*.cc' 'tests/*.cc' 'examples/*.cc')
[ ${#files[@]} -gt 0 ] || exit 0
if [ "${1:-}" = --fix ]; then
  "$formatter" -i "${files[@]}"
  exit 0
fi
export formatter
bad=$(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -I{} sh -c \
  '"$formatter" --dry-run -Werror "{}" >/dev/null 2>&1 || echo "{}"' | sort)
if [ -n "$bad" ]; then
  echo "clang-format: run \`make format\` for" $bad
  exit 1
fi
echo "clang-format: ${#files[@]} files"
