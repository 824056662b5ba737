"""The programs of sdk_programs.py and sdk_programs_parts.py on Glaive and on the real LanceDB: outcomes must agree, exceptions by class."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import sdk_programs
import sdk_programs_parts

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPSTREAM = ROOT / ".venv-upstream" / "bin" / "python"
FILES = {name: module.__file__ for module in (sdk_programs, sdk_programs_parts) for name in module.PROGRAMS}


def run(python, module, program):
    environ = dict(os.environ, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1", TZ="UTC")
    if module == "lancedb":
        del environ["PYTHONPATH"]
    done = subprocess.run([str(python), FILES[program], module, program], capture_output=True, text=True, timeout=300, env=environ)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(theirs, ours):
    level = theirs["level"]
    if level == "ours":
        return True
    if theirs["kind"] == "value" or ours["kind"] == "value":
        if theirs["kind"] != ours["kind"]:
            return False
        addresses = re.compile("0x[0-9a-f]+")
        return level == "kind" or addresses.sub("", theirs["outcome"]) == addresses.sub("", ours["outcome"])
    return level == "raises" or theirs["kind"][0] in ours["kind"]


@pytest.mark.skipif(not UPSTREAM.exists(), reason="needs .venv-upstream")
@pytest.mark.parametrize("program", FILES)
def test_same_as_upstream(program):
    theirs, ours = run(UPSTREAM, "lancedb", program), run(sys.executable, "glaive", program)
    assert [line["step"] for line in theirs] == [line["step"] for line in ours]
    differences = [(a["step"], a["kind"], a["outcome"], b["kind"], b["outcome"]) for a, b in zip(theirs, ours) if not same(a, b)]
    assert not differences, "\n".join(f"{step}:\n  theirs {k}: {x[:400]}\n  ours   {l}: {y[:400]}" for step, k, x, l, y in differences)
