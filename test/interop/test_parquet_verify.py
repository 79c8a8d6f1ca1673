# SPDX-License-Identifier: Apache-2.0
"""sluice parquet verify: each thing that a file says of itself, said wrongly, is found and its place named."""
import json
import random
import resource
import struct
import subprocess
import sys

import datafusion
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from columnar_data import stream_bytes
from parquet_bytes import Cursor, footer, thrift, with_footer

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "support"))
import sluice  # noqa: E402

ROWS = 300


def verify(path, *words):
    done = subprocess.run([sluice.BINARY, "parquet", "verify", *words, path], capture_output=True, text=True)
    assert done.returncode in (0, 2, 5, 6), done  # whole, damaged, not read here, past a limit
    return done


def refused(tmp_path, data, said):
    (tmp_path / "bad").write_bytes(data)
    done = verify(tmp_path / "bad", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 2 and said in done.stderr, (said, done)
    assert not answer["ok"] and 0 <= answer["offset"] < len(data) and f"byte {answer['offset']}" in done.stderr
    return answer["offset"]


def read_rows(path, tmp_path):
    subprocess.run([sluice.BINARY, "convert", "--from", "parquet", "--force", path, tmp_path / "rows.arrow"], check=True,
                   stdout=subprocess.DEVNULL)
    return pa.ipc.open_file(tmp_path / "rows.arrow").read_all().to_pylist()


@pytest.fixture(scope="module")
def theirs():
    """Of pyarrow, with all that it can say."""
    table = pa.table({
        "i": pa.array(range(ROWS), pa.int64()),
        "t": [None if i % 5 == 0 else f"text {i % 11}" for i in range(ROWS)],
        "l": [None if i % 7 == 0 else [1, None] * (i % 3) for i in range(ROWS)],
        "at": pa.array(range(ROWS), pa.timestamp("us", "UTC"))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_index=True, max_rows_per_page=100, write_page_checksum=True, compression="zstd",
                   use_dictionary=["t"], row_group_size=200, bloom_filter_options={"t": {"ndv": 20, "fpp": 0.01}},
                   sorting_columns=[pq.SortingColumn(0)], store_schema=False)
    return sink.getvalue().to_pybytes()


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    table = pa.table({"i": pa.array(range(ROWS), pa.int64()), "t": [None if i % 5 == 0 else f"text {i % 11}" for i in range(ROWS)],
                      "l": [None if i % 7 == 0 else [1, None] * (i % 3) for i in range(ROWS)]})
    (folder / "in.arrows").write_bytes(stream_bytes(table))
    subprocess.run([sluice.BINARY, "convert", folder / "in.arrows", folder / "f.parquet", "--bloom", "t",
                    "--row-group-rows", "200", "--no-arrow-schema"], check=True, stdout=subprocess.DEVNULL)
    return (folder / "f.parquet").read_bytes()


def lies():
    """Name, how the footer is changed, what is said of it."""
    def column(leaf, edit):
        return lambda f: edit(f[4][0][1][leaf][3])

    def group(edit):
        return lambda f: edit(f[4][1])

    def element(number, edit):
        return lambda f: edit(f[2][number])

    def set_(at, value):
        return lambda members: members.__setitem__(at, value)

    def add(at, more):
        return lambda members: members.__setitem__(at, members[at] + more)

    sizes = 16
    yield "its size, not compressed", column(0, add(6, 1)), "is its size, not compressed"
    yield "a page of data", column(1, add(9, -1)), "first data page"
    yield "where it begins", lambda f: f[4][0][1][2].__setitem__(2, 17), "is where it begins"
    yield "an encoding less", column(1, lambda m: m[2].remove(8)), "not among its encodings"
    yield "an encoding more", column(0, lambda m: m[2].append(5)), "no pages in DELTA_BINARY_PACKED"
    yield "an encoding that is none", column(0, lambda m: m[2].append(11)), "an encoding that is none"
    yield "pages by encoding", column(1, lambda m: m[13][-1].__setitem__(3, 7)), "pages of kind"
    yield "pages of a kind left out", column(1, lambda m: m[13].pop()), "pages counted by encoding"
    yield "another path", column(2, lambda m: m[3].__setitem__(2, b"elephant")), "its path is not the schema's"
    for more in (b"\0", b"\0\0", b"\0x", b"x"):
        yield f"a longer path by {more}", column(2, lambda m, more=more: m[3].__setitem__(2, m[3][2] + more)), "its path is not the schema's"
    yield "a path less", column(2, lambda m: m[3].pop()), "its path is not the schema's"
    yield "bytes of texts", column(1, lambda m: m[sizes].__setitem__(1, m[sizes][1] + 1)), "bytes of values"
    yield "repetition levels", column(2, lambda m: m[sizes][2].__setitem__(0, 1)), "repetition levels of 0"
    yield "definition levels", column(2, lambda m: m[sizes][3].__setitem__(3, 1)), "definition levels of 3"
    yield "a level less", column(2, lambda m: m[sizes][3].pop()), "levels to count"
    yield "an old bound", column(0, lambda m: m[12].__setitem__(1, struct.pack("<q", 198))), "bounds of the old kind"
    def stats(leaf, at, value):
        return column(leaf, lambda m: m[12].__setitem__(at, value))

    yield "a long bound", stats(0, 5, struct.pack("<q", 199) + b"\0"), "a bound of 9 bytes, where values have 8"
    yield "a short bound", stats(0, 6, b"\0" * 4), "a bound of 4 bytes, where values have 8"
    yield "an empty bound", stats(3, 6, b""), "a bound of 0 bytes, where values have 8"
    yield "a long old bound", stats(0, 2, b"\0" * 16), "a bound of 16 bytes, where values have 8"
    yield "nulls of a list", stats(2, 3, 100), "nulls, not 100"
    yield "nulls of a list, fewer", stats(2, 3, 1), "nulls, not 1"
    yield "more that differ", stats(1, 4, 12), "11 values that differ, not 12"
    yield "fewer that differ", stats(1, 4, 10), "11 values that differ, not 10"
    yield "none that differ", stats(0, 4, 0), "200 values that differ, not 0"
    yield "orders of fewer columns", lambda f: f[7].pop(), "orders of 3 columns, of which there are 4"
    yield "orders of more columns", lambda f: f[7].append({1: {}}), "orders of 5 columns, of which there are 4"
    for at, name in ((2, "a file offset"), (4, "an offset index"), (6, "a column index")):
        yield f"{name} of -1", lambda f, at=at: f[4][0][1][0].__setitem__(at, -1), "a place or a length below 0"
    for at, name in ((10, "an index page"), (11, "a dictionary"), (14, "a filter"), (15, "a filter's length")):
        yield f"{name} of -1", column(0, set_(at, -1)), "a place or a length below 0"
    yield "a group at -1", group(set_(5, -1)), "a place, a length or an ordinal below 0"
    yield "an ordinal of -1", group(set_(7, -1)), "a place, a length or an ordinal below 0"
    yield "a size of the group", group(add(2, 1)), "its size, not compressed"
    yield "a stored size of the group", group(add(6, 1)), "its size"
    yield "where the group begins", group(add(5, 1)), "where it begins"
    yield "an ordinal", group(set_(7, 3)), "its ordinal"
    yield "another order", group(lambda g: g[4][0].__setitem__(2, True)), "row 1 lies before the one in front"
    yield "an order by another column", group(lambda g: g[4][0].__setitem__(1, 1)), "lies before the one in front"
    yield "an order by a column twice", group(lambda g: g[4].append(dict(g[4][0]))), "sorted by column 0, which comes twice"
    yield "an order by no column", group(lambda g: g[4][0].__setitem__(1, 99)), "sorted by column 99"
    yield "a converted type", element(2, set_(6, 4)), "its converted type is not its logical type's"
    yield "another converted time", lambda f: f[2][-1].__setitem__(6, 9), "its converted type is not its logical type's"
    yield "text of numbers", element(1, set_(10, {1: {}})), "an annotation that its type cannot bear"
    yield "a column index nowhere", lambda f: f[4][0][1][0].__setitem__(6, 10 ** 9), "which is no place"
    yield "a longer column index", lambda f: f[4][0][1][0].__setitem__(7, f[4][0][1][0][7] + 1), "lies over"
    yield "a longer offset index", lambda f: f[4][1][1][0].__setitem__(5, f[4][1][1][0][5] + 1), "lies over"
    yield "a shorter filter", column(1, add(15, -1)), "belong to no part"
    yield "a shorter column", column(0, add(7, -1)), "belong to no part"


@pytest.mark.parametrize("lie", list(lies()), ids=lambda lie: lie[0])
def test_what_the_footer_says_is_held_against_the_file(theirs, tmp_path, lie):
    _, edit, said = lie
    offset = refused(tmp_path, with_footer(theirs, edit), said)
    assert offset >= 4


def test_the_file_that_does_not_lie(theirs, ours, tmp_path):
    for data in (theirs, ours, with_footer(theirs, lambda f: None), with_footer(ours, lambda f: None)):
        (tmp_path / "good").write_bytes(data)
        assert json.loads(verify(tmp_path / "good", "--json").stdout)["rows"] == ROWS


def with_index(data, which, edit, bytes_of=None):
    """The file with one index of the column t or l of its first row group in another place: behind the others."""
    fields = footer(data)
    leaf, at = {"t": 1, "l": 2}[which[0]], {"column": 6, "offset": 4}[which[1]]
    chunk = fields[4][0][1][leaf]
    index = Cursor(data, chunk[at]).struct()
    edit(index)
    new = thrift(index)[1]
    length = struct.unpack("<I", data[-8:-4])[0]
    body = data[:-8 - length]
    start, end = chunk[at], chunk[at] + chunk[at + 1]
    moved = body[:start] + new + body[end:]
    for group in fields[4]:
        for other in group[1]:
            for place in (4, 6):
                other[place] += (len(new) - (end - start)) * (other[place] > start)
    chunk[at + 1] = len(new)
    new = thrift(fields)[1]
    return moved + new + struct.pack("<I", len(new)) + b"PAR1"


def test_sizes_in_the_page_indexes(theirs, tmp_path):
    def change(index, at, place, by=1):
        index[at][place] += by

    (tmp_path / "good").write_bytes(with_index(theirs, ("l", "column"), lambda i: None))
    assert verify(tmp_path / "good").returncode == 0
    for which, edit, said in [
            (("t", "offset"), lambda i: change(i, 2, 1), "bytes of values in a page, by the offset index"),
            (("t", "offset"), lambda i: i[2].pop(), "sizes in the page index"),
            (("l", "column"), lambda i: change(i, 6, 2), "repetition levels of 0"),
            (("l", "column"), lambda i: change(i, 7, 5), "definition levels of 1"),
            (("l", "column"), lambda i: i[7].append(0), "sizes in the page index")]:
        refused(tmp_path, with_index(theirs, which, edit), said)


# ---- what stands in front of pages ----

def of_one_page(values, kind="q", statistics=None, header=None, chunk=None, dictionary=None, is_sorted=None, version=1, index=None,
                has_places=True, behind=b"", behind_entries=b""):
    """A file of one required column with one page, PLAIN or of indices of a byte."""
    physical = {"q": 2, "d": 5, "s": 6}[kind]

    def plain(values):
        return b"".join(struct.pack("<I", len(v)) + v if kind == "s" else struct.pack("<" + kind, v) for v in values)

    def page(number, details, body, at):
        head = thrift({1: number, 2: len(body), 3: len(body), at: details})[1]
        return head + body
    data, dictionary_at = b"PAR1", None
    encoding, body = 0, plain(values)
    if dictionary is not None:
        dictionary_at = len(data)
        data += page(2, {1: len(dictionary), 2: 0, **({} if is_sorted is None else {3: is_sorted})}, plain(dictionary) + behind_entries, 7)
        encoding = 8
        body = bytes([8]) + b"".join(bytes([2, dictionary.index(v)]) for v in values)
    body += behind
    data_at = len(data)
    said = {} if statistics is None else {5 if version == 1 else 8: statistics}
    if version == 1:
        data += page(0, {1: len(values), 2: encoding, 3: 3, 4: 3, **said, **(header or {})}, body, 5)
    else:
        data += page(3, {1: len(values), 2: 0, 3: len(values), 4: encoding, 5: 0, 6: 0, 7: False, **said, **(header or {})}, body, 8)
    size, start = len(data) - 4, 4
    member = {1: physical, 2: [0, 3, 8], 3: [b"c"], 4: 0, 5: len(values), 6: size, 7: size, 9: data_at, **({12: chunk} if chunk else {})}
    if dictionary_at:
        member[11] = dictionary_at
    column = {2: 0, 3: member}
    if index:
        column |= {6: len(data), 7: len(thrift(index)[1])}
        data += thrift(index)[1]
    if index and has_places:
        column[4] = len(data)
        places = thrift({1: [{1: data_at, 2: size - (data_at - start), 3: 0}]})[1]
        column[5] = len(places)
        data += places
    foot = thrift({1: 1, 2: [{4: b"root", 5: 1}, {1: physical, 3: 0, 4: b"c"}], 3: len(values),
                   4: [{1: [column], 2: size, 3: len(values)}], 7: [{1: {}}]})[1]
    return data + foot + struct.pack("<I", len(foot)) + b"PAR1"


def q(*values):
    return [struct.pack("<q", v) for v in values]


def d(*values):
    return [struct.pack("<d", v) for v in values]


NAN, WORDS = float("nan"), [b"a", b"b", b"c"]
GOOD_PAGES = {
    "statistics": dict(values=[3, 5, 5], statistics={1: q(5)[0], 2: q(3)[0], 3: 0, 4: 2, 5: q(5)[0], 6: q(3)[0]}),
    "statistics of version 2": dict(values=[3, 5], version=2, statistics={3: 0, 5: q(5)[0], 6: q(3)[0]}),
    "bounds that are wide": dict(values=[3, 5], statistics={5: q(50)[0], 6: q(-3)[0]}),
    "a sorted dictionary": dict(values=[b"c", b"a", b"b"], kind="s", dictionary=WORDS, is_sorted=True),
    "one that does not say": dict(values=[b"c", b"a", b"b"], kind="s", dictionary=WORDS[::-1]),
    "one that says it is not": dict(values=[b"c", b"a", b"b"], kind="s", dictionary=WORDS[::-1], is_sorted=False),
    "values that differ": dict(values=[3, 5, 5, 3], chunk={4: 2}),
    "zeros": dict(values=[0.0, -0.0, NAN], kind="d", chunk={4: 2}),
    "NaN among numbers": dict(values=[1.0, NAN], kind="d", chunk={5: d(NAN)[0], 6: d(1.0)[0]}),  # parquet-java's
    "only NaN": dict(values=[NAN, NAN], kind="d", chunk={3: 0, 5: d(NAN)[0], 6: d(NAN)[0]},
                     index={1: [False], 2: d(NAN), 3: d(NAN), 4: 0}),
    "no places in an index": dict(values=[3, 5], index={1: [False], 2: q(3), 3: q(5), 4: 0, 5: [0], 7: [2]}, has_places=False),
    "a byte behind indices": dict(values=[b"c", b"a"], kind="s", dictionary=WORDS, behind=b"?"),  # DuckDB's
}
BAD_PAGES = {
    "a bound in an index without places": (dict(values=[3, 5], index={1: [False], 2: q(4), 3: q(5), 4: 0}, has_places=False),
                                           "not within the page's bounds in the column index"),
    "levels in an index without places": (dict(values=[3, 5], index={1: [False], 2: q(3), 3: q(5), 4: 0, 7: [1]}, has_places=False),
                                          "2 definition levels of 0, not 1"),
    "fewer pages in an index without places": (dict(values=[3, 5], index={1: [], 2: [], 3: [], 4: 0}, has_places=False), "a page that the column index has not"),
    "more pages in an index without places": (dict(values=[3, 5], index={1: [False] * 2, 2: q(3, 3), 3: q(5, 5), 4: 0}, has_places=False),
                                              "column index: more pages than there are"),
    "a byte behind values": (dict(values=[3, 5], behind=b"?"), "1 bytes behind the values"),
    "bytes behind texts": (dict(values=WORDS, kind="s", version=2, behind=bytes(4)), "4 bytes behind the values"),
    "a byte behind entries": (dict(values=WORDS, kind="s", dictionary=WORDS, behind_entries=b"?"), "1 bytes behind the values"),
    "a least value": (dict(values=[3, 5], statistics={5: q(5)[0], 6: q(4)[0]}), "not within the bounds in the page's header"),
    "a greatest value": (dict(values=[3, 5], version=2, statistics={5: q(4)[0], 6: q(3)[0]}), "not within the bounds in the page's header"),
    "an old bound": (dict(values=[3, 5], statistics={1: q(4)[0], 2: q(3)[0]}), "not within the bounds in the page's header"),
    "a long bound": (dict(values=[3, 5], statistics={5: q(5)[0] + b"\0"}), "a bound of 9 bytes, where values have 8"),
    "a short old bound": (dict(values=[3, 5], statistics={1: b"\5"}), "a bound of 1 bytes, where values have 8"),
    "nulls": (dict(values=[3, 5], statistics={3: 1}), "0 nulls, not 1"),
    "more that differ": (dict(values=[3, 5], statistics={4: 3}), "2 values that may differ, not 3"),
    "damaged statistics": (dict(values=[3, 5], statistics={3: b"x"}), "damaged statistics in a page's header"),
    "NaN in a header": (dict(values=[1.0, 2.0], kind="d", statistics={5: d(NAN)[0], 6: d(1.0)[0]}), "NaN as a bound of numbers"),
    "NaN in the footer": (dict(values=[1.0, 2.0], kind="d", chunk={5: d(2.0)[0], 6: d(NAN)[0]}), "NaN as a bound of numbers"),
    "NaN in an index": (dict(values=[1.0, 2.0], kind="d", index={1: [False], 2: d(NAN), 3: d(2.0), 4: 0}), "NaN as a bound of numbers"),
    "a long bound in an index": (dict(values=[1, 2], index={1: [False], 2: [q(1)[0] + b"\0"], 3: q(2), 4: 0}), "are none of its type"),
    "a dictionary": (dict(values=[b"c", b"a"], kind="s", dictionary=[b"a", b"c", b"b"], is_sorted=True), "entry 2 is not"),
    "a dictionary of numbers": (dict(values=[-5, 5], dictionary=[5, -5], is_sorted=True), "entry 1 is not"),
    "zeros": (dict(values=[0.0, 1.0], kind="d", chunk={4: 3}), "2 values that differ, not 3"),
}


@pytest.mark.parametrize("what", GOOD_PAGES)
def test_pages_that_do_not_lie(tmp_path, what):
    (tmp_path / "f").write_bytes(of_one_page(**GOOD_PAGES[what]))
    done = verify(tmp_path / "f")
    assert done.returncode == 0, done.stderr
    subprocess.run([sluice.BINARY, "convert", "--from", "parquet", tmp_path / "f", tmp_path / "f.arrow"], check=True, stdout=subprocess.DEVNULL)
    assert str(pa.ipc.open_file(tmp_path / "f.arrow").read_all()["c"].to_pylist()) == str(GOOD_PAGES[what]["values"])


@pytest.mark.parametrize("what", BAD_PAGES)
def test_pages_that_lie(tmp_path, what):
    given, said = BAD_PAGES[what]
    refused(tmp_path, of_one_page(**given), said)


# ---- what well-known writers say wrongly ----

def test_nulls_that_duckdb_counts_twice(tmp_path):
    """Of a leaf in a struct in a list each struct that is null counts once more: more nulls than there are levels without
    a value, or even levels."""
    rows = [[{"x": 1, "y": 2}, None, {"x": None, "y": 3}], None, [], [None, None]]
    table = pa.table({"s": pa.array(rows, pa.list_(pa.struct({"x": pa.int64(), "y": pa.int64()})))})
    duckdb.from_arrow(table).write_parquet(str(tmp_path / "f"))
    assert [pq.read_metadata(tmp_path / "f").row_group(0).column(i).statistics.null_count for i in (0, 1)] == [9, 8]
    at = refused(tmp_path, (tmp_path / "f").read_bytes(), "column s.list.element.x, row group 0, byte 4: 6 nulls, not 9")
    assert at == 4 and read_rows(tmp_path / "bad", tmp_path) == table.to_pylist()
    pq.write_table(table, tmp_path / "f")
    assert [pq.read_metadata(tmp_path / "f").row_group(0).column(i).statistics.null_count for i in (0, 1)] == [6, 5]
    assert verify(tmp_path / "f").returncode == 0


def test_null_pages_of_datafusion_that_have_values(tmp_path):
    """arrow-rs takes a page with as many nulls as rows for one of nulls alone, in lists too."""
    context, path = datafusion.SessionContext(), tmp_path / "f.parquet"
    table = pa.table({"l": [[i, None] for i in range(100)]})
    context.from_arrow(table).write_parquet(str(path))
    refused(tmp_path, path.read_bytes(), "values where the column index says that there are none")
    assert "column l.list.item, row group 0, byte" in verify(path).stderr
    assert read_rows(path, tmp_path) == table.to_pylist()
    context.from_arrow(pa.table({"l": [[i, None] for i in range(100)] + [[0]]})).write_parquet(str(path))
    assert verify(path).returncode == 0


def test_each_byte_belongs_to_something(theirs, ours, tmp_path):
    for data in (theirs, ours):
        at = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
        assert refused(tmp_path, data[:at] + b"junk" + data[at:], "bytes that belong to no part of the file") == at
        for i in range(4):
            assert refused(tmp_path, data[:i] + b"?" + data[i + 1:], "no magic at the beginning") == i


def test_zeros_in_front_of_a_row_group_are_parquet_javas(ours, tmp_path):
    """It fills up to a block; anything but zeros there is not."""
    fields = footer(ours)
    length = struct.unpack("<I", ours[-8:-4])[0]
    start = min(c[3].get(11, c[3][9]) for c in fields[4][1][1])
    for filler, code in ((bytes(100), 0), (bytes(99) + b"x", 2)):
        def move(f):
            for number, group in enumerate(f[4]):
                for chunk in group[1]:
                    for place in (4, 6):
                        chunk[place] += 100
                    for place in (9, 11, 14):
                        if chunk[3].get(place, 0) >= start:
                            chunk[3][place] += 100
                group[5] += 100 * number
        # offset indexes name places too: without them, and so without what they need
        def without(f):
            move(f)
            for group in f[4]:
                for chunk in group[1]:
                    for place in (4, 5, 6, 7):
                        chunk.pop(place, None)
        end = min(c[6] for g in fields[4] for c in g[1] if 6 in c)
        body = ours[:start] + filler + ours[start:end]
        data = body + ours[-8 - length:]
        (tmp_path / "f").write_bytes(with_footer(data, without))
        assert verify(tmp_path / "f").returncode == code


def test_memory_of_an_order_by_many_columns(tmp_path):
    """Of each only the values of the rows stay, not its dictionary."""
    entries = pa.array([b"a", bytes(32 << 20)], pa.binary())
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], pa.int32()), entries)
    pq.write_table(pa.table({f"c{i}": column for i in range(8)}), tmp_path / "f", store_schema=False, compression="zstd",
                   write_statistics=False, sorting_columns=[pq.SortingColumn(i) for i in range(8)])
    done = subprocess.run([sluice.BINARY, "parquet", "verify", tmp_path / "f"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (250 << 20, 250 << 20)))
    assert done.returncode == 0, done


def test_a_flipped_bit_of_the_footer_names_its_byte(ours, tmp_path):
    """Whatever is refused says where, and that lies within the file, behind its first magic."""
    length = struct.unpack("<I", ours[-8:-4])[0]
    rng, silent, far, count = random.Random(1), [], [], 0
    for bit in rng.sample(range((len(ours) - 8 - length) * 8, len(ours) * 8), 500):
        data = bytearray(ours)
        data[bit // 8] ^= 1 << bit % 8
        (tmp_path / "f").write_bytes(data)
        done = verify(tmp_path / "f", "--json")
        if done.returncode == 0:
            continue
        count += 1
        answer = json.loads(done.stdout)
        if answer["status"] == "CORRUPT" and (answer["offset"] is None or f"byte {answer['offset']}" not in done.stderr):
            silent.append((bit, answer))
        if answer["offset"] is not None and not 4 <= answer["offset"] < len(ours):
            far.append((bit, answer))
    assert count > 300 and not silent and not far, (count, len(silent), silent[:5], far[:5])
