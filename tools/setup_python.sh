#!/bin/bash
# Makes .venv (build, tests, demo) and .venv-upstream (the real pylance and lancedb) when they are
# missing or lack something; an environment that has everything is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

ensure() { # directory, requirements file
  local dir=$1 requirements=$2
  if [ ! -x "$dir/bin/python" ]; then
    echo "setup_python: creating $dir"
    "$python" -m venv "$dir"
  fi
  local stamp="$dir/.requirements.sha256" sum
  sum=$(sha256sum "$requirements" | cut -d' ' -f1)
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then
    return
  fi
  if ! "$dir/bin/python" tools/check_requirements.py "$requirements"; then
    echo "setup_python: installing $requirements into $dir"
    "$dir/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements"
  fi
  # A linked environment belongs to somebody else: check it each time, leave no stamp there.
  [ -L "$dir" ] || echo "$sum" >"$stamp"
}

ensure .venv tests/requirements-dev.txt
if [ "${1:-}" != --no-upstream ]; then
  ensure .venv-upstream tests/requirements-upstream.txt
fi

# The checkout's own package is importable from the checkout's own environment.
if [ ! -L .venv ]; then
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  line="$PWD/python"
  if [ "$(cat "$site/glaive_checkout.pth" 2>/dev/null)" != "$line" ]; then
    echo "$line" >"$site/glaive_checkout.pth"
  fi
fi
