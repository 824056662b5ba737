"""What the kill tests stand on: no acknowledgement of a killed process is lost."""

import time

import crash_helpers


def test_lines_fetched_ahead_are_not_lost():
    child = crash_helpers.start('print("0\\n1\\n2\\n3", flush=True)\nsys.stdin.readline()')
    assert child.stdout.readline() == "0\n"  # fetches the others, too
    time.sleep(0.05)
    child.kill()
    rest, errors = crash_helpers.last_words(child)
    assert rest == "1\n2\n3\n" and errors == ""
