#!/usr/bin/env python3
"""Time `infer-stats cost` against the same query in DuckDB, turn by turn: calls upstream without duplicates, priced, by business line.

usage: cost.py BINARY LOGS [--runs N]
needs: pip install duckdb; LOGS with the keys of `infer-stats generate`

infer-stats is timed as a whole process, DuckDB inside its own, the query alone. Their requests, tokens and cost by line are compared.
"""
import argparse, decimal, json, os, statistics, subprocess, sys, tempfile, time

PRICES = {"llama-7b-trt": ("0.20", "0.05", "0.60"), "qwen2.5-72b-instruct": ("1.20", "0.30", "3.60"), "demo_model": ("0.50", "0.10", "1.50")}
CLASSES = ("input", "cached", "output")


def book(folder):
    path = os.path.join(folder, "prices.toml")
    with open(path, "w") as file:
        for model, prices in PRICES.items():
            rates = "\n".join(f'{name} = "{price}"' for name, price in zip(CLASSES, prices))
            file.write(f'[[model]]\nname = "{model}"\n[[model.price]]\n{rates}\n')
    return path


def query(path):
    table = f"read_json('{path}', format = 'newline_delimited')" if path.endswith("json") else f"'{path}'"
    prices = ", ".join(f"('{model}', {i}::decimal(18, 6), {c}::decimal(18, 6), {o}::decimal(18, 6))" for model, (i, c, o) in PRICES.items())
    return f"""
with calls as (
  select distinct on (request_id, "timestamp", model_name) request_id, "timestamp"::timestamp as ts, business_line, model_name, input_tokens,
    cache_prefix_length as cached, output_tokens, error_code, prefill_time_ms, decode_time_ms, batch_size
  from {table}
),
numbered as (select *, row_number() over (partition by request_id order by ts) = 1 as is_first from calls),
priced as (
  select *, (input_tokens - cached) * i + cached * c + output_tokens * o as cost, input_tokens + output_tokens as tokens
  from numbered left join (values {prices}) as prices(model, i, c, o) on model_name = model
)
select business_line, count(*) filter (is_first), count(*), count(*) filter (error_code <> 0), sum(cost) / 1000000,
  sum(input_tokens - cached), sum(cached), sum(output_tokens), sum((prefill_time_ms + decode_time_ms) / batch_size / 1000), count(batch_size),
  1000 * sum(cost) / count(*) filter (is_first), 1000000 * sum(cost) / sum(tokens) filter (cost is not null),
  count(*) filter (cost is null), sum(tokens) filter (cost is null), sum(coalesce(cost, tokens * 0.05)), sum(coalesce(cost, tokens * 3.60))
from priced group by 1"""


def duckdb_turn(path):
    import duckdb
    db = duckdb.connect()
    db.execute(f"set threads = {os.cpu_count()}")
    start = time.perf_counter()
    rows = db.execute(query(path)).fetchall()
    return time.perf_counter() - start, {row[0]: [row[1], *map(int, row[5:8]), decimal.Decimal(str(row[4])).quantize(decimal.Decimal("0.01"))] for row in rows}


def our_turn(binary, path, prices):
    start = time.perf_counter()
    out = subprocess.run([binary, "cost", "--prices", prices, "--format", "json", "--quiet", path], capture_output=True, text=True, check=True).stdout
    seconds = time.perf_counter() - start
    names = ("requests", "uncached_tokens", "cached_tokens", "output_tokens")
    rows = json.loads(out)["rows"]
    return seconds, {row["business_line"]: [*(row[name] for name in names), decimal.Decimal(row["cost"]).quantize(decimal.Decimal("0.01"))] for row in rows}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("binary")
    args.add_argument("logs")
    args.add_argument("--runs", type=int, default=5)
    args = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prices, ratios, times = book(folder), [], []
        for _ in range(args.runs):
            ours, answer = our_turn(os.path.abspath(args.binary), args.logs, prices)
            theirs, expected = duckdb_turn(args.logs)
            if answer != expected:
                sys.exit(f"the answers differ: {answer} and {expected}")
            ratios.append(theirs / ours)
            times.append((ours, theirs))
            print(f"infer-stats {ours:.2f} s, DuckDB {theirs:.2f} s, ratio {theirs / ours:.2f}")
        print(f"median: infer-stats {statistics.median(t[0] for t in times):.2f} s, DuckDB {statistics.median(t[1] for t in times):.2f} s, ratio {statistics.median(ratios):.2f}")


main()
