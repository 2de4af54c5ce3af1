"""Measure how the code is divided into files and folders: `python -m scripts.house`.

Prints a table of these figures, each with the places behind it when `--list` is given:

    files              modules of the shipped packages
    lines              lines in them
    one importer       modules that exactly one other shipped module imports. A package's `__init__.py` that only hands
                       names on does not count: whoever imports the name from it is the importer
    folder cycles      folders that import each other in a circle, directly or through others. A folder is taken by
                       itself (the modules that lie in it) and with all below it, compared with the folders beside it
    private imports    names with a leading underscore that are imported from, or used of, a module of another folder
    over 600 lines     Python and Lua files with more lines than that, outside the tests
    over 15 files      folders with more Python, Lua or TOML files than that, not counting `__init__.py`
    files of varint    files outside the tests that the commit adding the field kind `varint` touched

`--check` compares with `scripts/house.toml` and fails if a figure has grown; files and lines are shown but may grow.
`--keep` writes the figures there. `--tree DIR` measures another checkout, `--packages` names what it ships.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "scripts" / "house.toml"
PACKAGES = ("pcap_tools", "reference_broker", "generators", "spark_analysis", "topicshark")
BESIDE = ("benchmarks", "fuzzing", "notebooks", "scripts")
MAY_GROW = ("files", "lines")
MOST_LINES, MOST_FILES = 600, 15
VARINT = "^The field kind varint"

Graph = dict[str, set[str]]


class Shipped:
    """The modules of the shipped packages, and which of them import which."""

    def __init__(self, tree: Path, packages: Iterable[str]) -> None:
        paths = sorted(path for package in packages for path in (tree / package).rglob("*.py"))
        self.paths = {_name_of(path.relative_to(tree)): path for path in paths}
        self.packages = {name for name, path in self.paths.items() if path.name == "__init__.py"}
        self.trees = {name: ast.parse(path.read_bytes()) for name, path in self.paths.items()}
        self.handed_on = {name: self._reexports(name) for name in self.packages}
        self.private: list[str] = []
        self.imports: Graph = {name: set(self._imports(name)) for name in self.paths}

    def folder(self, module: str) -> str:
        """The package in whose folder the module lies."""
        return module if module in self.packages else module.rpartition(".")[0]

    def _from(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.folder(module).split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])

    def _reexports(self, package: str) -> dict[str, str]:
        """For each name that `__init__.py` imports from the package's own modules, the module it comes from."""
        found: dict[str, str] = {}
        for node in self.trees[package].body:
            if isinstance(node, ast.ImportFrom) and self._from(package, node).startswith(package + "."):
                found |= {alias.asname or alias.name: self._from(package, node) for alias in node.names}
        return found

    def _imports(self, module: str) -> Iterator[str]:
        known: dict[str, str] = {}
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in self.paths:
                        known[alias.asname or alias.name] = alias.name
                        yield alias.name
            elif isinstance(node, ast.ImportFrom):
                origin = self._from(module, node)
                for alias in node.names:
                    inner = f"{origin}.{alias.name}"
                    if inner in self.paths:
                        known[alias.asname or alias.name] = inner
                    target = inner if inner in self.paths else self._source(origin, alias.name)
                    if target in self.paths:
                        self._note_private(module, target, alias.name, node.lineno)
                        yield target
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
                self._note_private(module, known[node.value.id], node.attr, node.lineno)

    def _source(self, origin: str, name: str) -> str:
        """The module that a name comes from, through any `__init__.py` that hands it on."""
        while name in self.handed_on.get(origin, {}):
            origin = self.handed_on[origin][name]
        return origin

    def _note_private(self, module: str, target: str, name: str, line: int) -> None:
        is_private = name.startswith("_") and not name.startswith("__")
        if is_private and self.folder(module) != self.folder(target):
            self.private.append(f"{module}:{line} {target}.{name}")

    def with_one_importer(self) -> list[str]:
        """As `MODULE < IMPORTER`."""
        importers: dict[str, set[str]] = defaultdict(set)
        for module, targets in self.imports.items():
            for target in targets - {module}:
                importers[target].add(module)
        found = []
        for module in sorted(set(self.paths) - self.packages):
            others = {one for one in importers[module] if one not in self.packages or self._uses(one, module)}
            others = others or importers[module]
            if len(others) == 1:
                found.append(f"{module} < {min(others)}")
        return found

    def _uses(self, package: str, module: str) -> bool:
        """Whether `__init__.py` does more with a module than hand names on."""
        return module not in self.handed_on[package].values()

    def folders_in_cycles(self) -> list[str]:
        """Folders in a circle of folders, by themselves or with all below them."""
        levels: dict[str, Graph] = defaultdict(lambda: defaultdict(set))
        for module, targets in self.imports.items():
            for target in targets:
                one, other = self.folder(module), self.folder(target)
                if one == other:
                    continue
                levels["each folder by itself"][one].add(other)
                parent, mine, theirs = _fork(one, other)
                if mine and theirs:
                    levels[f"the folders of {parent or 'the tree'}"][mine].add(theirs)
        cycles = {folder for graph in levels.values() for folder in _in_cycles(graph)}
        return sorted(cycles)


def _name_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _fork(one: str, other: str) -> tuple[str, str, str]:
    """Where the way to two folders forks: their common parent, and the folder below it on either way."""
    first, second = one.split("."), other.split(".")
    depth = 0
    while depth < min(len(first), len(second)) and first[depth] == second[depth]:
        depth += 1
    parent = ".".join(first[:depth])
    return (
        parent,
        ".".join(first[: depth + 1]) * (len(first) > depth),
        ".".join(second[: depth + 1]) * (len(second) > depth),
    )


def _in_cycles(graph: Graph) -> set[str]:
    """Nodes from which a way leads back to themselves."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = list(graph.get(start, ()))
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += graph.get(node, ())
        return found

    return {node for node in graph if node in reached(node)}


def _sources(tree: Path, packages: Iterable[str]) -> list[Path]:
    folders = [tree / name for name in (*packages, *BESIDE, "tests") if (tree / name).is_dir()]
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".lua", ".toml")]
    return [path for path in found if "__pycache__" not in path.parts and ".ipynb_checkpoints" not in path.parts]


def _varint_files(tree: Path) -> list[str]:
    """Those of the commit that added the kind; empty if the checkout has no history or not yet that commit."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("log", "-1", "--format=%H", f"--grep={VARINT}")
    names = git("show", "--format=", "--name-only", commit).splitlines() if commit else []
    return sorted(name for name in names if not name.startswith("tests/"))


def measure(tree: Path, packages: Iterable[str]) -> dict[str, int | list[str]]:
    """All figures of a checkout: numbers, or the places that are counted."""
    shipped = Shipped(tree, packages)
    sources = _sources(tree, packages)
    long = [path for path in sources if "tests" not in path.relative_to(tree).parts and _lines(path) > MOST_LINES]
    folders = Counter(path.parent for path in sources if path.name != "__init__.py")
    return {
        "files": len(shipped.paths),
        "lines": sum(map(_lines, shipped.paths.values())),
        "one importer": shipped.with_one_importer(),
        "folder cycles": shipped.folders_in_cycles(),
        "private imports": sorted(shipped.private),
        "over 600 lines": sorted(f"{path.relative_to(tree)} {_lines(path)}" for path in long),
        "over 15 files": sorted(f"{one.relative_to(tree)} {n}" for one, n in folders.items() if n > MOST_FILES),
        "files of varint": _varint_files(tree),
    }


def _lines(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def _number(figure: int | list[str]) -> int:
    return figure if isinstance(figure, int) else len(figure)


def main() -> int:
    """Print the table; the exit code is 1 if `--check` finds a figure that has grown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout to measure")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="the packages that it ships")
    parser.add_argument("--list", action="store_true", help="name the places behind each figure")
    parser.add_argument("--check", action="store_true", help="fail if a figure is above the kept one")
    parser.add_argument("--keep", action="store_true", help=f"write the figures to {BASELINE.relative_to(ROOT)}")
    options = parser.parse_args()
    figures = measure(options.tree.resolve(), options.packages)
    kept = tomllib.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    grown = [
        name
        for name, figure in figures.items()
        if name not in MAY_GROW and _number(figure) > kept.get(name, _number(figure))
    ]
    for name, figure in figures.items():
        mark = f"  was {kept[name]}" if name in grown else ""
        print(f"{name:<16}{_number(figure):>7}{mark}")
        if isinstance(figure, list) and (options.list or (options.check and name in grown)):
            print("\n".join(f"    {place}" for place in figure))
    if options.keep:
        BASELINE.write_text("".join(f'"{name}" = {_number(figure)}\n' for name, figure in figures.items()))
    if options.check and grown:
        print(f"grown: {', '.join(grown)}; see python -m scripts.house --list", file=sys.stderr)
    return 1 if options.check and grown else 0


if __name__ == "__main__":
    sys.exit(main())
