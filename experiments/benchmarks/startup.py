"""Start-up times: new processes, and what the demo spends its time on.

``python -m experiments.benchmarks.startup``. Seconds of a new process over those of the bare
interpreter, wall clock and CPU, the least of several runs: on a shared machine only the CPU says
something. The last lines take the demo apart: what scikit-learn and what it needs take to be
imported is not ours to change, so the demo and islab's own modules are told as ratios to it, too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

NEEDED = "import numpy, scipy.stats, pandas, sklearn.datasets, sklearn.model_selection"
OURS = f"{NEEDED}; from islab import ISLaBClassifier; import islab.evaluate"

# Name, what a new Python is given, seconds to stay under, runs.
STARTS = (
    ("import islab", ("-c", "import islab"), 0.1, 7),
    ("islab --help", ("-m", "islab", "--help"), 0.3, 7),
    ("islab demo", ("-m", "islab", "demo", "--json"), 2.0, 3),
    ("import what the demo needs", ("-c", NEEDED), None, 5),
    ("the same and islab's estimators", ("-c", OURS), None, 5),
)


def seconds(*arguments: str) -> tuple[float, float]:
    """Wall clock and CPU of one new process and its children."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after, wall = os.times(), time.perf_counter() - start
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def least(n_runs: int, *arguments: str) -> tuple[float, float]:
    runs = [seconds(*arguments) for _ in range(n_runs)]
    return min(wall for wall, _ in runs), min(cpu for _, cpu in runs)


def main() -> None:
    bare = least(7, "-c", "pass")
    found = {}
    print(f"{'':34s} {'wall':>7s} {'CPU':>7s}   load {os.getloadavg()[0]:.1f}")
    for name, arguments, target, n_runs in STARTS:
        wall, cpu = (
            value - base for value, base in zip(least(n_runs, *arguments), bare, strict=True)
        )
        found[name] = {"wall": wall, "cpu": cpu} | ({} if target is None else {"target": target})
        words = "" if target is None else f"   target {target:g}"
        print(f"{name:34s} {wall:7.3f} {cpu:7.3f}{words}", flush=True)
    needed = found["import what the demo needs"]["cpu"]
    for name in ("the same and islab's estimators", "islab demo"):
        found[name]["ratio"] = found[name]["cpu"] / needed
        print(f"CPU of {name}, over importing what the demo needs: {found[name]['ratio']:.2f}")
    machine = {"cpu": platform.machine(), "python": platform.python_version()}
    machine["load"] = os.getloadavg()[0]
    RESULTS.mkdir(exist_ok=True)
    content = {"measured": found, "machine": machine}
    (RESULTS / "startup.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
