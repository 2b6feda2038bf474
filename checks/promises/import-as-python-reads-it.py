#!/usr/bin/env python3
"""Imports of awkward random inputs, compared with what Python reads in them.

Each seed makes one input: CSV or TSV by `csv`, JSON lines by `json`, or rows of a table of SQLite,
with typed keys and values, keys that come again, and now and then a row that must be refused. The
file is read again with Python's own modules and stored in a table of SQLite by the rules of
README.md; the program imports the same file. Its export has to be that table, in its order. Of a
bad row it has to name the line, and the rows before it have to be there.

usage: import-as-python-reads-it.py SEED COUNT [PROGRAM]
"""

import csv
import datetime
import gzip
import io
import json
import os
import random
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PLAIN = ["bytes", "hex", "text", "i64", "u64", "f64", "time"]
TUPLES = [["text", "i64"], ["f64", "bytes"], ["time", "u64", "text"], ["hex", "f64"]]
MAY_BE_EMPTY = ["bytes", "hex", "text"]

LETTERS = [
    "", "a", "b", "Ab", "\u00e9", "e\u0301", "\U0001f333", " ", "  ", "\t", "\n", "\r\n", '"',
    '""', "'", ",", ";", "|", "\\", "\\\\", "x", "0", "007", "7", "null", "@row", "#", "\ufeff",
    "\0", "\x7f",
]
WHOLE = [
    "0", "1", "-1", "+1", "007", "7", "-0", "9223372036854775807", "-9223372036854775808",
    "18446744073709551615", "1234567890123456789",
]
WRONG_WHOLE = [
    "18446744073709551616", "-9223372036854775809", "1.0", "1e3", "0x10", "", "1_000", "\u0663",
]
FLOATS = [
    "0", "-0", "0.0", "-0.0", "0e5", "1.5", "10.50", "1e3", "1E+3", "-2.5e-3", "5e-324",
    "1.7976931348623157e308", "0.1000000000000000055", "9007199254740993", "123456789012345678901",
    "1e-323", ".5", "5.",
]
FLOAT_WORDS = ["inf", "-inf", "NaN"]
WRONG_FLOATS = ["1e400", "-1e309", "1e-400", "-0.0001e-330", "", "1,5", "one", "0x1p3"]
TIMES = [
    "2013-01-01T05:00:00Z", "2013-01-01T00:00:00-05:00", "2013-01-01 05:00:00.000Z",
    "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z",
    "2024-02-29T12:30:15.123456789+05:30", "2200-06-30T23:59:59z", "1700-01-01t00:00:00.5+00:00",
]
WRONG_TIMES = [
    "2016-12-31T23:59:60Z", "2016-12-31T23:59:60.5+00:00", "2013-02-30T00:00:00Z",
    "2013-01-01T24:00:01Z", "2013-01-01T00:00:00.1234567891Z", "2013-01-01T00:00:00",
    "2300-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "2013-01-01", "now", "",
    "2013-01-01T00:00:00+01:00:00.5", "2013-01-01T00:00:00Z[UTC]", "2013-01-01T00:00:00+24:00",
    "2013-01-01T00:00:00[Europe/Rome]", "2013-01-01T00:00Z", "2013-01-01T00:00:00+01",
    "20130101T000000Z", "2013-01-01T00:00:00,5Z",
]


class Refused(Exception):
    """A row that no import may store."""


# What texts stand for, by the rules of README.md.

def number_of(kind, text):
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise Refused
    low, high = (-(1 << 63), (1 << 63) - 1) if kind == "i64" else (0, (1 << 64) - 1)
    if not low <= int(text) <= high:
        raise Refused
    return int(text)


def float_of(text):
    if text.lower() in ("inf", "-inf", "nan"):
        return float(text)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        raise Refused
    number = float(text)
    is_zero = not re.search("[1-9]", re.split("[eE]", text)[0])
    if number in (float("inf"), float("-inf")) or (number == 0 and not is_zero):
        raise Refused
    return number or 0.0


def time_of(text):
    shape = r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))"
    found = re.fullmatch(shape, text, re.ASCII)
    if not found:
        raise Refused
    date, clock, fraction, sign, hours, minutes = found.groups()
    try:
        second = datetime.datetime.fromisoformat(f"{date}T{clock}") - datetime.datetime(1970, 1, 1)
    except ValueError:
        raise Refused from None
    seconds = second.days * 86400 + second.seconds
    if sign:
        if int(hours) > 23 or int(minutes) > 59:
            raise Refused
        seconds -= int(sign + "1") * (int(hours) * 3600 + int(minutes) * 60)
    time = seconds * 10**9 + int((fraction or "0").ljust(9, "0"))
    if not -(1 << 63) <= time < 1 << 63:
        raise Refused
    return time


def bytes_of(text):
    """The bytes of the text form: `\\xHH` for a byte, two backslashes for one."""
    def piece(found):
        if found[0] == "\\\\":
            return "\\"
        if not found[1]:
            raise Refused
        return bytes.fromhex(found[1]).decode("utf-8", "surrogateescape")
    text = re.sub(r"\\\\|\\x([0-9a-fA-F]{2})|\\", piece, text)
    return text.encode("utf-8", "surrogateescape")


def value_of(kind, text):
    """What `text` stands for: bytes, text or a number."""
    if kind in ("i64", "u64"):
        return number_of(kind, text)
    if kind == "hex":
        if len(text) % 2 or not re.fullmatch("[0-9a-fA-F]*", text):
            raise Refused
        return bytes.fromhex(text)
    return {"f64": float_of, "time": time_of, "bytes": bytes_of, "text": str}[kind](text)


def fits(kind, text):
    try:
        number_of(kind, text)
        return True
    except Refused:
        return False


class Digits(str):
    """A number of JSON, as it is written."""


def value_of_json(kind, found):
    if isinstance(kind, list):
        if not isinstance(found, list) or len(found) != len(kind):
            raise Refused
        return tuple(value_of_json(one, part) for one, part in zip(kind, found))
    if not isinstance(found, str):
        raise Refused
    return value_of(kind, str(found))


def parsed(text):
    def no_constant(_):
        raise Refused
    try:
        return json.loads(text, parse_int=Digits, parse_float=Digits, parse_constant=no_constant)
    except json.JSONDecodeError:
        raise Refused from None


def value_of_field(kind, field):
    if isinstance(kind, list):
        return value_of_json(kind, parsed(field.strip()))
    if kind == "bytes":
        return field.encode()
    return field if kind == "text" else value_of(kind, field.strip())


# Bytes whose order is that of the values, as FORMAT.md has them.

def stored(kind, value, is_part=False):
    if isinstance(kind, list):
        return b"".join(stored(one, part, True) for one, part in zip(kind, value))
    if kind == "u64":
        return struct.pack(">Q", value)
    if kind in ("i64", "time"):
        return struct.pack(">Q", value + (1 << 63))
    if kind == "f64":
        bits = struct.unpack(">Q", struct.pack(">d", value))[0]
        return struct.pack(">Q", bits ^ (1 << 63) if bits < 1 << 63 else ~bits & ((1 << 64) - 1))
    raw = value.encode("utf-8") if kind == "text" else value
    return raw.replace(b"\0", b"\0\xff") + b"\0\0" if is_part else raw


# The inputs.

class Case:
    """An input, and what the program is told of it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        pick = self.random.choice
        self.kinds = [self.kind(), self.kind()]
        self.source = pick(["csv", "csv", "tsv", "jsonl", "jsonl", "sqlite"])
        if self.source == "sqlite":
            self.kinds = [pick(["i64", "f64", "text"]), pick(["i64", "f64", "text"])]
        self.is_json = self.source == "jsonl" or self.source == "sqlite" and pick([True, False])
        has_values = self.kinds[1] not in MAY_BE_EMPTY or self.source == "sqlite"
        self.keys_only = not has_values and pick([False, False, False, True])
        self.has_heading = self.is_json or pick([1, 1, 1, 0])
        # Components of a tuple in columns of their own, or as an array in one.
        self.spread = [isinstance(kind, list) and pick([True, False]) for kind in self.kinds]
        self.delimiter = "\t" if self.source == "tsv" else pick([",", ",", ";", "|", "\t"])
        ending = "jsonl" if self.is_json else "tsv" if self.source == "tsv" else "csv"
        self.name = f"rows.{ending}" + pick(["", "", "", ".gz"])
        # Few different words, and many that are empty, in a part of the inputs.
        self.letters = pick([LETTERS, LETTERS, ["", "", "a"]])
        self.bad_part = pick([0, 0, 0, 0.02])
        rows = self.rows(pick([0, 1, 2, 5, 30, 30, 300]))
        self.text = self.json_lines(rows) if self.is_json else self.table(rows)

    def kind(self):
        return self.random.choice(TUPLES if self.random.random() < 0.2 else PLAIN)

    def word(self, kind):
        """A text that is one of `kind`, and now and then one that is none."""
        pick = self.random.choice
        bad = self.random.random() < self.bad_part
        if kind in ("i64", "u64"):
            texts = [str(self.random.randrange(50))] if pick([1, 1, 0]) else WHOLE
            return pick(WRONG_WHOLE) if bad else pick([text for text in texts if fits(kind, text)])
        if kind == "f64":
            texts = [str(self.random.random())] if pick([1, 0]) else FLOATS + FLOAT_WORDS
            return pick(WRONG_FLOATS if bad else texts)
        if kind == "time":
            return pick(WRONG_TIMES if bad else TIMES)
        if kind == "hex":
            pairs = [pick(["00", "ff", "0A", "0a"]) for _ in range(pick([0, 0, 1, 2]))]
            return pick(["abc", "0g"]) if bad else "".join(pairs)
        letters = "".join(pick(self.letters) for _ in range(pick([0, 1, 1, 2, 5])))
        if kind == "bytes" and self.is_json and not bad:
            return letters.replace("\\", pick(["\\\\", "\\x5c", "\\xFf"]))
        return letters

    def rows(self, count):
        """Words of keys and values; some keys come again."""
        def words(kind):
            return [self.word(one) for one in kind] if isinstance(kind, list) else self.word(kind)
        rows = []
        for _ in range(count):
            again = rows and self.random.random() < 0.4
            key = self.random.choice(rows)[0] if again else words(self.kinds[0])
            rows.append((key, words(self.kinds[1])))
        return rows

    def heads(self):
        """The headings of the key and of the value."""
        def names(what, place):
            kind = self.kinds[place]
            count = len(kind) if self.spread[place] else 0
            return [f"{what}{number}" for number in range(count)] or [what]
        return names("key", 0), [] if self.keys_only else names("value", 1)

    def table(self, rows):
        if self.source == "sqlite":
            rows = [tuple(map(str, row)) for row in self.of_sqlite(rows)]
        file = io.StringIO(newline="")
        # A zero stands in quotes: outside of them it tells of UTF-16.
        styles = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL]
        quoting = csv.QUOTE_ALL if "\\u0000" in json.dumps(rows) else self.random.choice(styles)
        # A carriage return counts as the end of a row only where it is one of the ends.
        ends = "\r\n" if quoting == csv.QUOTE_MINIMAL else self.random.choice(["\n", "\r\n"])
        writer = csv.writer(file, delimiter=self.delimiter, quoting=quoting, lineterminator=ends)
        heads = self.heads()
        if self.has_heading:
            writer.writerow(heads[0] + heads[1])
        for row in rows:
            fields = []
            for words, names, spread in zip(row, heads, self.spread):
                if names:
                    whole = self.array(words) if isinstance(words, list) else words
                    fields += words if spread else [whole]
            file.write(ends * (self.random.random() < 0.05))
            writer.writerow(fields)
        mark = "\ufeff" if self.random.random() < 0.1 else ""
        return mark + file.getvalue()

    def of_sqlite(self, rows):
        """The rows as SQLite gives them back, whose numbers are its own."""
        columns = {"i64": "INTEGER", "f64": "REAL", "text": "TEXT"}
        base = sqlite3.connect(":memory:")
        key, value = (columns[kind] for kind in self.kinds)
        base.execute(f"CREATE TABLE t (key {key}, value {value})")
        # A zero ends a text in what SQLite makes of it.
        rows = [[word.replace("\0", "0") for word in row] for row in rows]
        base.executemany("INSERT INTO t VALUES (?, ?)", rows)
        what = "json_object('key', key, 'value', value)" if self.is_json else "key, value"
        return base.execute(f"SELECT {what} FROM t ORDER BY rowid").fetchall()

    def array(self, words):
        return "[" + ",".join(self.json_of(word) for word in words) + "]"

    def json_of(self, word):
        """A number as a number now and then, all else as a string."""
        if isinstance(word, list):
            return self.array(word)
        number = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
        if re.fullmatch(number, word) and self.random.random() < 0.7:
            return word
        return json.dumps(word, ensure_ascii=self.random.choice([True, False]))

    def json_lines(self, rows):
        if self.source == "sqlite":
            return "".join(f"{line}\n" for line, in self.of_sqlite(rows))
        lines = []
        for row in rows:
            members = [("more", "[1e999,{}]")] * (self.random.random() < 0.2)
            for words, names, spread in zip(row, self.heads(), self.spread):
                if names:
                    members += zip(names, map(self.json_of, words if spread else [words]))
            self.random.shuffle(members)
            gap = self.random.choice(["", " ", "\t"])
            body = ",".join(f'"{name}"{gap}:{gap}{text}' for name, text in members)
            lines.append(self.random.choice(["", "", "", "\n"]) + gap + "{" + body + "}")
        mark = "\ufeff" if self.random.random() < 0.1 else ""
        return mark + "\n".join(lines) + self.random.choice(["", "\n"])

    def options(self):
        heads = self.heads()
        if not self.has_heading:
            count = len(heads[0])
            heads = [[str(number + 1) for number in range(count)],
                     [str(number + 1 + count) for number in range(len(heads[1]))]]
        options = ["--key", ",".join(heads[0]), "--value", ",".join(heads[1])]
        if not self.has_heading:
            options.append("--no-header")
        if not self.is_json and (self.delimiter != "," and self.source != "tsv"):
            options += ["--delimiter", "tab" if self.delimiter == "\t" else self.delimiter]
        return options + ["--buffer", self.random.choice(["1", "1KiB", "32MiB"])]


# What Python reads in an input.

def read_table(case):
    """Line, key and value of each row, up to one that must be refused."""
    text = case.text.removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=case.delimiter, strict=True)
    heads = case.heads()
    line, fields, is_heading = 1, len(heads[0]) + len(heads[1]), case.has_heading
    for row in reader:
        here, line = line, reader.line_num + 1
        if not row or is_heading:
            is_heading = is_heading and not row
            continue
        parts, values = (row[:len(heads[0])], row[len(heads[0]):]), []
        for kind, spread, part in zip(case.kinds, case.spread, parts):
            def value(kind=kind, spread=spread, part=part):
                if len(row) != fields:
                    raise Refused
                if not part:
                    return b"" if kind != "text" else ""
                if spread:
                    return tuple(value_of_field(one, field) for one, field in zip(kind, part))
                return value_of_field(kind, part[0])
            values.append(value)
        yield here, values


def read_json(case):
    for number, line in enumerate(case.text.removeprefix("\ufeff").split("\n")):
        if not line.strip():
            continue
        values = []
        for kind, spread, names in zip(case.kinds, case.spread, case.heads()):
            def value(kind=kind, spread=spread, names=names, line=line):
                row = parsed(line)
                if not names:
                    return b"" if kind != "text" else ""
                found = [row[name] for name in names]
                return value_of_json(kind, found if spread else found[0])
            values.append(value)
        yield number + 1, values


def expected(case):
    """The table that has to be stored, in order, and the line at which the import has to end."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE t (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    bad = None
    for line, values in (read_json if case.is_json else read_table)(case):
        try:
            row = [stored(kind, value()) for kind, value in zip(case.kinds, values)]
        except Refused:
            bad = line
            break
        base.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", row)
    return base.execute("SELECT key, value FROM t ORDER BY key").fetchall(), bad


# The program.

def spelled(kind):
    return f"tuple({','.join(kind)})" if isinstance(kind, list) else kind


def run(program, folder, *words):
    return subprocess.run([program, *words], cwd=folder, capture_output=True, check=False)


def check(case, program):
    """Imports the input; returns what is wrong, or None."""
    with tempfile.TemporaryDirectory() as folder:
        content = case.text.encode("utf-8")
        with open(os.path.join(folder, case.name), "wb") as file:
            file.write(gzip.compress(content) if case.name.endswith(".gz") else content)
        made = run(program, folder, "create", "a.db", "--durability", "checkpoint",
                   "--key", spelled(case.kinds[0]), "--value", spelled(case.kinds[1]))
        if made.returncode:
            return made.stderr.decode()
        command = ["import", "a.db", case.name, "--quiet", *case.options()]
        done = run(program, folder, *command)
        rows, bad = expected(case)
        says = done.stderr.decode("utf-8", "replace")
        if not case.text.removeprefix("\ufeff") and not case.is_json:
            return None if "it is empty" in says else f"an empty table: {says}"
        is_told = f", line {bad}: " in says
        if (done.returncode, is_told) != ((0, False) if bad is None else (1, True)):
            return f"{command}: exit {done.returncode}, bad line {bad} expected: {says}"
        dump = run(program, folder, "export", "a.db", "-", "--format", "jsonl", "--quiet")
        if dump.returncode:
            return dump.stderr.decode()
        entries = [parsed(line) for line in dump.stdout.decode("utf-8").splitlines() if line]
        names = list(zip(case.kinds, ("key", "value")))
        found = [tuple(stored(kind, value_of_json(kind, entry[name])) for kind, name in names)
                 for entry in entries]
        for place, (one, other) in enumerate(zip(rows + [None], found + [None])):
            if one != other:
                return f"{command}: entry {place} is {other}, not {one}"
        return None


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        program = os.path.abspath(sys.argv[3])
    else:
        build = ["cargo", "build", "-q", "--release", "--workspace", "--bin", "flashtree"]
        subprocess.run(build, cwd=ROOT, check=True)
        target = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"))
        program = os.path.abspath(os.path.join(target, "release", "flashtree"))
    bad = 0
    for number in range(seed, seed + count):
        case = Case(number)
        wrong = check(case, program)
        if wrong:
            kinds = ", ".join(map(spelled, case.kinds))
            replay = f"python3 checks/promises/import-as-python-reads-it.py {number} 1"
            # The last line is what ./check promises tells.
            sys.exit(f"{wrong.strip()}\nseed {number}, {case.name} of {kinds}; replay: {replay}")
        bad += expected(case)[1] is not None
    print(f"of them with a row that is refused: {bad}")
    print(f"inputs imported as Python reads them: {count}")


if __name__ == "__main__":
    main()
