"""Sets of 32-bit numbers as bytes in the portable form of Roaring bitmaps, in which fragments' rows are named."""

from __future__ import annotations

import struct
from array import array
from typing import Dict, Iterable, List

_WITHOUT_RUNS = 12346
_MOST_IN_ARRAY = 4096


def encode(numbers: Iterable[int]) -> bytes:
    """ValueError for numbers outside of [0, 2^32)."""
    containers: Dict[int, List[int]] = {}
    for number in sorted(set(numbers)):
        if not 0 <= number < 1 << 32:
            raise ValueError(f"{number} is no row offset")
        containers.setdefault(number >> 16, []).append(number & 0xFFFF)
    head = [struct.pack("<II", _WITHOUT_RUNS, len(containers))]
    bodies = []
    for key, low in containers.items():
        head.append(struct.pack("<HH", key, len(low) - 1))
        if len(low) <= _MOST_IN_ARRAY:
            bodies.append(array("H", low))
        else:
            bits = bytearray(8192)
            for value in low:
                bits[value >> 3] |= 1 << (value & 7)
            bodies.append(bits)
    bodies = [struct.pack(f"<{len(body)}H", *body) if isinstance(body, array) else bytes(body) for body in bodies]
    at = sum(map(len, head)) + 4 * len(bodies)
    for body in bodies:
        head.append(struct.pack("<I", at))
        at += len(body)
    return b"".join(head + bodies)
