#!/bin/bash
# Installs the Debian packages that building and testing need. Says nothing when all are there.
# With --index it also makes sure that apt's package lists exist (the demo's data).
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache mold pkg-config git ca-certificates
  protobuf-compiler libprotobuf-dev libroaring-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev libsimde-dev
  qemu-user clang-14 libclang-rt-14-dev llvm-14 clang-format-14
  patchelf strace python3-venv python3-dev
)

if ! command -v apt-get >/dev/null; then
  echo "setup_debian: no apt-get here; install the equivalents of: ${packages[*]}" >&2
  exit 0
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  as_root=(sudo)
fi
need_root() {
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "setup_debian: neither root nor sudo; ask an administrator to run: $*" >&2
    exit 1
  fi
}

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done

update() {
  need_root "apt-get update"
  "${as_root[@]}" apt-get update -qq
}

if [ ${#missing[@]} -gt 0 ]; then
  echo "setup_debian: installing ${missing[*]}"
  need_root "apt-get install ${missing[*]}"
  update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ "${1:-}" = --index ]; then
  lists=(/var/lib/apt/lists/*_Packages*)
  [ -e "${lists[0]}" ] || update
fi
