"""`scripts/house.py` finds what was planted in a small tree."""

from pathlib import Path

from scripts.house import measure

PLANTED = {
    "pkg/__init__.py": "",
    "pkg/top.py": "from pkg.low.leaf import value, _hidden\nfrom pkg.low import handed\n",
    "pkg/low/__init__.py": "from .home import handed\n",
    "pkg/low/home.py": "handed = 1\n",
    "pkg/low/leaf.py": "value = _hidden = 2\n",
    "pkg/one/__init__.py": "",
    "pkg/one/a.py": "import pkg.two.b\nfrom pkg.two import b\nb._secret\n",
    "pkg/two/__init__.py": "",
    "pkg/two/b.py": "from pkg.one.c import x\n_secret = 1\n",
    "pkg/one/c.py": "x = 1\n" * 601,
}


def planted(folder: Path) -> Path:
    for name, text in PLANTED.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for number in range(16):
        (folder / "pkg/low" / f"dialect{number}.toml").write_text("")
    return folder


def test_figures_of_a_planted_tree(tmp_path: Path) -> None:
    figures = measure(planted(tmp_path), ["pkg"])
    assert figures == {
        "files": 10,
        "lines": 611,
        "one importer": [
            "pkg.low.home < pkg.top",  # by way of the package, which only hands the name on
            "pkg.low.leaf < pkg.top",
            "pkg.one.c < pkg.two.b",
            "pkg.two.b < pkg.one.a",
        ],
        "folder cycles": ["pkg.one", "pkg.two"],
        "private imports": ["pkg.one.a:3 pkg.two.b._secret", "pkg.top:1 pkg.low.leaf._hidden"],
        "over 600 lines": ["pkg/one/c.py 601"],
        "over 15 files": ["pkg/low 18"],
        "files of varint": [],
    }
