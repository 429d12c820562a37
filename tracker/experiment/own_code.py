"""Whether a side ran its own code: the files that its processes imported lie in its folder, and not in another."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tracker.errors import UsageError
from tracker.experiment.repository import ask_git
from tracker.experiment.sides import PreparedSide, working_folder
from tracker.hooks.modules import VARIABLE, is_installed

MODULES_VARIABLE: Final = VARIABLE
"""Variable of a run that names the file for `check_own_code`; each process writes one that begins so."""

_SCRIPTS: Final = ("__main__", "__mp_main__")
_PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg")


class _LoadedModule(Struct, frozen=True, order=True):
    """A file of a top module or package that a process imported."""

    name: str
    path: str


def check_own_code(prepared: PreparedSide, other: PreparedSide, modules: Path) -> bool:
    """Return whether a module of the side is known to have run, from its own folder.

    modules: the file that MODULES_VARIABLE named for a run of the side; False where nothing was recorded, since no
    process of the run had a hook

    UsageError for a module, or the script, in the user's checkout or in the folder of the other side, and for a
    package of the repository from anywhere else, such as an installed copy. What `--link` names is shared.
    """
    loaded = _read_modules(modules)
    if not loaded:
        return False
    side = prepared.side
    foreign_folders = [other.folder]
    for each in (side, other.side):
        # folders may share code that lies around them
        if each.folder is None:
            foreign_folders.append(each.root)
    own_names = _list_own_packages(prepared)
    is_known = False
    for module in loaded:
        if _lies_in(module.path, [prepared.folder]):
            is_known = True
        elif _lies_in(module.path, prepared.links):
            continue
        elif module.name in own_names or (_lies_in(module.path, foreign_folders) and not is_installed(module.path)):
            raise _name_foreign_code(prepared, module)
    return is_known


def _read_modules(modules: Path) -> list[_LoadedModule]:
    """Return what all processes of a run recorded."""
    loaded: set[_LoadedModule] = set()
    for path in modules.parent.glob(f"{modules.name}.*"):
        try:
            files = msgspec.json.decode(path.read_bytes(), type=dict[str, list[str]])
        except msgspec.DecodeError:  # of a job that has another hook, or writes there itself
            continue
        for name, paths in files.items():
            loaded.update(_LoadedModule(name, path) for path in paths)
    return sorted(loaded)


def _lies_in(path: str, folders: Iterable[Path]) -> bool:
    """Return whether a file lies in one of these folders, as it is named or behind its links."""
    file, real_file = Path(path), Path(path).resolve()
    return any(file.is_relative_to(folder) or real_file.is_relative_to(folder.resolve()) for folder in folders)


def _list_own_packages(prepared: PreparedSide) -> set[str]:
    """Return the packages that Python imports by one name: in the top folder, in that where ab was started, and where
    the files of a project lie, or in `src` there.
    """
    folder = prepared.folder
    tops = {folder, working_folder(prepared)}
    files = _list_files(folder)
    for file in files:
        if file.name in _PROJECT_FILES:
            tops.add(file.parent)
    names = set()
    for file in files:
        above = file.parent.parent
        if file.name == "__init__.py" and (above in tops or (above.name == "src" and above.parent in tops)):
            names.add(file.parent.name)
    return names


def _list_files(folder: Path) -> Sequence[Path]:
    """Return the files of a side that git has, or where it is no repository, those of a usual layout."""
    answer = ask_git(folder, ["ls-files", "-z", "--", "*__init__.py", *(f"*{name}" for name in _PROJECT_FILES)])
    if not answer.problem:
        return [folder / os.fsdecode(path) for path in answer.output.split(b"\0") if path]
    files: list[Path] = []
    for pattern in (*_PROJECT_FILES, "*/__init__.py", "src/*/__init__.py"):
        files += folder.glob(pattern)
    return files


def _name_foreign_code(prepared: PreparedSide, module: _LoadedModule) -> UsageError:
    side = prepared.side
    whose = "folder" if side.folder is not None else "revision"
    if module.name in _SCRIPTS:
        problem = f"{side.name} ran the script {module.path}, not that of its {whose}"
        return UsageError(problem, remedy="name it in the command by its path from the folder in which ab is started")
    problem = f"{side.name} ran {module.name} of another folder, not of its {whose}: {module.path}"
    top = os.path.relpath(prepared.folder, working_folder(prepared))
    setup = f'give --setup, such as --setup "pip install --no-deps --target . {top}"'
    found = Path(module.path)
    if found.name.startswith("__init__."):
        found = found.parent
    if is_installed(module.path) or not found.is_relative_to(side.root):
        return UsageError(problem, remedy=setup)
    own = found.relative_to(side.root)
    if (prepared.folder / own).exists():
        where = f"PYTHONPATH={found.parent}, which becomes the folder {own.parent} of each side"
        return UsageError(problem, remedy=f"{setup}, or start ab with {where}")
    return UsageError(problem, remedy=f"{setup}, or --link {own} where both sides share it")
