"""Makes the profile that a release wheel is optimized with (profile-guided optimization).

In: the tree, and rustc.  Out: a profile, and the flags of rustc that use it.

Laws: a profile serves the wheels of all Pythons, but only builds with the same features, with
`--target` and with `AS_WITH_ZIG`: cargo hashes all of these into the names of functions, and rustc
ignores the profile of a name that it does not know. The instrumented extension is linked by the
linker of this machine; zig's does not take the profiling runtime.

usage: tools/profiled.py PROFILE [--features FEATURES]    makes a profile
       tools/profiled.py PROFILE -- maturin build ...     runs a build that uses it
       tools/profiled.py --bounds                         prints RUSTFLAGS for `maturin build --pgo`
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
TRAINING: Final = ROOT / "tools" / "training.py"

# Code is hot if it belongs to the blocks that take 80 % of all executions, and is optimized for
# size outside of those that take 90 %.  With LLVM's own bound for hot code (99 %) the extension is
# twice as large; long streams are read as fast, and short ones a tenth faster.
BOUNDS: Final = " ".join(
    f"-Cllvm-args={bound}"
    for bound in (
        "-profile-summary-cutoff-hot=800000",
        "-profile-summary-cutoff-cold=980000",
        "-pgso-lwss-only=false",
        "-pgso-cutoff-instr-prof=900000",
    )
)

# What `maturin build --zig` sets, so that RUSTFLAGS are not those of build scripts.
AS_WITH_ZIG: Final = {
    "CARGO_TARGET_APPLIES_TO_HOST": "false",
    "CARGO_UNSTABLE_TARGET_APPLIES_TO_HOST": "true",
    "__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS": "nightly",
}


def flags(profile: Path) -> str:
    """Return the RUSTFLAGS of a build that uses a profile."""
    return f"-Cprofile-use={profile} {BOUNDS}"


def make_profile(profile: Path, python: Path, *features: str) -> None:
    """Build the instrumented extension, run the training with it, and merge the written profiles.

    `python` has the dependencies of deltafold.

    Raises:
        SystemExit: llvm-tools are missing, and rustup is not installed.
        CalledProcessError: the build or the training failed.
    """
    merge = profdata()
    maturin = Path(sys.executable).parent / "maturin"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = folder / "profiles"
        build: list[str | Path] = [maturin, "build", "--release", "--locked"]
        build += ["--auditwheel", "skip", "--interpreter", python]
        build += ["--target-dir", ROOT / "target" / "instrumented"]
        build += ["--target", host(), *features]
        generate = os.environ | AS_WITH_ZIG | {"RUSTFLAGS": f"-Cprofile-generate={written}"}
        subprocess.run([*build, "--out", folder], env=generate, cwd=ROOT, check=True)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "installed")
        where = {"PYTHONPATH": str(folder / "installed")}
        subprocess.run([python, TRAINING], env=os.environ | where, cwd=folder, check=True)
        profile.parent.mkdir(parents=True, exist_ok=True)
        profiles = sorted(written.glob("*.profraw"))
        subprocess.run([merge, "merge", "--output", profile, *profiles], check=True)


def host() -> str:
    """Return the target triple of this machine."""
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return said.partition("host: ")[2].splitlines()[0]


def profdata() -> Path:
    """Return rustc's llvm-profdata; rustup adds it to the toolchain if it is missing.

    Raises:
        SystemExit: llvm-profdata is missing, and rustup is not installed.
    """
    asked = ["rustc", "--print", "sysroot"]
    sysroot = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    found = Path(sysroot) / "lib" / "rustlib" / host() / "bin" / "llvm-profdata"
    if not found.exists() and (rustup := shutil.which("rustup")):
        subprocess.run([rustup, "component", "add", "llvm-tools"], check=True)
    if not found.exists():
        raise SystemExit("a release wheel needs rustc's llvm-tools, and rustup did not add them")
    return found


def main() -> int:
    """Make the profile, or run the command with it; returns the exit code."""
    if sys.argv[1:] == ["--bounds"]:
        print(f"RUSTFLAGS={BOUNDS}")
        return 0
    profile, rest = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if rest[:1] != ["--"]:
        make_profile(profile, ROOT / ".venv-test" / "bin" / "python", *rest)
        return 0
    use = os.environ | AS_WITH_ZIG | {"RUSTFLAGS": flags(profile)}
    return subprocess.run([*rest[1:], "--target", host()], env=use, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
