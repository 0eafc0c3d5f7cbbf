"""Smoke test of an installed wheel: reads, folds and writes a recorded stream.

In: the installed package and the fixtures of this tree.  Out: one line, or an exception.

Law: it needs the wheel and pydantic alone, on every platform that has a wheel.

usage: python tools/smoke.py
"""

from pathlib import Path
from typing import Final

import deltafold

FIXTURES: Final = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "streams"


def main() -> None:
    """Fold each recorded stream at once and byte by byte, and write it in every protocol."""
    bodies = sorted(FIXTURES.glob("anthropic-messages/*/wire.sse"))
    if not bodies:
        raise SystemExit(f"no stream in {FIXTURES}")
    for path in bodies:
        body = path.read_bytes()
        fold = deltafold.Fold("anthropic-messages")
        for place in range(len(body)):
            fold.feed(body[place : place + 1])
        fold.close()
        deltas = list(deltafold.stream([body], "anthropic-messages"))
        if deltas[-1].kind not in {"done", "error"}:
            raise SystemExit(f"{path}: the last delta is {deltas[-1]}")
        for target in deltafold.target_names():
            if not deltafold.transcode(body, "anthropic-messages", target):
                raise SystemExit(f"{path}: nothing was written as {target}")
    print(f"deltafold {deltafold.__version__} reads and writes {len(bodies)} streams")


if __name__ == "__main__":
    main()
