"""Two sides that run the same snippets: ours in this process, the real packages in a child.

The real pylance and lancedb live in `.venv-upstream`; importing them takes seconds, so one child
process stays alive and answers requests over its pipes. A request is a snippet of Python (a function
body over its named arguments, with `lance`, `lancedb` and `pa` in scope); arguments and results travel
as pickles, which keep the offsets of sliced Arrow arrays as they are.

Run as a program, this file is that child.
"""

import importlib
import os
import pathlib
import pickle
import select
import struct
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = os.environ.get("GLAIVE_UPSTREAM_PYTHON", str(ROOT / ".venv-upstream" / "bin" / "python"))


class SideError(Exception):
    """What a snippet raised: `kind` is the exception's class name, `bases` those of its bases."""

    def __init__(self, kind, message, bases):
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.bases = bases


class Snippets:
    """Compiles each snippet once and calls it."""

    def __init__(self, modules):
        import pyarrow

        self.modules = modules
        self.scope = {"pa": pyarrow}
        self.compiled = {}

    def __call__(self, code, args):
        for name, target in self.modules.items():
            if name not in self.scope:
                self.scope[name] = importlib.import_module(target)
        key = (code, tuple(args))
        function = self.compiled.get(key)
        if function is None:
            source = f"def snippet({', '.join(args)}):\n" + textwrap.indent(textwrap.dedent(code), "  ")
            exec(compile(source, "<snippet>", "exec"), self.scope)
            function = self.compiled[key] = self.scope.pop("snippet")
        return function(**args)


def describe(error):
    return type(error).__name__, str(error), [base.__name__ for base in type(error).__mro__]


class Ours:
    """Runs snippets in this process, on our packages."""

    name = "ours"

    def __init__(self, lance="glaive.lance", lancedb="glaive"):
        self.snippets = Snippets({"lance": lance, "lancedb": lancedb})

    def run(self, code, **args):
        try:
            return self.snippets(code, args)
        except Exception as error:
            raise SideError(*describe(error)) from error

    def close(self):
        pass


class Child:
    """Runs snippets in another Python; started at the first request, and again after it died."""

    def __init__(self, name="theirs", python=PYTHON, lance="lance", lancedb="lancedb", env=None, timeout=300):
        self.name = name
        self.command = [python, __file__, lance, lancedb]
        self.env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", RUST_BACKTRACE="0", **(env or {}))
        if name == "theirs":
            self.env.pop("PYTHONPATH", None)
        self.timeout = timeout
        self.process = None

    def run(self, code, **args):
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env
            )
        try:
            send(self.process.stdin, (code, args))
            ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
            if not ready:
                raise EOFError(f"no answer within {self.timeout} s")
            outcome = receive(self.process.stdout)
        except (EOFError, BrokenPipeError) as error:
            status = self.close()
            raise SideError("Died", f"{self.name}: {error} (status {status})", ["Died"]) from error
        if outcome[0] == "error":
            raise SideError(*outcome[1:])
        return outcome[1]

    def close(self):
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()
        process.stdin.close()
        process.stdout.close()
        return process.wait()


def send(pipe, value):
    data = pickle.dumps(value, protocol=5)
    pipe.write(struct.pack("<Q", len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe):
    size = read_exactly(pipe, 8)
    return pickle.loads(read_exactly(pipe, struct.unpack("<Q", size)[0]))


def read_exactly(pipe, size):
    data = bytearray()
    while len(data) < size:
        part = pipe.read(size - len(data))
        if not part:
            raise EOFError("the process ended")
        data += part
    return bytes(data)


def serve():
    # Requests and answers keep the pipes to themselves: whatever else prints goes to stderr.
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path.pop(0)  # the folder of this file holds names that tests use
    snippets = Snippets({"lance": sys.argv[1], "lancedb": sys.argv[2]})
    while True:
        try:
            code, args = receive(requests)
        except EOFError:
            return
        try:
            outcome = ("value", snippets(code, args))
            pickle.dumps(outcome, protocol=5)
        except BaseException as error:  # a panic of the real packages is no Exception
            outcome = ("error", *describe(error))
        send(answers, outcome)


if __name__ == "__main__":
    serve()
