"""Reads one stream again and again, for a profiler to look at.

perf record -g --call-graph dwarf python benches/spin.py fold openai-chat 2000 [seconds]
"""

import sys
import time
from typing import Final

from bodies import feeds
from readers import MakeRead, batches, deltas, fold, fold_text

READERS: Final[dict[str, MakeRead]] = {
    "fold": fold,
    "text": fold_text,
    "batches": batches,
    "deltas": deltas,
}


def main() -> None:
    """Do what the command line says."""
    reader, dialect, events, *rest = sys.argv[1:]
    read = READERS[reader](dialect, feeds(dialect, int(events), "16 KiB"))
    end = time.perf_counter() + float(rest[0] if rest else 5)
    count = 0
    while time.perf_counter() < end:
        read()
        count += 1
    print(f"{count} streams")


if __name__ == "__main__":
    main()
