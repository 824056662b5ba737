"""Library and package on emulated CPUs: none of them needs more than x86-64-v2."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CPUS = ["nehalem", "sandybridge", "piledriver", "haswell"]


@pytest.mark.parametrize("cpu", CPUS)
def test_library_and_package(cpu):
    if shutil.which("qemu-x86_64") is None:
        pytest.fail("install qemu-user (tools/setup_debian.sh does)")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), GLAIVE_NUM_THREADS="3")
    command = [str(ROOT / "tests/simd_emulation.sh"), "--cpu", cpu, "--"]
    command += [sys.executable, str(ROOT / "tests/simd_emulation_package.py")]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
