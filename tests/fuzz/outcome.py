"""What a fuzzer counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

FAILURES_SHOWN = 10


@dataclass
class Outcome:
    """How often each thing happened, and what must not have happened.

    Attributes
    ----------
    section : str
    counts : Counter
        Tries by how they ended.
    failures : list of str
        One line for each try that broke a promise, with what is needed to repeat it.
    """

    section: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def tries(self) -> int:
        return self.counts.total()

    def add(self, other: Outcome) -> None:
        self.counts.update(other.counts)
        self.failures += other.failures


def table(outcomes: list[Outcome]) -> str:
    """All outcomes as text, failures last."""
    lines = [f"{'section':12}{'ended as':34}{'tries':>9}{'failures':>10}"]
    for outcome in outcomes:
        lines.append(f"{outcome.section:12}{'all':34}{outcome.tries:>9}{len(outcome.failures):>10}")
        for ending, count in sorted(outcome.counts.items()):
            lines.append(f"{'':12}{ending:34}{count:>9}")
    for outcome in outcomes:
        lines += [f"{outcome.section}: {line}" for line in outcome.failures[:FAILURES_SHOWN]]
    return "\n".join(lines)


def add_to_file(path: Path, outcome: Outcome) -> None:
    """Adds an outcome as a line of JSON."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(vars(outcome)) + "\n")


def read_file(path: Path, sections: Iterable[str]) -> list[Outcome]:
    """The outcomes of all sections; one that is not in the file has failed."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: dict[str, Outcome] = {}
    for stored in map(json.loads, lines):
        outcome = Outcome(stored["section"], Counter(stored["counts"]), stored["failures"])
        found.setdefault(outcome.section, Outcome(outcome.section)).add(outcome)
    for section in sections:
        found.setdefault(section, Outcome(section, failures=["ended before its time, or not run"]))
    return [found[section] for section in sections]
