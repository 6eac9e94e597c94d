#!/usr/bin/env python3
"""How long it takes to look one request up: `trace --alone` beside grep and ripgrep, `trace` beside a scan by `latency`.

    python3 benches/trace.py target/release/infer-stats logs.ndjson [--runs 7]

The commands take turns, on a log that is in the system's cache; the figures are medians, and ratios of the same turn.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import time


def middle_id(path):
    """The id of a record in the middle of the log."""
    with open(path, "rb") as log:
        log.seek(0, 2)
        log.seek(log.tell() // 2)
        log.readline()
        return json.loads(log.readline())["request_id"]


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("log")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    wanted = middle_id(options.log)
    trace = [options.binary, "trace", wanted, options.log, "--quiet", "--format", "json"]
    commands = {
        "grep": ["grep", "-c", "-F", wanted, options.log],
        "trace --alone": trace + ["--alone"],
        "trace": trace,
        "latency --stages": [options.binary, "latency", "--stages", "--quiet", options.log],
    }
    if shutil.which("rg"):
        commands["rg"] = ["rg", "-c", "-F", wanted, options.log]
    for command in commands.values():
        seconds(command)
    turns = [{name: seconds(command) for name, command in commands.items()} for _ in range(options.runs)]
    for name in commands:
        print(f"{name:18} {statistics.median(turn[name] for turn in turns):6.3f} s")

    def ratio(of):
        ratios = sorted(of(turn) for turn in turns)
        return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"

    fastest = lambda turn: min(turn["grep"], turn.get("rg", turn["grep"]))
    print("trace --alone / the faster search:", ratio(lambda turn: turn["trace --alone"] / fastest(turn)))
    print("trace / (trace --alone + latency --stages):", ratio(lambda turn: turn["trace"] / (turn["trace --alone"] + turn["latency --stages"])))


if __name__ == "__main__":
    main()
