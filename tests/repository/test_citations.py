"""The check of citations refuses pages, anchors and documents that the repository does not have."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

import citations

# The planted names are put together, so that the check of this repository does not find them here.
DOCS: Final = "docs"
MD: Final = "md"

PAGE: Final = f"""# Laws of the page

## Two `words`, and more

## Same

## Same

## Explicit {{ #own }}

<a id="element"></a>

::: pack.Name

```python
# Not a heading
```

[another page](rules.{MD}#gone) and rules.{MD}
"""

CLEAN: Final = {
    f"{DOCS}/laws.{MD}": PAGE,
    f"{DOCS}/rules.{MD}": "# Rules\n",
    f"README.{MD}": f"[rules]({DOCS}/rules.{MD})\n",
    "pack/one.py": "\n".join(
        f"# {DOCS}/laws.{MD}{anchor}"
        for anchor in (
            "",
            "#laws-of-the-page.",
            "#two-words-and-more,",
            "#same",
            "#same_1",
            "#own",
            "#element",
            "#pack.Name",
        )
    ),
    "pack/two.rs": f"//! Source: {DOCS}/rules.{MD}; https://host/main/docs/api.{MD}; README.{MD}\n",
    "pack/three.py": f'# SOURCE.{MD}, ../shared/corpus\nPATH = "notes.{MD}"\n',
    "pack/four.txt": f"{DOCS}/gone.{MD}\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    subprocess.run([citations.GIT, "init", "--quiet", str(root)], check=True)
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def test_citations_of_pages_and_anchors_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, CLEAN)
    assert citations.main(["--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out == "every citation names a page and an anchor of the repository\n"


@pytest.mark.parametrize(
    ("file", "text", "line", "what"),
    [
        pytest.param(
            "pack/bad.rs",
            f"//! Idea.\n//!\n//! Source: {DOCS}/gone.{MD}#e1.\n",
            3,
            f"{DOCS}/gone.{MD} is no page of the repository",
            id="a missing page",
        ),
        pytest.param(
            "pack/bad.py",
            f'"""Idea.\n\nSource: {DOCS}/laws.{MD}#gone.\n"""\n',
            3,
            f"{DOCS}/laws.{MD} has no anchor 'gone'",
            id="a missing anchor",
        ),
        pytest.param(
            "pack/bad.py",
            f'SOURCE = "{DOCS}/laws.{MD}#not-a-heading"\n',
            1,
            f"{DOCS}/laws.{MD} has no anchor 'not-a-heading'",
            id="a line of code that looks like a heading",
        ),
        pytest.param(
            f"README.{MD}",
            f"\n[laws]({DOCS}/laws.{MD}#gone)\n",
            2,
            f"{DOCS}/laws.{MD} has no anchor 'gone'",
            id="a link outside of the pages",
        ),
        pytest.param(
            "pack/bad.pyi",
            f"# See DESIGN.{MD}.\n",
            1,
            f"DESIGN.{MD} is no file of the repository",
            id="a document by its name",
        ),
        pytest.param(
            "bad.toml",
            f"\n# laws.{MD}, part 3\n",
            2,
            f"laws.{MD} is no file of the repository",
            id="a page without its path",
        ),
        pytest.param(
            "pack/bad.py",
            "# ../sha" + f"red/protocols/mapping.{MD}\n",
            1,
            "'sha" + f"red/protocols/mapping.{MD}' is a document outside of the repository",
            id="a folder beside the repository",
        ),
        pytest.param(
            "pack/bad.rs",
            f"// {'protocols'}/encode.{MD}, section 4\n",
            1,
            f"'protocols/encode.{MD}' is a document outside of the repository",
            id="a folder of documents",
        ),
        pytest.param(
            "pack/bad.rs",
            "\n//! Source: the protocol" + "\n//! notes on gemini.\n",
            2,
            "'protocol" + " notes' is a document outside of the repository",
            id="words on two lines of a comment",
        ),
        pytest.param(
            f"{DOCS}/bad.{MD}",
            "By the core domain" + " model.\n",
            1,
            "'core domain" + " model' is a document outside of the repository",
            id="a founding document in a page",
        ),
    ],
)
def test_a_wrong_citation_fails_with_its_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    text: str,
    line: int,
    what: str,
) -> None:
    write(tmp_path, {**CLEAN, file: text})
    assert citations.main(["--root", str(tmp_path)]) == 1
    found = capsys.readouterr().out.splitlines()
    assert len(found) == 1
    assert found[0].startswith(f"{file}:{line}: {what}: cite ")


def test_files_that_git_ignores_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, {**CLEAN, ".gitignore": "/made/\n", "made/bad.py": f"# {DOCS}/gone.{MD}\n"})
    assert citations.main(["--root", str(tmp_path)]) == 0


def test_every_citation_of_this_repository_holds() -> None:
    assert citations.main([]) == 0
