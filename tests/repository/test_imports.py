"""Imports: the moment at which each module is loaded, and access to every public name."""

import ast
import importlib
import json
import subprocess
import sys
import typing
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import deltafold
from deltafold import models, transports
from deltafold.contract import lazy_names
from deltafold.models import adapters

# Beside the standard library, deltafold imports pydantic and what pydantic imports.
ALLOWED: Final = {
    "annotated_types",
    "deltafold",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
BODY: Final = (
    'data: {"id":"a","model":"m","choices":[{"delta":{"reasoning_content":"H","content":"Hi",'
    '"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},'
    '"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
    "\n\ndata: [DONE]\n\n"
)
SUBMODULES: Final = [
    "arrow",
    "blocks",
    "compat",
    "contract",
    "conversation",
    "dialects",
    "dialects.capability",
    "errors",
    "integrations",
    "message",
    "models",
    "otel",
    "rollouts",
    "specs",
    "streams",
    "testing",
    "transports",
    "transports.deadlines",
    "transports.drain",
    "transports.encodings",
    "transports.response_info",
    "transports.responses",
    "transports.secrets",
    "transports.sources",
    "transports.unready",
]
"""Modules that are attributes after `import deltafold` alone."""

NAMES: Final[dict[str, tuple[str, ...]]] = vars(deltafold)["_NAMES"]
"""Names that are imported on first use, by module."""


def run(program: str, *arguments: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def loaded(program: str) -> set[str]:
    """Return the modules that a program loads."""
    report = "print(json.dumps(sorted(set(sys.modules) - before)))"
    code = f"import json, sys\nbefore = set(sys.modules)\n{program}\n{report}"
    return set(json.loads(run(code)))


def test_every_name_loads_pydantic_and_nothing_else_that_is_installed() -> None:
    names = {name.partition(".")[0] for name in loaded("from deltafold import *")}
    assert "pydantic" in names
    # The interpreter's own build facts, which are named after the platform.
    others = {name for name in names if not name.startswith("_sysconfigdata")}
    assert others - sys.stdlib_module_names <= ALLOWED


def test_the_package_of_the_adapters_loads_no_framework() -> None:
    names = {name.partition(".")[0] for name in loaded("import deltafold.integrations")}
    others = {name for name in names if not name.startswith("_sysconfigdata")}
    assert others - sys.stdlib_module_names <= ALLOWED


def test_a_fold_loads_the_extension_alone() -> None:
    names = loaded("import deltafold; deltafold.Fold('openai-chat')")
    ours = {
        "deltafold",
        "deltafold._core",
        "deltafold.contract",
        "deltafold.contract.lazy_names",
        "deltafold.contract.moved_modules",
    }
    assert {name for name in names if name.partition(".")[0] in ALLOWED} == ours
    assert not names & {"asyncio", "dataclasses", "inspect", "re", "typing"}


@pytest.mark.parametrize(
    "read",
    ["list(stream)", "''.join(stream.text())", "list(stream.batches())", "stream.close()"],
)
def test_a_stream_without_a_message_loads_no_pydantic(read: str) -> None:
    program = f"import deltafold\nstream = deltafold.stream([{BODY.encode()!r}], 'openai-chat')\n"
    names = loaded(program + read)
    assert "deltafold.streams.delta_streams" in names
    assert not names & {"asyncio", "deltafold.message.messages", "pydantic", "pydantic_core", "ssl"}


def test_a_message_loads_nothing_that_talks_to_a_network() -> None:
    program = f"import deltafold; deltafold.fold({BODY.encode()!r}, 'openai-chat').parts"
    assert not loaded(program) & {"asyncio", "ssl"}


def stub() -> list[ast.stmt]:
    return ast.parse(Path(deltafold.__file__).with_suffix(".pyi").read_text()).body


def names_of_stub() -> dict[str, set[str]]:
    """Return the names that type checkers and editors see, by module."""
    found: dict[str, set[str]] = {}
    for node in stub():
        if isinstance(node, ast.ImportFrom):
            names = found.setdefault(node.module or "", set())
            names |= {alias.name for alias in node.names if alias.name in {alias.asname, "*"}}
    return found


def test_type_checkers_see_the_names_that_are_imported_on_first_use() -> None:
    found, listed = names_of_stub(), {module: set(names) for module, names in NAMES.items()}
    assert found.pop("deltafold.models.adapters") == {"*"}
    assert found == listed


def completed(text: str) -> set[str]:
    """Return what jedi, which editors use, offers at the end of a program without running it."""
    jedi: Any = importlib.import_module("jedi")  # it has no types
    return {one.name for one in jedi.Script(text).complete()}


def test_editors_complete_all_public_names_without_running_the_code() -> None:
    assert completed("import deltafold\ndeltafold.") >= set(deltafold.__all__)
    assert completed("import deltafold\ndeltafold.fold(b'', '').te") == {"text"}
    assert "stream_sync" in completed("import deltafold\ndeltafold.load_model('').strea")


def test_all_names_of_the_table_are_public() -> None:
    listed = [name for names in NAMES.values() for name in names]
    assert len(set(listed)) == len(listed)
    assert deltafold.__all__ == sorted({*listed, *adapters.__all__})
    assert not set(listed) & set(adapters.__all__)
    assert set(models.__all__) == {*NAMES["deltafold.models"], *adapters.__all__}


def test_type_checkers_know_all_names() -> None:
    assigned = next(node for node in stub() if isinstance(node, ast.AnnAssign))
    assert ast.unparse(assigned.target) == "__all__"
    assert assigned.value is not None
    listed = [name for names in NAMES.values() for name in names]
    assert sorted(ast.literal_eval(assigned.value)) == sorted(listed)


def test_dir_lists_all_public_names_and_modules_alone() -> None:
    names = set(run("import deltafold; print(*dir(deltafold))").split())
    assert names >= set(deltafold.__all__)
    others = {name for name in names - set(deltafold.__all__) if not name.startswith("_")}
    inner = {name for name in SUBMODULES if "." not in name}
    assert others == inner - set(deltafold.__all__)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("name", deltafold.__all__)
def test_a_name_is_found_in_a_fresh_interpreter(name: str) -> None:
    program = (
        "import sys\nfrom importlib import import_module\nimport deltafold\n"
        "name, module = sys.argv[1:]\nvalue = getattr(deltafold, name)\n"
        "assert value is getattr(deltafold, name)\n"
        "if module: assert value is getattr(import_module(module), name)\n"
        "print(name in vars(deltafold))"
    )
    origin = next((module for module, names in NAMES.items() if name in names), "")
    origin = "" if origin == "deltafold" else origin or "deltafold.models.adapters"
    assert run(program, name, origin) == "True\n"


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", SUBMODULES)
def test_a_module_is_found_in_a_fresh_interpreter(name: str) -> None:
    program = f"import deltafold; print(deltafold.{name}.__name__)"
    assert run(program) == f"deltafold.{name}\n"


def test_the_star_imports_every_public_name() -> None:
    program = "from deltafold import *; print(*(name for name in globals()))"
    assert set(run(program).split()) >= set(deltafold.__all__)


@pytest.mark.parametrize("package", [deltafold, models, transports])
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        package.nonsense  # noqa: B018 - the attribute itself is tested


def test_a_reloaded_package_has_the_same_names() -> None:
    program = (
        "import importlib, deltafold\n"
        "before = deltafold.Message\n"
        "assert importlib.reload(deltafold) is deltafold\n"
        "print(deltafold.Message is before, deltafold.stream.__module__, deltafold.Fold.__name__)"
    )
    assert run(program) == "True deltafold.streams.delta_streams Fold\n"


def test_threads_that_use_a_name_first_get_the_same_object() -> None:
    program = f"""
import random, sys, threading
import deltafold

def use(seed):
    names = random.Random(seed % 4).sample(deltafold.__all__, len(deltafold.__all__))
    start.wait()
    found[seed] = {{name: getattr(deltafold, name) for name in names}}
    message = deltafold.fold({BODY.encode()!r}, "openai-chat")
    written[seed] = message.model_dump_json(exclude={{"id"}}), deltafold.Message.user("x").text
    assert deltafold.Message.from_json(message.to_json()) == message

sys.setswitchinterval(1e-5)
start, found, written = threading.Barrier(8), {{}}, {{}}
threads = [threading.Thread(target=use, args=(seed,), daemon=True) for seed in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(50)
assert len(found) == len(written) == 8
for names in found.values():
    assert all(names[name] is found[0][name] for name in names)
print("same")
"""
    assert run(program) == "same\n"


@pytest.mark.parametrize(
    "function",
    [
        deltafold.fold,
        deltafold.afold,
        deltafold.fold_many,
        deltafold.stream,
        deltafold.astream,
        deltafold.DeltaStream.final_message,
        deltafold.DeltaStream.snapshot,
        deltafold.DeltaStream.text,
        deltafold.AsyncDeltaStream.final_message,
        vars(deltafold.DeltaStream.__base__)["usage"].fget,
        vars(deltafold.DeltaStream.__base__)["timing"].fget,
        vars(deltafold.DeltaStream.__base__)["cost_source"].fget,
        deltafold.ModelError.__init__,
        deltafold.ModelError.from_fields,
    ],
)
def test_the_types_of_a_function_are_found(function: typing.Any) -> None:  # noqa: ANN401 - any function
    hints = typing.get_type_hints(function)
    assert "return" in hints
    assert "data_types" not in str(hints)
    assert "data_types" not in str(signature(function, eval_str=True))


def test_the_message_of_a_function_is_the_public_class() -> None:
    assert typing.get_type_hints(deltafold.fold)["return"] is deltafold.Message


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("names_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(module)["__getattr__"] = lazy_names.names_on_first_use(
        module.__name__, {"json": ("dumps",)}
    )
    assert module.dumps is json.dumps
    monkeypatch.setattr(json, "dumps", None)
    assert importlib.import_module(module.__name__).dumps is not None


def test_a_name_is_looked_up_again_after_a_deadlock_of_imports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deadlock: type[RuntimeError] = type("_DeadlockError", (RuntimeError,), {})
    unfinished = ImportError("cannot import name", name="deltafold.errors.model_error")
    raised: list[Exception] = [deadlock("detected"), unfinished]

    def importing(name: str) -> object:
        if raised:
            raise raised.pop()
        return importlib.import_module(name)

    monkeypatch.setattr(lazy_names, "import_module", importing)
    look_up = lazy_names.names_on_first_use(
        __name__, {"deltafold.errors.model_error": ["ModelError"]}
    )
    assert look_up("ModelError") is deltafold.ModelError
    assert not raised


@pytest.mark.parametrize(
    "failure", [ModuleNotFoundError("none", name="another"), RuntimeError("of its body")]
)
def test_another_failure_of_an_import_is_raised_at_once(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    tried: list[str] = []

    def importing(name: str) -> object:
        tried.append(name)
        raise failure

    monkeypatch.setattr(lazy_names, "import_module", importing)
    look_up = lazy_names.names_on_first_use(
        __name__, {"deltafold.errors.model_error": ["ModelError"]}
    )
    with pytest.raises(type(failure)):
        look_up("ModelError")
    assert tried == ["deltafold.errors.model_error"]
