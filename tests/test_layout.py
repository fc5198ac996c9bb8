"""The shape of the packages: what may import what, and what a wheel holds. Import Linter checks the rest."""

import ast
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = [
    ROOT / "middleware" / "herdgate",
    ROOT / "gateway" / "herdgate_gateway",
    ROOT / "loadtest" / "herdgate_loadtest",
    ROOT / "clients" / "python" / "herdgate_client",
]
CORE = PACKAGES[0] / "core"

PURE = {
    *("__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "contextlib", "dataclasses", "enum"),
    *("functools", "hashlib", "heapq", "hmac", "ipaddress", "itertools", "json", "math", "operator", "re", "string"),
    *("struct", "types", "typing", "urllib", "zlib"),
}
"""Standard library modules without I/O, clock or randomness: all that the core may know."""


def modules(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.py"))
    assert found, f"no modules in {folder}"
    return found


def imported(path: Path) -> Iterator[str]:
    """Absolute names of all that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", modules(CORE), ids=named)
def test_core_imports_only_itself_and_pure_standard_library(path: Path) -> None:
    foreign = {
        name
        for name in imported(path)
        if name != "herdgate.core" and not name.startswith("herdgate.core.") and name.partition(".")[0] not in PURE
    }
    assert not foreign


@pytest.mark.parametrize("path", [path for package in PACKAGES for path in modules(package)], ids=named)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_importing_herdgate_needs_only_the_standard_library() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'middleware')!r}); import herdgate; print(herdgate.__all__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "AdmissionMiddleware" in done.stdout


def test_every_subcommand_loads() -> None:
    commands = entry_points(group="herdgate.commands")
    assert "demo" in commands.names
    for command in commands:
        assert callable(command.load()), command.name


def test_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("herdgate-*-py3-none-any.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    for package in PACKAGES:
        assert f"{package.name}/py.typed" in held
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert str(path.relative_to(package.parent)) in held
