"""Tie each proof to the code it was read against.

A proof file `x.proof.md` opens with front matter:

    ---
    covers: [adumbra.privacy.conversion:delta_of, adumbra.privacy.guarantee:PrivacyGuarantee.compose]
    seal: <SHA-256 over the syntax trees of what it covers, docstrings left out>
    ---

Check all:        python tools/seal.py
Reseal by hand:   python tools/seal.py --write FILE...     (`make reseal PROOF=FILE`, after re-reading)

The names may also stand below `covers:`, one per line after a dash; those that begin with `tools.` are
of this folder, which computes what the package keeps. Functions, classes, methods and
module-level constants can be covered. The tree is written out by our own `skeleton`, because `ast.dump`
differs between Python versions.
"""

import argparse
import ast
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRONT = re.compile(r"\A---\n(?P<head>.*?)^---\n", re.DOTALL | re.MULTILINE)
COVERS = re.compile(r"^covers:\s*(?:\[(?P<row>[^\]]*)\]|(?P<list>(?:\s*-[ ]+\S+)+))", re.MULTILINE)
NAME = re.compile(r"[^\s,]+:[^\s,]+")
SEAL = re.compile(r"^seal:[ \t]*(?P<seal>\S*)[ \t]*$", re.MULTILINE)
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class SealError(Exception):
    """A proof file or a name it covers is not as it must be."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One proof file: what it covers and the seal written in it."""

    path: Path
    covers: tuple[str, ...]
    seal: str


def read_proof(path: Path) -> Proof:
    """Read the front matter."""
    front = FRONT.match(path.read_text(encoding="utf-8"))
    covers = COVERS.search(front["head"]) if front else None
    seal = SEAL.search(front["head"]) if front else None
    if covers is None or seal is None:
        raise SealError(f"{path.name}: must open with front matter that has `covers: [...]` and `seal:`")
    names = tuple(NAME.findall(covers["row"] or covers["list"] or ""))
    if not names:
        raise SealError(f"{path.name}: covers nothing; name at least one module:function")
    return Proof(path, names, seal["seal"])


def compute_seal(covers: tuple[str, ...], source: Path) -> str:
    """Hash the covered definitions as they are now under the source folder."""
    digest = hashlib.sha256()
    for name in sorted(covers):
        digest.update(f"{name}\n{skeleton(find(name, source))}\n".encode())
    return digest.hexdigest()


def find(name: str, source: Path) -> ast.AST:
    """Return the tree of `module:name`, where name is a function, Class, Class.method or CONSTANT."""
    module, _, qualified = name.partition(":")
    root = source.parent if module.startswith("tools.") else source
    base = root.joinpath(*module.split("."))
    path = next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)
    if path is None or not qualified:
        raise SealError(f"{name}: no such module; write module:function")
    node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in qualified.split("."):
        body: list[ast.stmt] = getattr(node, "body", [])
        found = [statement for statement in body if part in names_of(statement)]
        if not found:
            raise SealError(f"{name}: no such definition")
        node = found[-1]
    return node


def names_of(statement: ast.stmt) -> set[str]:
    """List the names that a statement defines."""
    if isinstance(statement, DOCUMENTED):
        return {statement.name}
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def skeleton(value: object) -> str:
    """Write a tree without docstrings, positions and empty fields, alike on every Python version."""
    if isinstance(value, ast.AST):
        fields = dict(ast.iter_fields(value))
        if isinstance(value, DOCUMENTED) and ast.get_docstring(value, clean=False) is not None:
            fields["body"] = fields["body"][1:]
        inner = ",".join(
            f"{key}={skeleton(item)}"
            for key, item in fields.items()
            if item is not None and item != [] and not isinstance(item, ast.expr_context)
        )
        return f"{type(value).__name__}({inner})"
    if isinstance(value, list):
        return f"[{','.join(map(skeleton, value))}]"
    return repr(value)


def write_seal(path: Path, source: Path) -> str:
    """Put the present seal into a proof file and return it."""
    proof = read_proof(path)
    seal = compute_seal(proof.covers, source)
    text = path.read_text(encoding="utf-8")
    path.write_text(SEAL.sub(f"seal: {seal}", text, count=1), encoding="utf-8")
    return seal


def faults(proofs: list[Path], source: Path) -> list[str]:
    """List every proof that does not fit its code, with the reason."""
    found = []
    for path in proofs:
        try:
            proof = read_proof(path)
            if proof.seal != compute_seal(proof.covers, source):
                found.append(
                    f"{path.name}: proof not re-read; the code it covers has changed. Read it against\n"
                    f"    {', '.join(proof.covers)}\n"
                    f"  and then run `make reseal PROOF={shown(path, source)}`"
                )
        except SealError as error:
            found.append(str(error))
    return found


def shown(path: Path, source: Path) -> Path:
    """Return the path as one types it in the repository."""
    return path.relative_to(source.parent)


def find_proofs(source: Path) -> list[Path]:
    """List all proof files."""
    return sorted(source.rglob("*.proof.md"))


def main() -> int:
    """Check every proof, or reseal the named ones."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", nargs="+", type=Path, metavar="FILE", help="reseal these proofs")
    chosen = parser.parse_args().write
    source = ROOT / "src"
    try:
        for path in chosen or []:
            print(f"sealed {path.name} {write_seal(path, source)[:12]}")
    except SealError as error:
        print(error, file=sys.stderr)
        return 1
    found = [] if chosen else faults(find_proofs(source), source)
    for fault in found:
        print(fault, file=sys.stderr)
    if not chosen and not found:
        print(f"{len(find_proofs(source))} proofs sealed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
