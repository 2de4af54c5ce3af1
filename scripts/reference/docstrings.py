"""Docstrings of attributes: the string that stands below one. Python forgets them, so they are read from the source."""

import ast
import inspect
from types import ModuleType


def attribute_texts(module: ModuleType) -> dict[tuple[str, str], str]:
    """By class and attribute: what stands below it, on one line."""
    tree = ast.parse(inspect.getsource(module))
    return {
        (node.name, name): text
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for name, text in _of_class(node).items()
    }


def _of_class(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for statement, below in zip(node.body, node.body[1:], strict=False):
        name = _assigned(statement)
        if name and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[name] = " ".join(str(below.value.value).split())
    return found


def _assigned(statement: ast.stmt) -> str | None:
    target = statement.target if isinstance(statement, ast.AnnAssign) else None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0] if isinstance(statement.targets[0], ast.Name) else None
    return target.id if isinstance(target, ast.Name) else None
