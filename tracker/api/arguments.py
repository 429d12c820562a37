"""Checked arguments and open databases for the functions of the package."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, get_origin

from tracker import compare
from tracker.api.files import check_file, write_file
from tracker.errors import NO_DATABASE, SourceError, StoreError, UsageError

if TYPE_CHECKING:
    from tracker.config import Settings
    from tracker.results.screens import Result
    from tracker.store import Store

EMPTY: Final[Mapping[str, str]] = MappingProxyType({})
_ROWS_OF_A_NOTEBOOK: Final = 12
"""Rows of a table on the page that a notebook shows; a notebook is a file that keeps all of them."""
Options = TypeVar("Options")
Place = str | PathLike[str]
Names = int | str | Iterable[int | str]
_WORDS: Final[Mapping[type, str]] = {str: "a text", int: "a whole number", bool: "True or False"}
"""What a value is called that an option takes."""


class LastOpened:
    """The databases that this command opened, to be looked through where their rows make it stumble later."""

    names: tuple[str, ...] = ()


def chosen(kind: Callable[..., Options], values: Mapping[str, Any]) -> Options:
    """The struct of options `kind` from the arguments of a function, which may be more than its fields.

    A single text or number is taken where several are possible. UsageError for a value of another type.
    """
    from tracker.results.options import declared

    types = declared(kind)
    return kind(**{
        name: None if value is None and types[name].is_optional else _value(name, value, types[name].kind)
        for name, value in values.items() if name in types
    })  # fmt: skip


def path_texts(paths: Place | Iterable[Place]) -> list[str]:
    """One path or several, as texts."""
    is_one = isinstance(paths, str | PathLike) or not isinstance(paths, Iterable)
    listed: list[Any] = [paths] if is_one else [*cast("Iterable[Place]", paths)]
    for path in listed:
        if not isinstance(path, str | PathLike):
            raise UsageError(f"a path must be a text or a Path, not {_shown(path)}", remedy="give the path of a file")
    return [fspath(path) for path in listed]


def open_store(url: str | None = None, *, create: bool = True, read_only: bool = False) -> Store:
    """The database at `url`, created on first use; None is the database of the command line (`tracker db info`).

    `url`: an SQLAlchemy URL, the path of an SQLite file, or `sqlite://` for a database in memory. `create`: False
    raises StoreError for a missing database. `read_only`: nothing is written, and a missing or older database is a
    StoreError. Close it, or use it in a `with` statement.
    """
    return opened(url, create=create, read_only=read_only)


def opened(place: Settings | str | None, *, create: bool = False, read_only: bool = False, late: bool = False) -> Store:
    """The database of settings or at a URL, as `store.open_store` opens it; a StoreError for a path that no file can
    have. `late`: a missing one is made on its first use, so that a command that is refused before makes none.
    """
    import logging

    from tracker import config
    from tracker.store import open_store, urls

    if place is None:
        settings = config.load()
    elif isinstance(place, str):
        settings = _settings_of_named(place)
    else:
        settings = place
    if settings.origin == "default" and create and not read_only:
        config.make_default_folder()
    # else it writes tracebacks of its cleaning up after an interrupt to stderr; errors that matter are raised
    logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())
    name = settings.database
    LastOpened.names = tuple(dict.fromkeys((*LastOpened.names, name)))
    try:
        store = open_store(name, create=create, read_only=read_only, late=late)
        store.settled_ns = settings.watch.settled_ns
        store.runs_settle_ns = settings.alerts.settle_ns
        store.budgets = settings.budgets
        store.repository = settings.repository
        store.main_branch = settings.main_branch
        return store
    except (OSError, ValueError) as error:
        shown = urls.name_of(urls.parse_url(name)) if "://" in name else name
        problem = f"{shown}: the database cannot be opened ({getattr(error, 'strerror', None) or error})"
        raise StoreError(problem, remedy="name another one with --db PATH") from error


def _settings_of_named(name: str) -> Settings:
    """Return the settings for a database that is named. It needs no settings file, so that a wrong one does not keep
    the demo from starting.
    """
    from tracker import config

    try:
        return config.load(name)
    except SourceError:
        return config.load(name, reads_file=False)


def show_screens() -> None:
    """From now on results display the screens of the text report in a notebook, and save themselves."""
    from tracker.results.screens import Drawing, draw_with

    def save(result: Result, path: Path) -> None:
        reports = import_module("tracker.reports")
        format, ending = reports.format_of_name(path.name)
        if format is None:
            known = ", ".join(reports.suffix(each) for each in reports.able(result.word))
            problem = f"{path} ends in {ending}, which is not a report format" if ending else f"{path} has no ending"
            raise UsageError(problem, remedy=f"choose from {known}")
        check_file(path)
        write_file(path, reports.render(result, format))

    def text(result: Result, width: int) -> str:
        return str(import_module("tracker.reports").screen(result, width))

    def page(result: Result) -> str:
        return str(import_module("tracker.reports").page(result, _ROWS_OF_A_NOTEBOOK))

    draw_with(Drawing(text, page, save))


def reading(store: Store | None) -> AbstractContextManager[Store]:
    """`store`, or for the time of a call the default database."""
    show_screens()
    return opened(None, read_only=True) if store is None else nullcontext(checked(store))


def reading_for(
    store: Store | None, references: Sequence[str], place: Settings | str | None = None
) -> AbstractContextManager[Store | None]:
    """`store`, or for the time of a call the database where one of `references` needs it; None where all are paths. A
    name that may be a version or a path is a path where there is no database.
    """
    show_screens()
    if store is not None or not any(map(compare.needs_store, references)):
        return nullcontext(None if store is None else checked(store))
    try:
        return opened(place, read_only=True)
    except StoreError as error:
        missing = [reference for reference in references if not compare.names_path(reference)]
        if not missing:
            return nullcontext()
        if error.problem.startswith(NO_DATABASE) and compare.may_be_path(missing[0]):
            # without a database it may be meant as a path
            remedy = f"and {missing[0]} is no such file or folder: check the path; {error.remedy}"
            raise StoreError(error.problem, remedy=remedy) from error
        raise


def writing(store: Store | None, *, create: bool = False) -> AbstractContextManager[Store]:
    """`store`, or for the time of a call the default database, opened for writing; `create`: make a missing one."""
    return opened(None, create=create) if store is None else nullcontext(checked(store))


def checked(store: Store) -> Store:
    """`store`; UsageError for anything else, such as the path of a database."""
    from tracker.store import Store

    if not isinstance(store, Store):
        raise UsageError(
            f"store must be an open database, not {_shown(store)}", remedy="open it with tracker.open_store(URL)"
        )
    return store


def _value(name: str, value: Any, kind: Any) -> Any:
    """`value` of the option `name` as its struct declares it."""
    origin, several = get_origin(kind), get_args(kind)
    if kind in _WORDS:
        return _one(name, value, kind)
    if origin is tuple and several[0] in _WORDS:
        single = isinstance(value, str | bytes) or not isinstance(value, Iterable)
        return tuple(_one(name, item, several[0]) for item in ([value] if single else value))
    return mapping(name, value) if origin in (Mapping, dict) and several == (str, str) else value


def _one(name: str, value: Any, kind: type) -> Any:
    is_flag = type(value).__name__ in ("bool", "bool_")  # that of NumPy, too
    if kind is str and isinstance(value, str):
        return str(value)
    if kind is bool and is_flag:
        return bool(value)
    if kind is int and not is_flag and hasattr(value, "__index__"):
        return operator.index(value)
    what = _WORDS[kind]
    raise UsageError(f"option {name} must be {what}, not {_shown(value)}", remedy=f"give {name} {what}")


def mapping(name: str, value: Any) -> dict[str, str]:
    """`value` as texts by text; numbers are taken as texts."""
    if not isinstance(value, Mapping):
        problem = f"option {name} must be a mapping of texts, not {_shown(value)}"
        raise UsageError(problem, remedy=f"write {name}={{'KEY': 'VALUE'}}")
    return {
        _one(name, key, str): str(item) if isinstance(item, int | float) else _one(name, item, str)
        for key, item in value.items()
    }


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else f'{text[:57]}...'} ({type(value).__name__})"
