# SPDX-License-Identifier: Apache-2.0
"""What the commands that print rows must say of values of pyarrow and fastavro."""
import base64
import decimal
import json
import math

import pyarrow as pa

UNITS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def parsed(line):
    """A printed row; numbers with a point keep their digits. Duplicate keys are kept apart."""
    return json.loads(line, parse_float=decimal.Decimal)


def days_text(days):
    """Proleptic Gregorian, beyond the years that datetime has, through cycles of 400 years."""
    import datetime
    cycles, rest = divmod(days, 146097)
    day = datetime.date(1970, 1, 1).toordinal() + rest
    date = datetime.date.fromordinal(day)
    year = date.year + 400 * cycles
    return f"{'-' if year < 0 else ''}{abs(year):0{3 if year < 0 else 4}d}-{date.month:02d}-{date.day:02d}"


def time_text(of_day, unit):
    seconds, rest = divmod(of_day, UNITS[unit])
    fraction = f".{rest:0{DIGITS[unit]}d}" if DIGITS[unit] else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def timestamp_text(value, unit, is_utc):
    days, of_day = divmod(value, UNITS[unit] * 86400)
    return f"{days_text(days)}T{time_text(of_day, unit)}{'Z' if is_utc else ''}"


def real(value):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def base64_text(value):
    return base64.b64encode(value).decode()


def integers(array):
    """Times and dates as the numbers that stand behind them."""
    width = array.type.bit_width
    return array.view(pa.int32() if width == 32 else pa.int64()).to_pylist()


def arrow_column(array):
    """The values of an array as `sluice arrow cat` prints them."""
    t = array.type
    if isinstance(array, pa.ChunkedArray):
        return [v for chunk in array.chunks for v in arrow_column(chunk)]
    if pa.types.is_dictionary(t):
        values = arrow_column(array.dictionary)
        return [None if i is None else values[i] for i in array.indices.to_pylist()]
    if isinstance(t, pa.BaseExtensionType):
        if t.extension_name == "arrow.uuid":
            return [None if v is None else str(v) for v in array.to_pylist()]
        return arrow_column(array.storage)
    if pa.types.is_struct(t):
        columns = [arrow_column(array.field(i)) for i in range(t.num_fields)]
        names = [t.field(i).name for i in range(t.num_fields)]
        return [dict(zip(names, row)) if ok else None
                for ok, row in zip(array.is_valid().to_pylist(), zip(*columns) if columns else [()] * len(array))]
    if pa.types.is_map(t):
        keys, items = arrow_column(array.keys), arrow_column(array.items)
        offsets = [o - array.offsets[0].as_py() for o in array.offsets.to_pylist()]
        pairs = [list(zip(keys[a:b], items[a:b])) if ok else None
                 for ok, a, b in zip(array.is_valid().to_pylist(), offsets, offsets[1:])]
        is_text = pa.types.is_string(t.key_type) or pa.types.is_dictionary(t.key_type) or \
            pa.types.is_large_string(t.key_type)
        return [None if p is None else dict(p) if is_text else [list(x) for x in p] for p in pairs]
    if pa.types.is_fixed_size_list(t):
        size, values = t.list_size, arrow_column(array.values)
        at = array.offset * size
        return [values[at + i * size:at + (i + 1) * size] if ok else None
                for i, ok in enumerate(array.is_valid().to_pylist())]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        values = arrow_column(array.values)
        return [None if not ok else values[a:b] for ok, a, b in
                zip(array.is_valid().to_pylist(), array.offsets.to_pylist(), array.offsets.to_pylist()[1:])]
    if pa.types.is_date64(t):
        convert = lambda v: days_text(v // 86400000)
        values = integers(array)
    elif pa.types.is_date32(t):
        convert, values = days_text, integers(array)
    elif pa.types.is_time(t):
        convert, values = (lambda v: time_text(v, t.unit)), integers(array)
    elif pa.types.is_timestamp(t):
        convert, values = (lambda v: timestamp_text(v, t.unit, t.tz is not None)), integers(array)
    elif pa.types.is_duration(t):
        convert, values = (lambda v: v), integers(array)
    elif pa.types.is_floating(t):
        convert, values = real, array.to_pylist()
    elif pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t) or \
            pa.types.is_binary_view(t):
        convert, values = base64_text, array.to_pylist()
    elif t == pa.month_day_nano_interval():
        convert = lambda v: {"months": v[0], "days": v[1], "nanoseconds": v[2]}
        values = array.to_pylist()
    else:  # null, bool, integers, text, decimals
        convert, values = (lambda v: v), array.to_pylist()
    return [None if v is None else convert(v) for v in values]


def arrow_rows(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:  # slices become arrays of their own
        writer.write_table(table)
    table = pa.ipc.open_stream(sink.getvalue()).read_all()
    columns = [arrow_column(table.column(i)) for i in range(table.num_columns)]
    return [dict(zip(table.column_names, row)) for row in zip(*columns)]


def assert_row(got, expected, path="row"):
    """Value for value: integers exact, floats to the bit (single and half ones by their nearest double)."""
    if isinstance(expected, dict):
        assert isinstance(got, dict) and list(got) == list(expected), (path, got, expected)
        for key in expected:
            assert_row(got[key], expected[key], f"{path}.{key}")
    elif isinstance(expected, list):
        assert isinstance(got, list) and len(got) == len(expected), (path, got, expected)
        for i, (a, b) in enumerate(zip(got, expected)):
            assert_row(a, b, f"{path}[{i}]")
    elif isinstance(expected, decimal.Decimal):
        assert not isinstance(got, (str, bool, float)), (path, got, expected)
        got = decimal.Decimal(got)
        assert got == expected, (path, got, expected)
        if expected.as_tuple().exponent < 0:
            assert got.as_tuple() == expected.as_tuple(), (path, got, expected)
    elif isinstance(expected, float):
        assert isinstance(got, (int, decimal.Decimal)) and not isinstance(got, bool), (path, got, expected)
        assert float(got) == expected, (path, got, expected)
    else:
        assert type(got) is type(expected) and got == expected, (path, got, expected)
