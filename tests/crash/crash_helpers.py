"""Child processes that write tables: started here, killed by the tests."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PREAMBLE = """
import importlib, json, os, random, sys, time
import pyarrow as pa
lance = importlib.import_module(os.environ["GLAIVE_CHILD_LANCE"])
if os.environ["GLAIVE_CHILD_LANCEDB"]:
    lancedb = importlib.import_module(os.environ["GLAIVE_CHILD_LANCEDB"])
"""


def start(code, *args, upstream=False, lancedb=False):
    """Runs `code` with `lance` (and `lancedb`) in scope and `sys.argv[1:]` = args; stdout is a pipe of lines.

    With `upstream` the real packages run it.
    """
    upstream = upstream or os.environ.get("GLAIVE_TEST_OURS") == "upstream"
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", RUST_LOG="off")
    env["GLAIVE_CHILD_LANCE"] = "lance" if upstream else "glaive.lance"
    env["GLAIVE_CHILD_LANCEDB"] = ("lancedb" if upstream else "glaive") if lancedb else ""
    if upstream:
        python = str(ROOT / ".venv-upstream" / "bin" / "python")
        env.pop("PYTHONPATH", None)
    else:
        python = sys.executable
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), *filter(None, [env.get("PYTHONPATH")])])
    return subprocess.Popen(
        [python, "-c", PREAMBLE + code, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def last_words(child):
    """What a process that was killed had still said: the rest of stdout, and stderr.

    `communicate` reads past the lines that `stdout` has fetched ahead and not given out yet, which would
    lose acknowledgements whenever this process is slower than the child.
    """
    rest, errors = child.stdout.read(), child.stderr.read()
    child.wait()
    return rest, errors
