"""The programs in docs/ run as they stand."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def programs():
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
        for number, block in enumerate(blocks):
            yield pytest.param(block, id=f"{page.name}-{number}")


@pytest.mark.parametrize("program", programs())
def test_programs_of_the_documentation(program, tmp_path):
    program = re.sub(r"/tmp/glaive-\w+", str(tmp_path / "db"), program)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout
