"""The source, read: nothing but the auditor's own process sets what a module or a process owns."""

import ast
from pathlib import Path

import pytest

import adumbra

SOURCE = Path(adumbra.__file__).parent
OWN_PROCESS = SOURCE / "audit" / "__main__.py"
BANNED = {"setattr", "delattr", "redirect_stdout", "redirect_stderr", "mock", "monkeypatch", "patch"}
THEIR_OWN = {
    ("__init__.py", "sys.modules[__name__].__class__"),  # lazy names of the package itself
    ("__init__.py", "globals()[name]"),
    (
        "privacy/noise.py",
        "Sampler.drawn",
    ),  # a count by the class itself; both kernels give the same bits
}


def settings_of(code):
    """What in the code sets an attribute of a module or a class, or redirects what a process has."""
    tree = ast.parse(code)
    imported = {
        (name.asname or name.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    foreign = imported | classes | {"globals", "vars"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name in BANNED:
                    yield name
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                yield from (ast.unparse(target) for target in targets if reaches(target, foreign))
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                if reaches(target, foreign):
                    yield ast.unparse(target)
            case ast.Call(
                func=ast.Attribute(attr="__setattr__" | "__delattr__", value=owner), args=args
            ):
                if ast.unparse(owner) != "super()" and ast.unparse(args[0]) not in ("self", "config"):
                    yield ast.unparse(node)


def reaches(target, foreign):
    """Whether a target of an assignment lies inside one of these names."""
    root = target
    while not isinstance(root, ast.Name | ast.Tuple | ast.List | ast.Starred):
        root = getattr(root, "value", None) or getattr(root, "func", None)
        if root is None:
            return False
    if isinstance(root, ast.Tuple | ast.List):
        return any(reaches(one, foreign) for one in root.elts)
    return root is not target and isinstance(root, ast.Name) and root.id in foreign


def test_no_module_sets_what_another_one_owns():
    found = {
        (str(path.relative_to(SOURCE)), what)
        for path in SOURCE.rglob("*.py")
        if path != OWN_PROCESS
        for what in settings_of(path.read_text())
    }
    assert found == THEIR_OWN


@pytest.mark.parametrize(
    "code",
    [
        "from adumbra.privacy.ledger import ledger\nsetattr(ledger, 'open_grant', 1)",
        "from adumbra.privacy.ledger import ledger\nledger.open_grant = 1",
        "from adumbra.privacy.ledger import ledger\nx, ledger.open_grant = 1, 2",
        "import adumbra.privacy.ledger as book\nbook.ledger.open_grant = 1",
        "import adumbra.privacy.noise\nadumbra.privacy.noise._draw = 1",
        "from adumbra.privacy.grant import Grant\nGrant.key = 1",
        "class Grant: pass\ndef change(): Grant.key = 1",
        "import sys\nsys.stdout = None",
        "import sys\nsys.modules['adumbra.privacy.noise'] = None",
        "from adumbra.privacy import noise\nvars(noise)['_draw'] = 1",
        "from adumbra.privacy import noise\nnoise.__dict__['_draw'] = 1",
        "from adumbra.privacy import noise\ndel noise._draw",
        "from adumbra.privacy.grant import Grant\ntype.__setattr__(Grant, 'key', 1)",
        "import contextlib\nwith contextlib.redirect_stdout(None): pass",
        "from contextlib import redirect_stderr",
        "from unittest import mock",
        "change = setattr",
    ],
)
def test_each_way_to_set_it_is_seen(code):
    assert list(settings_of(code))


def test_only_the_own_process_plants():
    assert "setattr" in set(settings_of(OWN_PROCESS.read_text()))
    callers = {
        path
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "plant"
    }
    assert callers == {OWN_PROCESS}
