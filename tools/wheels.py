"""Builds the wheels of this machine as a release builds them, and tests each without Rust.

In: the tree, its profiles (`tools/profiled.py`), and the CPythons of this machine.  Out: wheels and
the sdist in `dist/release`, and a table of tags, sizes, the glibc that each needs, and the tests
that passed with it.

Laws: a wheel passes when auditwheel finds the promised tag, abi3audit no symbol outside of the
stable ABI, twine no mistake in the metadata, and the core of the suite no failure in an environment
that has no Rust. Each wheel has a list of its crates (SBOM). The sdist is built once more without a
network, from vendored crates.

usage: tools/wheels.py    from the environment of `make check NAME=wheels`
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from profiled import flags, host

ROOT: Final = Path(__file__).resolve().parent.parent
OUT: Final = ROOT / "dist" / "release"
PROFILES: Final = ROOT / "target"
TOOLS: Final = Path(sys.executable).parent
GLIBC: Final = (2, 17)
TAG: Final = "manylinux_2_17_x86_64"
LARGEST_BYTES: Final = 2_500_000
OLDEST: Final = (3, 11)
CORE: Final = (
    "tests/decode/test_decoder.py",
    "tests/decode/test_fixtures.py",
    "tests/messages/test_messages.py",
    "tests/messages/test_lazy_messages.py",
    "tests/decode/test_partial_json.py",
    "tests/streams/test_stream.py",
    "tests/transcoding/test_transcoding_to_messages.py",
    "tests/cli/test_cli.py",
    "tests/messages/test_first_use.py",
    # Every block of README.md and docs/, run against the installed wheel.
    "tests/docs/test_documents.py",
    "tests/docs/test_gateway_doc.py",
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A CPython of this machine."""

    path: Path
    version: tuple[int, int]


@dataclass(slots=True)
class Row:
    """Findings about a wheel."""

    wheel: Path
    glibc: str
    passed: list[str]


def main() -> int:
    """Build, examine and test; returns the exit code."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    found = interpreters()
    print("CPython:", ", ".join(f"{major}.{minor}" for major, minor in (i.version for i in found)))
    oldest = found[0]
    if oldest.version != OLDEST:
        raise SystemExit(f"the abi3 wheel is built with CPython 3.11, and the oldest is {oldest}")
    abi3 = build(oldest, "--features", "abi3")
    rows = [Row(build(interpreter), "", []) for interpreter in found]
    rows.append(Row(abi3, "", []))
    run(TOOLS / "maturin", "sdist", "--out", OUT)
    run(TOOLS / "twine", "check", "--strict", *sorted(OUT.iterdir()))
    run(TOOLS / "abi3audit", "--strict", abi3)
    for row in rows:
        row.glibc = needed_glibc(row.wheel)
        if not has_sbom(row.wheel):
            raise SystemExit(f"{row.wheel.name} has no SBOM in its .dist-info/sboms")
    with tempfile.TemporaryDirectory() as folder:
        for interpreter in found:
            place = Path(folder) / f"{interpreter.version[1]}"
            for row in rows:
                if row.wheel == abi3 or fits(row.wheel, interpreter):
                    row.passed.append(prove(row.wheel, interpreter, place))
        built_offline(next(OUT.glob("*.tar.gz")), Path(folder))
    print_table(rows)
    too_large = [row.wheel.name for row in rows if row.wheel.stat().st_size > LARGEST_BYTES]
    if too_large:
        print(f"above {LARGEST_BYTES:,} bytes: {', '.join(too_large)}", file=sys.stderr)
    return 1 if too_large else 0


def interpreters() -> list[Interpreter]:
    """Return each supported CPython of PATH and of pyenv, the oldest first."""
    named = (shutil.which(f"python3.{minor}") for minor in range(11, 20))
    places = [Path(path) for path in named if path is not None]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places += sorted(pyenv.glob("versions/*/bin/python3"))
    code = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    found: dict[tuple[int, int], Interpreter] = {}
    for path in places:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        name, _, version = done.stdout.strip().partition(" ")
        if done.returncode == 0 and name == "cpython":
            major, minor = map(int, version.split())
            if (major, minor) >= OLDEST:
                found.setdefault((major, minor), Interpreter(path, (major, minor)))
    return [found[version] for version in sorted(found)]


def build(interpreter: Interpreter, *features: str) -> Path:
    """Build a wheel for an old glibc, with zig as the linker, and return it."""
    before = set(OUT.glob("*.whl"))
    command: list[str | Path] = [TOOLS / "maturin", "build", "--release", "--locked", "--zig"]
    command += ["--compatibility", "manylinux2014", "--interpreter", interpreter.path]
    command += ["--compression-level", "9"]
    # maturin looks for the module ziglang with the python of PATH.
    path = f"{TOOLS}:{os.environ['PATH']}"
    profile = PROFILES / ("abi3.profdata" if "abi3" in features else "profile.profdata")
    made_of = {**os.environ, "PATH": path, "RUSTFLAGS": flags(profile)}
    run(*command, "--target", host(), "--out", OUT, *features, env=made_of)
    (made,) = set(OUT.glob("*.whl")) - before
    return made


def has_sbom(wheel: Path) -> bool:
    """Return whether a wheel has a list of the crates that it was built from."""
    with zipfile.ZipFile(wheel) as archive:
        return any(
            ".dist-info/sboms/" in name and name.endswith(".json") for name in archive.namelist()
        )


def fits(wheel: Path, interpreter: Interpreter) -> bool:
    """Return whether a wheel was built for one version, and for this one."""
    major, minor = interpreter.version
    return f"-cp{major}{minor}-cp{major}{minor}-" in wheel.name


def needed_glibc(wheel: Path) -> str:
    """Return the newest version of glibc's symbols that a wheel uses.

    Raises:
        SystemExit: the wheel does not keep the promise of its tag.
    """
    shown = run(TOOLS / "auditwheel", "show", wheel)
    if TAG not in shown:
        raise SystemExit(f"{wheel.name} is not {TAG}:\n{shown}")
    newest = newest_glibc(shown)
    if newest > GLIBC:
        raise SystemExit(f"{wheel.name} needs glibc {newest[0]}.{newest[1]}")
    return f"{newest[0]}.{newest[1]}"


def newest_glibc(shown: str) -> tuple[int, int]:
    """Return the newest version of glibc that a report of auditwheel names."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", shown)
    return max([(2, 0), *((int(major), int(minor)) for major, minor in versions)])


def prove(wheel: Path, interpreter: Interpreter, place: Path) -> str:
    """Install a wheel where no Rust is, run the core of the suite, and count passed tests."""
    python = install(wheel, interpreter, place)
    without_rust = {"PATH": f"{place / 'bin'}:/usr/bin:/bin", "HOME": str(place)}
    if shutil.which("cargo", path=without_rust["PATH"]):
        raise SystemExit("cargo is on the PATH of an environment that should be without Rust")
    run(python, "-c", "import deltafold; assert 'site-packages' in deltafold.__file__", cwd=place)
    shown = run(python, "-m", "pytest", "-q", *CORE, cwd=ROOT, env=without_rust)
    passed = re.findall(r"(\d+) passed", shown)
    major, minor = interpreter.version
    return f"{major}.{minor}: {passed[-1] if passed else 0} passed"


def install(wheel: Path, interpreter: Interpreter, place: Path) -> Path:
    """Install a wheel, and what `make test` installs beside it, and return the python."""
    python = place / "bin" / "python"
    if not python.exists():
        run(interpreter.path, "-m", "venv", place)
        requirements = ROOT / "requirements" / "test.txt"
        run(python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", wheel)
    return python


def built_offline(sdist: Path, folder: Path) -> None:
    """Build the sdist by pip, from vendored crates and without a network.

    The sdist leaves out a member of the workspace, so cargo removes its packages from Cargo.lock.

    Raises:
        SystemExit: cargo changed the version of a package.
    """
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    locked = packages(source)
    config = run("cargo", "vendor", "vendor", cwd=source)
    if changed := packages(source) - locked:
        raise SystemExit(f"the sdist was built with other packages than Cargo.lock: {changed}")
    (source / ".cargo").mkdir()
    (source / ".cargo" / "config.toml").write_text(config)
    offline = {
        **os.environ,
        "CARGO_NET_OFFLINE": "true",
        "CARGO_HOME": str(folder / "cargo"),
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        # An address where nothing listens, in case a tool does not know the other switches.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    out = folder / "offline"
    command: list[str | Path] = [
        TOOLS / "python",
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    command += ["--no-build-isolation", "--wheel-dir", out, source]
    run(*command, env=offline)
    (made,) = out.glob("*.whl")
    print(f"pip builds the sdist offline: {made.name}, {made.stat().st_size:,} bytes")


def packages(source: Path) -> set[tuple[str, str, str]]:
    """Return name, version and checksum of each package in a Cargo.lock."""
    lock = tomllib.loads((source / "Cargo.lock").read_text(encoding="utf-8"))
    rows = cast("list[dict[str, str]]", lock["package"])
    return {(row["name"], row["version"], row.get("checksum", "")) for row in rows}


def print_table(rows: list[Row]) -> None:
    """Print the findings about each wheel."""
    print("\n| wheel | bytes | glibc | core of the suite, without Rust |\n|---|---:|---:|---|")
    for row in rows:
        size = f"{row.wheel.stat().st_size:,}"
        print(f"| {row.wheel.name} | {size} | {row.glibc} | {'; '.join(row.passed)} |")


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Run a command, and return its output.

    Raises:
        SystemExit: the command failed; its output is shown.
    """
    print("+", *command, flush=True)
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout, done.stderr, file=sys.stderr)
        raise SystemExit(f"{command[0]} failed with exit code {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
