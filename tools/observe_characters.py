#!/usr/bin/env python3
"""Writes src/index/text/{alphanumeric,lower,folding}_table.cc anew: what the real package makes of each character.

    .venv-upstream/bin/python tools/observe_characters.py

One text per character goes into a full-text index of the real pylance, and the tokens are read back from its files. Takes
two minutes. A newer package may know newer versions of Unicode; tests/golden/text is then to be recorded anew, too.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/golden/text"))
from make_tokens import index_tokens  # noqa: E402

OUT = ROOT / "src/index/text"
PLAIN = dict(stem=False, remove_stop_words=False, ascii_folding=False, lower_case=False, max_token_length=None)
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def observe(texts, **params):
    tokens, _ = index_tokens(texts, {**PLAIN, **params})
    return [[text for _, text in found] for found in tokens]


def changed(**params):
    """{code: what became of it}"""
    found = observe([chr(c) for c in CODES], base_tokenizer="raw", **params)
    return {c: text for c, [text] in zip(CODES, found) if text != chr(c)}


def ranges(codes):
    out = []
    for c in codes:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def runs(pairs):
    """[first, last, step, offset]"""
    out = []
    for code, offset in pairs:
        last = out[-1] if out else None
        if last and last[3] == offset and last[0] == last[1] and code - last[1] in (1, 2):
            last[1:3] = code, code - last[0]
        elif last and last[3] == offset and last[0] != last[1] and code - last[1] == last[2]:
            last[1] = code
        else:
            out.append([code, code, 1, offset])
    return out


def write(name, about, declaration, entries, counter):
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) > 108:
            lines.append(line)
            line = "   "
        line += " " + entry
    lines.append(line)
    (OUT / name).write_text(f"""// {about}
// What the tokenizer of pylance 14.0.2 makes of each character, seen by tools/observe_characters.py.
// clang-format off
#include "index/text/character_tables.h"

namespace glaive::text {{

const {declaration}[{len(entries)}] = {{
""" + "\n".join(lines) + f"""
}};
const size_t {counter} = {len(entries)};

}}  // namespace glaive::text
""", encoding="ascii")


def main():
    words = observe([chr(c) for c in CODES], base_tokenizer="simple")
    write("alphanumeric_table.cc", "Letters, digits and the like.", "CharacterRange kAlphanumeric",
          [f"{{0x{a:X}, 0x{b:X}}}," for a, b in ranges(c for c, found in zip(CODES, words) if found)], "kNumAlphanumeric")

    lower = changed(lower_case=True)
    if {c for c, text in lower.items() if len(text) > 1} != {0x130}:
        sys.exit("more than one character whose lower-case form has two: characters.cc knows one")
    pairs = [(c, ord(text) - c) for c, text in lower.items() if len(text) == 1 and c >= 0x80]
    write("lower_table.cc", "Upper-case characters and their lower-case ones.", "LowerRun kLower",
          [f"{{0x{a:X}, 0x{b:X}, {step}, {offset}}}," for a, b, step, offset in runs(pairs)], "kNumLower")

    folded = changed(ascii_folding=True)
    if not all(text.isascii() and 0 < len(text) < 6 for text in folded.values()):
        sys.exit("a character becomes more than five, or others than ASCII")
    quoted = {c: text.replace("\\", "\\\\").replace('"', '\\"') for c, text in folded.items()}
    write("folding_table.cc", "Characters and the ASCII text that stands for them.", "Folded kFolded",
          [f'{{0x{c:X}, "{text}"}},' for c, text in quoted.items()], "kNumFolded")


if __name__ == "__main__":
    main()
