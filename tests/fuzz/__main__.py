"""``python -m tests.fuzz [section ...]`` runs the fuzzers and ends with a table of counts.

Sections that are run by several commands, some under sanitizers, share one table: each adds its
outcomes to a file, and ``--table`` prints all of them. A section that is not there is a failure.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

from tests.fuzz.outcome import Outcome, add_to_file, read_file, table

# Module, function and number of tries.
SECTIONS = {
    "files": ("files", "fuzz_files", 100_000),
    "kernel": ("kernel", "fuzz_kernel", 50_000),
    "chains": ("chains", "fuzz_chains", 50_000),
    "networks": ("networks", "fuzz_networks", 50_000),
    "kills": ("accidents", "fuzz_kills", 200),
    "interrupts": ("accidents", "fuzz_interrupts", 200),
}
MOST_MEMORY = 4 * 2**30  # of address space, so that a file that asks for more is noticed


def run(section: str, count: int, seed: int, jobs: int) -> Outcome:
    """One section, split among processes that have seeds of their own."""
    module, function, _ = SECTIONS[section]
    fuzz: Callable[..., Outcome] = getattr(import_module(f"tests.fuzz.{module}"), function)
    limit = _limit_memory if section == "files" else None
    if jobs == 1 and limit is None:
        return fuzz(count, seed)
    whole = Outcome(section)
    shares = [count // jobs + (number < count % jobs) for number in range(jobs)]
    with ProcessPoolExecutor(jobs, initializer=limit) as pool:
        for part in pool.map(fuzz, shares, range(seed, seed + jobs)):
            whole.add(part)
    return whole


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none")
    parser.add_argument("--count", type=int, help="tries of each section")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--outcomes", type=Path, metavar="FILE", help="add the outcomes to a file")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print all outcomes of a file")
    args = parser.parse_args()
    if args.table is not None:
        return _end(read_file(args.table, SECTIONS))
    outcomes = []
    for section in args.sections or SECTIONS:
        outcome = run(section, args.count or SECTIONS[section][2], args.seed, args.jobs)
        outcomes.append(outcome)
        if args.outcomes is not None:
            add_to_file(args.outcomes, outcome)
    return _end(outcomes)


def _end(outcomes: list[Outcome]) -> int:
    print(table(outcomes))
    return 1 if any(outcome.failures for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
