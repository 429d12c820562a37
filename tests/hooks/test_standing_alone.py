"""The hooks run on the Python of a job: 3.8, with its standard library and nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.hooks.jobs import HOOKS, environ, in_a_job

FILES = sorted(HOOKS.glob("*.py"))
FRAMEWORKS = {"torch_profiler", "torch_npu_profiler", "mindspore_profiler", "paddle_profiler"}
# what the standard library of Python 3.8 did not have yet; what it had and lost meanwhile is not in stdlib_module_names
NEWER = {"graphlib", "zoneinfo", "tomllib"}
IMPORTED_WHERE_THEY_ARE = {"torch_npu", "mindspore"}  # inside of a function, in a `try`


def imports(tree: ast.AST) -> set[tuple[int, str]]:
    found = {(0, alias.name) for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return found | {(node.level, node.module or "") for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def test_there_is_a_file_per_framework():
    assert {path.stem for path in FILES} >= FRAMEWORKS


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_python_3_8(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    # what the grammar of 3.8 allows and its library cannot do: `list[int]` and `a | b` that are evaluated
    first = next(node for node in tree.body if isinstance(node, ast.ImportFrom)) if len(tree.body) > 1 else None
    assert first is None or first.module == "__future__", "annotations are not evaluated"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in {"removeprefix", "removesuffix", "is_relative_to"}, ast.unparse(node)
        if isinstance(node, ast.Call):
            assert not [word.arg for word in node.keywords if word.arg == "strict"], ast.unparse(node)
        if isinstance(node, ast.Assign):
            parts = [part for part in ast.walk(node.value) if isinstance(part, ast.Subscript)]
            builtin = [
                ast.unparse(part) for part in parts if ast.unparse(part.value) in {"dict", "list", "set", "tuple"}
            ]
            assert not builtin, f"{builtin} is evaluated, and Python 3.8 cannot"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_imports_the_standard_library_and_its_own_folder_alone(path: Path):
    known = set(sys.stdlib_module_names) - NEWER
    own = {path.stem for path in FILES} | {""}
    for level, name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if level:
            assert (level, name) in {(1, stem) for stem in own}
        else:
            assert name.partition(".")[0] in known | IMPORTED_WHERE_THEY_ARE, name


def test_a_copied_folder_is_imported_in_a_job_without_tracker(tmp_path: Path):
    lines = "".join(f"from tracker_hooks import {name}\n" for name in sorted(FRAMEWORKS))
    check = "print(sorted(name for name in sys.modules if name.partition('.')[0] in ('tracker', 'msgspec', 'numpy')))"
    assert in_a_job(lines + check, environ(tmp_path), folder=tmp_path).out == "[]\n"
