"""The memory of fits of Parquet files of different size: it should not grow with them.

Each fit runs in a process of its own, whose largest resident memory is printed beside that of a
process that has imported the package, and stored in ``results/beyond_memory.json``.

    python -m experiments.benchmarks.beyond_memory --gigabytes 0.1 0.5 1
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

ROWS_OF_A_FILE, COLUMNS = 500_000, 20
FILE = Path(__file__).parent / "results" / "beyond_memory.json"
BYTES = ROWS_OF_A_FILE * COLUMNS * 8


def write(folder: Path, gigabytes: float) -> int:
    """Files of random numbers with a target, about so large; gives the number of rows."""
    n_files = max(1, round(gigabytes * 1e9 / BYTES))
    for number in range(n_files):
        rng = np.random.default_rng(number)
        x = rng.normal(size=(ROWS_OF_A_FILE, COLUMNS))
        y = x[:, 0] + np.maximum(x[:, 1] * 2 - 1, 0) + rng.normal(size=len(x))
        table = pd.DataFrame(x, columns=[f"x{column}" for column in range(COLUMNS)])
        table.assign(y=y).to_parquet(folder / f"{number:04d}.parquet", index=False)
    return n_files * ROWS_OF_A_FILE


def fit(folder: Path) -> dict[str, float]:
    """In this process: a fit of all files, its seconds and its largest memory."""
    from islab import Batches, ISLaBRegressor

    warnings.simplefilter("ignore")
    imported, start = megabytes(), time.process_time()
    model = ISLaBRegressor(random_state=0).fit(Batches(sorted(folder.glob("*.parquet"))), "y")
    return {
        "rows": model.posterior_.all_rows.n_rows,
        "seconds": time.process_time() - start,
        "imported": imported,
        "megabytes": megabytes(),
    }


def megabytes() -> float:
    """The largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gigabytes", nargs="+", type=float, default=[0.1, 0.5, 1.0])
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit is not None:
        print(json.dumps(fit(args.fit)))
        return
    for gigabytes in args.gigabytes:
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), gigabytes)
            size = sum(path.stat().st_size for path in Path(name).iterdir()) / 1e9
            command = [sys.executable, "-m", "experiments.benchmarks.beyond_memory", "--fit", name]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(run.stdout.splitlines()[-1])
        kept = json.loads(FILE.read_text()) if FILE.exists() else {}
        FILE.write_text(json.dumps(kept | {f"{size:.2f}": found}, indent=2) + "\n")
        print(
            f"{size:5.2f} GB of Parquet, {found['rows']:10,.0f} rows: {found['seconds']:6.1f} s of "
            f"CPU, largest memory {found['megabytes']:,.0f} MB "
            f"({found['imported']:,.0f} MB after imports)",
            flush=True,
        )


if __name__ == "__main__":
    main()
