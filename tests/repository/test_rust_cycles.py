"""What Rust modules and crates may import: no cycle, which the tool finds, and no grammar."""

import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

import rust_cycles


def findings(tmp_path: Path, files: dict[str, str]) -> list[str]:
    """Write the files of a crate and return the findings of the tool."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return rust_cycles.findings(tmp_path)


def run(*arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run the tool as the lint gate does."""
    command = [sys.executable, rust_cycles.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_workspace_has_no_cycle() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("crate", "rooms", "floors", "arrows"),
    [("rust/core/src", 17, 10, 55), ("rust/bindings/src", 8, 5, 17)],
)
def test_the_rooms_of_a_crate_stay_few(crate: str, rooms: int, floors: int, arrows: int) -> None:
    graph = rust_cycles.top_level(rust_cycles.Crate(rust_cycles.ROOT / crate).graph())
    assert len(graph) <= rooms
    assert sum(map(len, graph.values())) <= arrows
    height = dict[str, int]()
    for room in TopologicalSorter(graph).static_order():
        height[room] = 1 + max((height[below] for below in graph[room]), default=0)
    assert max(height.values()) <= floors


def test_a_cycle_fails_with_its_path(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\n",
        "a.rs": "use crate::b::B;\npub struct A(B);\n",
        "b.rs": "use crate::c::C;\npub struct B(C);\n",
        "c.rs": "pub struct C;\n",
    }
    assert findings(tmp_path, files) == []
    (tmp_path / "c.rs").write_text("pub struct C(crate::a::A);\n", encoding="utf-8")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "import cycle of files: a.rs -> b.rs -> c.rs -> a.rs" in done.stdout
    assert "import cycle of modules: a -> b -> c -> a" in done.stdout


def test_a_directory_without_rust_fails(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 1


CYCLES: Final = {
    "an inline path": ("pub fn a() { crate::b::b() }", "pub fn b() { crate::a::a() }"),
    "a use tree": ("use crate::{b::{self, B}};", "use crate::a;"),
    "a use with an alias": ("use crate::b as other;", "use crate::a::A as Other;"),
    "super": ("use super::b::B;", "use super::a::*;"),
    "super in an inline module": ("mod inner { use super::super::b::B; }", "use crate::a::A;"),
    "a macro": ("macro_rules! m { () => { crate::b::b() } }", "use crate::a::A;"),
    "visible use inside a function": ("fn a() { use crate::b::B; }", "use crate::a::A;"),
}


@pytest.mark.parametrize(("a", "b"), CYCLES.values(), ids=CYCLES)
def test_each_way_to_name_a_module_counts(tmp_path: Path, a: str, b: str) -> None:
    found = findings(tmp_path, {"lib.rs": "mod a; mod b;", "a.rs": a, "b.rs": b})
    assert found == ["files: a.rs -> b.rs -> a.rs", "modules: a -> b -> a"]


NO_USES: Final = {
    "a comment": ("use crate::b::B;", "// crate::a::A\n/* use crate::a; */\n/// [`crate::a::A`]"),
    "a string": (
        "use crate::b::B;",
        'const B: &str = "crate::a::A"; const C: &str = r#"crate::a"#;',
    ),
    "a visibility": ("use crate::b::B;", "pub(in crate::a) struct B;"),
    "another crate": ("use crate::b::B;", "use a::A; use ::a::B; fn b() { std::mem::swap() }"),
    "itself": ("use crate::b::B;", "use self::inner::C; mod inner { use super::B; }"),
    "a lifetime and characters": ("use crate::b::B;", "fn b<'a>(x: &'a str) { ('\"', '\\'') }"),
}


@pytest.mark.parametrize(("a", "b"), NO_USES.values(), ids=NO_USES)
def test_what_names_no_module_does_not_count(tmp_path: Path, a: str, b: str) -> None:
    assert findings(tmp_path, {"lib.rs": "mod a; mod b;", "a.rs": a, "b.rs": b}) == []


def test_a_parent_that_only_declares_and_re_exports_has_no_cycle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "pub mod parent;",
        "parent/mod.rs": "mod one; mod two; pub use one::One; pub(crate) use two::{Two, twice};",
        "parent/one.rs": "use super::Two; pub struct One;",
        "parent/two.rs": "pub struct Two; pub fn twice() {}",
    }
    assert findings(tmp_path, files) == []


def test_a_re_export_hides_no_cycle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "pub mod parent;",
        "parent/mod.rs": "mod one; mod two; pub use one::One; pub use two::*;",
        "parent/one.rs": "use super::two::Two; pub struct One;",
        "parent/two.rs": "use crate::parent::One; pub struct Two;",
    }
    cycle = "files: parent/one.rs -> parent/two.rs -> parent/one.rs"
    assert findings(tmp_path, files) == [cycle]


def test_a_parent_with_items_of_its_own_counts_like_any_file(tmp_path: Path) -> None:
    files = {
        "lib.rs": "pub mod parent;",
        "parent/mod.rs": "mod child; use child::Child; pub struct Own(Child);",
        "parent/child.rs": "use super::Own; pub struct Child;",
    }
    cycle = "files: parent/child.rs -> parent/mod.rs -> parent/child.rs"
    assert findings(tmp_path, files) == [cycle]


def test_files_of_one_module_may_not_close_a_cycle_of_modules(tmp_path: Path) -> None:
    files = {
        "lib.rs": "pub mod a; pub mod b;",
        "a/mod.rs": "mod high; mod low; pub use high::High; pub use low::Low;",
        "a/high.rs": "use crate::b::B; pub struct High;",
        "a/low.rs": "pub struct Low;",
        "b.rs": "use crate::a::Low; pub struct B;",
    }
    assert findings(tmp_path, files) == ["modules: a -> b -> a"]


def test_no_product_code_depends_on_the_grammar() -> None:
    for manifest in (rust_cycles.ROOT / "rust").glob("*/Cargo.toml"):
        needed = tomllib.loads(manifest.read_text(encoding="utf-8"))["dependencies"]
        assert manifest.parent.name == "fuzz" or "deltafold-grammar" not in needed
