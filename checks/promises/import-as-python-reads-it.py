#!/usr/bin/env python3
"""Imports awkward rows into databases, and compares what is exported with what Python's csv and
json read and sqlite3 keeps of the same files: the last row of a key wins.

    import-as-python-reads-it.py PROGRAM CASES [SEED]
"""

import csv
import gzip
import io
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

TYPES = ["text", "bytes", "i64", "u64", "f64"]
LETTERS = ["a", "B", "0", "9", " ", ",", '"', "\n", "\t", "|", "'", "\\n", "ä", "日", "🜁", "=", "-", "."]


def text(chance):
    return "".join(chance.choice(LETTERS) for _ in range(chance.choice([0, 1, 1, 2, 5, 12])))


def number(chance, kind):
    """Digits of a number, as somebody may write them."""
    if kind == "u64":
        return str(chance.choice([0, 1, 7, 2**63, 2**64 - 1, chance.getrandbits(chance.randrange(1, 65))]))
    if kind == "i64":
        return str(chance.choice([0, -1, -(2**63), 2**63 - 1, chance.getrandbits(60) - 2**59]))
    mantissa = chance.choice(["0", "-0", "1", "-2", "10.50", "0.1", "123456789012345678901", "5e-324", "1e22"])
    if "e" in mantissa or chance.random() < 0.6:
        return mantissa
    return mantissa + chance.choice(["e0", "E+3", "e-7"])


def cell(chance, kind):
    """What stands in the file, and what it is."""
    if kind in ("text", "bytes"):
        written = text(chance) if chance.random() < 0.7 else number(chance, chance.choice(["u64", "i64", "f64"]))
        return written, written
    written = number(chance, kind)
    return written, float(written) + 0.0 if kind == "f64" else int(written)


def as_json(chance, kind, written):
    """A member of JSON: numbers stand bare or in quotes, and so do texts of digits."""
    try:
        is_number = json.loads(written) is not None and written == written.strip()
        is_number = is_number and not isinstance(json.loads(written), (str, list, dict, bool))
    except ValueError:
        is_number = False
    if is_number and chance.random() < 0.6:
        return written
    if kind == "bytes":
        written = written.replace("\\", "\\\\").replace("\n", "\\x0a").replace("\t", "\\x09")
    return json.dumps(written, ensure_ascii=chance.random() < 0.5)


def file_of(chance, form, rows, kinds):
    out = io.StringIO(newline="")
    if form == "jsonl":
        for key, value in rows:
            members = [f'"key": {as_json(chance, kinds[0], key)}', f'"value":{as_json(chance, kinds[1], value)}']
            chance.shuffle(members)
            out.write("{" + ",".join(members) + "}\n" + "\n" * (chance.random() < 0.1))
        return out.getvalue().encode()
    end = chance.choice(["\n", "\r\n"])
    quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(out, delimiter={"csv": ",", "tsv": "\t"}[form], lineterminator=end, quoting=quoting)
    writer.writerow(["key", "value"])
    writer.writerows(rows)
    return out.getvalue().encode()


def sort_key(value):
    return value.encode() if isinstance(value, str) else value


def play(program, seed):
    chance = random.Random(seed)
    kinds = [chance.choice(TYPES), chance.choice(TYPES)]
    form = chance.choice(["csv", "tsv", "jsonl"])
    cells = [[cell(chance, kind) for kind in kinds] for _ in range(chance.choice([1, 3, 30, 400]))]
    rows = [[written for written, _ in row] for row in cells]
    table = sqlite3.connect(":memory:")
    table.execute("CREATE TABLE rows (place INTEGER)")
    kept = {}
    for place, ((_, key), _) in enumerate(cells):
        table.execute("INSERT INTO rows VALUES (?)", [place])
        if key in kept:
            table.execute("DELETE FROM rows WHERE place = ?", [kept[key]])
        kept[key] = place
    places = [place for (place,) in table.execute("SELECT place FROM rows")]
    expected = sorted(((cells[place][0][1], cells[place][1][1]) for place in places), key=lambda row: sort_key(row[0]))
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *words: subprocess.run([program, *words], cwd=folder, capture_output=True, check=False)
        name = f"rows.{form}"
        data = file_of(chance, form, rows, kinds)
        if chance.random() < 0.3:
            name, data = name + ".gz", gzip.compress(data)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
        for words in [
            ["create", "a.db", "--key", kinds[0], "--value", kinds[1]],
            ["import", "a.db", name, "--quiet", "--buffer", chance.choice(["1KiB", "32MiB"])],
        ]:
            done = run(*words)
            if done.returncode != 0:
                return f"{' '.join(words)}: {done.stderr.decode()}"
        printed = run("export", "a.db", "out.csv", "--quiet")
        if printed.returncode != 0:
            return printed.stderr.decode()
        with open(os.path.join(folder, "out.csv"), newline="", encoding="utf-8") as file:
            read = list(csv.reader(file))[1:]
        of = {"i64": int, "u64": int, "f64": float}
        found = [tuple(of.get(kind, str)(field) for kind, field in zip(kinds, row)) for row in read]
    if found != expected:
        wrong = [pair for pair in zip(found, expected) if pair[0] != pair[1]][:3]
        return f"{kinds} in {name}: {len(found)} of {len(expected)} rows; found and expected {wrong}"
    return None


def main():
    program, cases = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    seeds = [int(sys.argv[3])] if len(sys.argv) > 3 else range(cases)
    for seed in seeds:
        fault = play(program, seed)
        if fault:
            print(f"seed {seed}: {fault}\n  again: {sys.argv[0]} {sys.argv[1]} 1 {seed}")
            sys.exit(1)
    print(f"files that were imported as Python reads them: {len(seeds)}")


main()
