"""One side of a paired bench: a child process that runs named workloads with one pair of packages.

Started as `python side.py LANCE LANCEDB`; requests and answers are pickles over its pipes.
"""

import importlib
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class Side:
    """The parent's handle of such a child."""

    def __init__(self, name, python, lance, lancedb, env=None):
        self.name = name
        # User-installed packages and PYTHONPATH of the caller must not leak into the other side.
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"RUST_LOG": "error"} | (env or {})
        self.process = subprocess.Popen(
            [python, str(HERE / "side.py"), lance, lancedb], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )

    def call(self, workload, **args):
        data = pickle.dumps((workload, args))
        self.process.stdin.write(struct.pack("<Q", len(data)) + data)
        self.process.stdin.flush()
        (size,) = struct.unpack("<Q", self.process.stdout.read(8))
        outcome = pickle.loads(self.process.stdout.read(size))
        if isinstance(outcome, dict) and "error" in outcome:
            raise RuntimeError(f"{self.name}: {workload}: {outcome['error']}")
        return outcome

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(lance, lancedb):
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    began = time.perf_counter()
    lancedb = importlib.import_module(lancedb)
    seconds = time.perf_counter() - began
    lance = importlib.import_module(lance)
    import workloads

    context = workloads.Context(lance, lancedb)
    context.import_seconds = seconds
    while head := requests.read(8):
        name, args = pickle.loads(requests.read(struct.unpack("<Q", head)[0]))
        try:
            outcome = getattr(context, name)(**args)
        except BaseException as error:  # a panic of the other side is no Exception
            outcome = {"error": f"{type(error).__name__}: {error}"}
        data = pickle.dumps(outcome)
        answers.write(struct.pack("<Q", len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    serve(*sys.argv[1:3])
