"""What a stranger relies on: a README of one page, no circles of files, names that stand for one thing, and pandas only
where frames leave or enter the program.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tracker").rglob("*.py"))}
# patterns, for to parse 500 files takes six seconds
IMPORT = re.compile(
    r"^ *from (?:tracker\.?|(?P<dots>\.))(?P<module>[\w.]*) import (?:\((?P<block>[^)]*)\)|(?P<names>.*))$",
    re.MULTILINE,
)
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
PAGE = re.compile(r"docs/[\w-]+\.md")
# such as "PLAN, section 4" or "PLAN 4.2"
PAGE_ELSEWHERE = re.compile(r"\b[A-Z]{4,}(?:\.md)?,? (?:section |rule |landing )\d")

README_BYTES = 12_000
FILES_THAT_IMPORT_PANDAS = 7
LEAST_CONSTANT = 14
"""Letters of a value from which on it says something."""
SAME_CONSTANTS = {
    "'ASCEND_PROFILER_OUTPUT'": "hooks import nothing",
    "'analyse.done'": "hooks import nothing",
    "re.compile('[\\\\w.,:;+/= -]{1,120}')": "hooks import nothing",
    "24 * 3600 * 10 ** 9": "a day: how long a hook waits, how far clocks are apart, how near a start must be",
    "3600 * 10 ** 9": "an hour: one session of a machine, how long a notification is kept",
    "10 * NS_PER_MINUTE": "when a watcher is dead, and how long one may send",
    "re.compile('\\\\d+')": "any number in a text",
    "re.compile('_\\\\d+$')": "the number of an instance of a module, and of a copy of a model",
    "re.compile('.*')": "traces of two readers may have any name",
    "Decoder(list[Event])": "each reader has an Event of its own",
    "View(document, csv=list_csv)": "each view has functions of its own",
    "MappingProxyType({})": "nothing, in two rooms",
    "('text', 'markdown', 'html')": "formats for people, and those that several results are joined in",
    "('rank', 'step')": "the words of --by, the grain at which a side is asked, and that of a table",
    "'operator_arguments'": "the source of counters, and the table of a diff that is made of them",
    "('name', 'type', 'core_type', 'input_shapes', 'input_types', 'input_formats')":
        "texts that a reader looks up, and those that make two kernels one",
}  # fmt: skip
"""Value of constants in several files -> why each has its own. One that is gone leaves the list."""
SHARED_CLASS_NAMES = {
    "notify": {"Heard"},
    "readers": {
        "Args", "Blocks", "Calls", "Collector", "Event", "Found", "Group", "Host", "Spread", "Texts", "Threads", "Top",
        "_Open", "_Read",
    },
    "store": {"Expectation", "SampleArray", "Silence", "WatchedFolder", "Watcher"},
}  # fmt: skip
"""Room -> names that two of its classes have, today. A name that stands for one class leaves the list."""


def test_readme_stays_one_page():
    assert (ROOT / "README.md").stat().st_size <= README_BYTES


def test_no_more_files_import_pandas():
    importing = [path for path, source in PRODUCT.items() if "import pandas" in source]
    assert len(importing) <= FILES_THAT_IMPORT_PANDAS


def test_pages_that_code_refers_to_are_there():
    for path, source in PRODUCT.items():
        assert not PAGE_ELSEWHERE.search(source), path
        for page in PAGE.findall(source):
            assert (ROOT / page).exists(), f"{path} refers to {page}"


def test_files_do_not_import_each_other():
    """The package itself is called ""."""
    assert find_circles(read_imports(PRODUCT)) == set()


def test_imports_are_written_as_the_search_for_circles_reads_them():
    """Neither `import tracker.x` nor `from ..x import y`."""
    for path, source in PRODUCT.items():
        assert not re.search(r"^ *(?:import tracker\.|from \.\.)", source, re.MULTILINE), path


def test_circle_of_three_files_is_found():
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert find_circles(imports) == {("a", "b", "c")}


def test_circle_through_a_package_and_a_function_is_found():
    sources = {
        ROOT / "tracker/a/__init__.py": "from tracker.a.b import read\n",
        ROOT / "tracker/a/b.py": "def read():\n    from tracker.a import MAGIC\n",
        ROOT / "tracker/a/c.py": "from . import b\n",
    }
    imports = read_imports(sources)
    assert imports == {"a": {"a.b"}, "a.b": {"a"}, "a.c": {"a.b"}}
    assert find_circles(imports) == {("a", "a.b")}


def test_no_class_name_stands_twice_in_a_room():
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for path, source in PRODUCT.items():
        names[path.relative_to(ROOT / "tracker").parts[0]].update(CLASS.findall(source))
    shared_names = {}
    for room, counts in names.items():
        shared = {name for name, count in counts.items() if count > 1}
        if shared:
            shared_names[room] = shared
    assert shared_names == SHARED_CLASS_NAMES


def test_no_walrus_in_a_comprehension_overwrites_a_name():
    overwritten = {path: names for path, source in PRODUCT.items() if (names := find_overwritten_names(source))}
    assert not overwritten


def test_walrus_that_overwrites_a_parameter_is_found():
    """The comprehension leaves the last path in `name`, which the caller's name was in."""
    of_files = "def read(name, paths): return name, [path for path in paths if (name := path.stem)]"
    assert find_overwritten_names(of_files) == ["name"]
    assert find_overwritten_names(of_files.replace("(name :=", "(base :=")) == []


def test_walrus_that_overwrites_a_variable_is_found():
    """`call` is in the first function, which binds it again; the second has it in comprehensions alone."""
    with_loop = "def f(xs):\n    known = [call for x in xs if (call := x())]\n    for call in known: call()"
    alone = "def f(xs):\n    known = [call for x in xs if (call := x())]\n    return [call() for call in known]"
    assert (find_overwritten_names(with_loop), find_overwritten_names(alone)) == (["call"], [])


def find_overwritten_names(source: str) -> list[str]:
    """Return the targets of walruses in comprehensions that the function around them has outside of comprehensions.

    Such a target is a variable of the function, not of the comprehension.
    """
    if ":=" not in source:
        return []
    overwritten = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, FUNCTIONS) and (targets := set(list_walrus_targets(node))):
            overwritten |= targets & set(list_names_outside(node))
    return sorted(overwritten)


def list_walrus_targets(function: ast.AST) -> Iterator[str]:
    """Yield what walruses in the comprehensions of a function bind in it."""
    waiting = [(function, False)]
    while waiting:
        node, in_comprehension = waiting.pop()
        if in_comprehension and isinstance(node, ast.NamedExpr):
            yield node.target.id
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, FUNCTIONS):
                waiting.append((child, in_comprehension or isinstance(child, COMPREHENSIONS)))


def list_names_outside(node: ast.AST) -> Iterator[str]:
    """Yield the parameters and names of a function, and of functions in it, outside of comprehensions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, COMPREHENSIONS):
            continue
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.arg):
            yield child.arg
        yield from list_names_outside(child)


def test_no_constant_stands_in_several_files():
    """One fact has one declaration, which others import. What is equal and another fact is listed, with its reason."""
    assert find_same_constants(PRODUCT).keys() == SAME_CONSTANTS.keys()


def test_constant_in_two_files_is_found():
    sources = {
        Path("a.py"): 'FOLDERS = ("one", "another")\n',
        Path("b.py"): 'from a import FOLDERS\n_OURS: Final = ("one", "another")\n_SAME: Final = FOLDERS\n',
        Path("c.py"): 'Pairs = tuple[str, int, float]\nT = TypeVar("T", bound=float)\n',
        Path("d.py"): 'Pairs = tuple[str, int, float]\nT = TypeVar("T", bound=float)\n',
    }
    assert find_same_constants(sources) == {"('one', 'another')": ["a.py:FOLDERS", "b.py:_OURS"]}


def find_same_constants(sources: Mapping[Path, str]) -> dict[str, list[str]]:
    """Return value -> the constants of several modules that have it; types, names of others and short values aside."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        for name, value in list_constants(source):
            is_reference = isinstance(value, ast.Name | ast.Attribute)
            is_type = isinstance(value, ast.Subscript) or (
                isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")
            )
            text = ast.unparse(value)
            if not is_reference and not is_type and len(text) >= LEAST_CONSTANT:
                found[text].append(f"{path}:{name}")
    return {text: names for text, names in found.items() if len({name.partition(":")[0] for name in names}) > 1}


def list_constants(source: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield what is bound to a name of the module, `__all__` aside."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id != "__all__":
                yield target.id, node.value


def name_module(path: Path) -> str:
    """Return the name of a module below `tracker`; an `__init__` has that of its package."""
    parts = path.relative_to(ROOT / "tracker").with_suffix("").parts
    return ".".join(parts).removesuffix("__init__").removesuffix(".")


def read_imports(sources: Mapping[Path, str]) -> dict[str, set[str]]:
    """Return file -> the files that it imports, anywhere in it: in functions and for type checkers alone, too.

    What is imported from a package is a file of it, else stands in its `__init__`.
    """
    names = {name_module(path) for path in sources}
    imports: dict[str, set[str]] = {}
    for path, source in sources.items():
        name = name_module(path)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imports[name] = set()
        for match in IMPORT.finditer(source):
            module = match["module"]
            if match["dots"]:
                module = f"{package}.{module}".strip(".")
            listed = re.sub("#.*", "", match["block"] or match["names"])
            for word in re.findall(r"(?:^|,)\s*(\w+)", listed):
                below = f"{module}.{word}".removeprefix(".")
                imports[name].add(below if below in names else module)
        imports[name] = (imports[name] & names) - {name}
    return imports


def find_circles(imports: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """Return the groups of files in which each can be reached from each other."""
    reached = {name: reach(imports, name) for name in imports}
    circles = set()
    for name, others in reached.items():
        if name in others:
            circles.add(tuple(sorted(other for other in others if name in reached[other])))
    return circles


def reach(imports: dict[str, set[str]], start: str) -> set[str]:
    """Return the files that `start` imports, directly or through others."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for other in imports[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen
