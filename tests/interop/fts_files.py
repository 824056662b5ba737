"""Full-text index files taken apart, slowly: documents with their tokens at their positions. Runs where pylance is."""

import glob
import os

COMMON = "te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGW"


def fst_entries(data):
    """{key bytes: value} of a map in the third version of the fst format, walked from its root."""
    word = lambda at, size: int.from_bytes(data[at:at + size], "little")
    assert word(0, 8) == 3 and word(8, 8) == 0
    count, root = word(len(data) - 20, 8), word(len(data) - 12, 8)
    out = {}

    def node(address):
        """(is final, final output, [(input, output, target)])"""
        if address == 0:
            return True, 0, []
        state, at = data[address], address
        if state >= 0x80:
            at -= 1
            if state & 63:
                byte = ord(COMMON[(state & 63) - 1])
            else:
                byte, at = data[at], at - 1
            if state >= 0xC0:
                return False, 0, [(byte, 0, at)]
            sizes = data[at]
            at -= (sizes >> 4)
            delta = word(at, sizes >> 4)
            at -= sizes & 15
            return False, 0, [(byte, word(at, sizes & 15), at - delta if delta else 0)]
        number = state & 63
        at -= 1
        if not number:
            number, at = data[at], at - 1
            number = 256 if number == 1 else number
        sizes = data[at]
        if number > 32:
            at -= 256
        inputs = [data[at - 1 - i] for i in range(number)]
        at -= number
        deltas = []
        for _ in range(number):
            at -= sizes >> 4
            deltas.append(word(at, sizes >> 4))
        outputs = [0] * number
        final = 0
        if sizes & 15:
            for i in range(number):
                at -= sizes & 15
                outputs[i] = word(at, sizes & 15)
            if state & 64:
                at -= sizes & 15
                final = word(at, sizes & 15)
        return bool(state & 64), final, [(b, o, at - d if d else 0) for b, o, d in zip(inputs, outputs, deltas)]

    todo = [(root, b"", 0)]
    while todo:
        address, key, value = todo.pop()
        is_final, final, transitions = node(address)
        if is_final:
            out[key] = value + final
        todo += [(t, key + bytes([b]), value + o) for b, o, t in transitions]
    assert len(out) == count
    return out


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def packed(self):
        """128 integers in four lanes."""
        bits = self.data[self.at]
        raw = self.data[self.at + 1:self.at + 1 + 16 * bits]
        self.at += 1 + 16 * bits
        lanes = [sum(int.from_bytes(raw[16 * w + 4 * l:16 * w + 4 * l + 4], "little") << (32 * w) for w in range(bits)) for l in range(4)]
        return [(lanes[i % 4] >> (i // 4 * bits)) & ((1 << bits) - 1) for i in range(128)]


def blocks_of(row):
    """Per block of a posting list: [(document, frequency)]."""
    out = []
    for b, block in enumerate(row["_posting"]):
        bytes_ = Bytes(block[4:])  # behind the score
        n = min(128, row["_length"] - 128 * b)
        if n == 128:
            doc = int.from_bytes(block[4:8], "little")
            bytes_.at = 4
            docs = []
            for delta in bytes_.packed():
                doc += delta
                docs.append(doc)
            frequencies = bytes_.packed()
        else:
            docs, last = [], 0
            for _ in range(n):
                last += bytes_.varint()
                docs.append(last)
            frequencies = [bytes_.varint() for _ in range(n)]
        assert bytes_.at == len(block) - 4
        out.append(list(zip(docs, frequencies)))
    assert sum(map(len, out)) == row["_length"]
    return out


def positions_of(row, blocks):
    """Per document its positions, one after the other as the documents are."""
    stream, starts = row["_compressed_position"], row["_position_block_offset"]
    assert len(starts) == len(blocks)
    out = []
    for b, block in enumerate(blocks):
        bytes_ = Bytes(stream[starts[b]:starts[b + 1] if b + 1 < len(starts) else len(stream)])
        n = sum(f for _, f in block)
        deltas = []
        while n - len(deltas) >= 128:
            deltas += bytes_.packed()
        while len(deltas) < n:
            deltas.append(bytes_.varint())
        assert bytes_.at == len(bytes_.data)
        for _, frequency in block:
            at, here = 0, []
            for _ in range(frequency):
                at += deltas.pop(0)
                here.append(at)
            out.append(here)
    return out


def read_index(directory):
    """{"metadata": …, "parts": [{"tokens": {text: id}, "docs": [(row, length)], "rows": [posting rows], "texts": {row: [(position,
    token)], or [token, …] sorted without positions}}]}"""
    from lance.file import LanceFileReader
    import json

    def read(name):
        reader = LanceFileReader(os.path.join(directory, name))
        table = reader.read_all().to_table()
        return {k.decode(): v.decode() for k, v in (reader.metadata().schema.metadata or {}).items()}, table.to_pylist(), reader

    metadata, body, _ = read("metadata.lance")
    parts = []
    for part in json.loads(metadata["partitions"]):
        token_metadata, [token_row], _ = read(f"part_{part}_tokens.lance")
        docs_metadata, doc_rows, _ = read(f"part_{part}_docs.lance")
        invert_metadata, rows, _ = read(f"part_{part}_invert.lance")
        tokens = fst_entries(token_row["_token_fst_bytes"])
        assert token_row["_token_next_id"] == len(tokens) == len(rows)
        assert token_row["_token_total_length"] == sum(map(len, tokens))
        docs = [(r["_rowid"], r["_num_tokens"]) for r in doc_rows]
        assert int(docs_metadata["total_tokens"]) == sum(n for _, n in docs)
        texts = {}
        for token, id_ in tokens.items():
            token = token.decode()
            blocks = blocks_of(rows[id_])
            places = positions_of(rows[id_], blocks) if "_compressed_position" in rows[id_] else None
            for i, (doc, frequency) in enumerate(d for block in blocks for d in block):
                texts.setdefault(docs[doc][0], []).extend(
                    [(p, token) for p in places[i]] if places else [token] * frequency)
        for row, found in texts.items():
            found.sort()
        assert sorted((r, len(t)) for r, t in texts.items()) == sorted(docs)
        parts.append({"tokens": {t.decode(): i for t, i in tokens.items()}, "docs": docs, "rows": rows, "texts": texts,
                      "metadata": [token_metadata, docs_metadata, invert_metadata]})
    return {"metadata": metadata, "body": body, "parts": parts}


def index_directory(path, name):
    """The one directory below a dataset that holds the segment of an index."""
    import lance
    [found] = [i for i in lance.dataset(path).list_indices() if i["name"] == name]
    return os.path.join(path, "_indices", found["uuid"])
