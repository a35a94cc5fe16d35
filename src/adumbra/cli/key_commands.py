"""`adumbra key`: keys that sign releases, and whom this user trusts. Files are those of OpenSSH."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adumbra.cli.options import AsJson, say
from adumbra.errors import require

if TYPE_CHECKING:
    from adumbra.attestation.sshsig import PublicKey
    from adumbra.attestation.trust import AllowedSigner
    from adumbra.release.detached import Demand

app = typer.Typer(help="Keys that sign releases, and the signers you trust.", no_args_is_help=True)

SigningKey = Annotated[
    Path | None,
    typer.Option(
        "--key", help="Sign with this private key, or with the agent's half of this .pub file."
    ),
]
OperatorKey = Annotated[
    Path | None,
    typer.Option(
        "--operator", help="Your operator key, if the ledger has operators. Same forms as --key."
    ),
]
Unsigned = Annotated[
    bool, typer.Option("--unsigned", help="Publish without the signature that the card names.")
]
Publisher = Annotated[
    str | None,
    typer.Option(
        "--key", help="The publisher's .pub file or fingerprint: signed by this key, or exit 4."
    ),
]
TrustFile = Annotated[
    Path | None,
    typer.Option("--trust", help="An allowed-signers file; default: the one in your config folder."),
]
RevokedFile = Annotated[
    Path | None,
    typer.Option(
        "--revoked", help="Revoked public keys, one per line; default: the file in your config folder."
    ),
]
SignerName = Annotated[
    str | None, typer.Option("--signer", help="A name of the trust file: signed by it, or exit 4.")
]
Required = Annotated[
    bool, typer.Option("--require-signature", help="Exit 4 unless signed by somebody trusted.")
]
PublicFile = Annotated[Path, typer.Argument(help="A .pub file.")]


@app.command()
def new(
    path: Annotated[Path, typer.Argument(help="A new file; the public half goes to PATH.pub.")],
    comment: Annotated[
        str, typer.Option("--comment", help="Comment at the end of PATH.pub. Public.")
    ] = "",
    no_passphrase: Annotated[
        bool, typer.Option("--no-passphrase", help="Use no passphrase: whoever has the file can sign.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Make an Ed25519 key, as `ssh-keygen` would (the private file gets mode 0600)."""
    from adumbra.attestation.signers import new_key

    passphrase = ""
    if not no_passphrase:
        require(
            sys.stdin.isatty(),
            "passphrase: there is no terminal to ask at; give --no-passphrase and guard the file",
        )
        passphrase = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
        require(passphrase != "", "passphrase: is empty; give one, or --no-passphrase")
    public = new_key(path, passphrase=passphrase, comment=comment)
    facts = {"path": str(path), "fingerprint": public.fingerprint(), "public_key": public.line()}
    text = f"made {path} and {path}.pub\nfingerprint {public.fingerprint()}"
    say(text, facts, json)


@app.command()
def show(
    path: PublicFile,
    name: Annotated[str, typer.Option("--name", help="The name in the trust line.")] = "publisher",
    json: AsJson = False,
) -> None:
    """Print a public key, its fingerprint, and the line for a reader's trust file."""
    public = _public(path)
    line = _signer(path, name, None, None).line()
    facts = {"fingerprint": public.fingerprint(), "public_key": public.line(), "trust_line": line}
    text = "\n".join(f"{label:<12}{value}" for label, value in facts.items())
    say(text, facts, json)


@app.command()
def trust(
    name: Annotated[str, typer.Argument(help="Whose key it is, as `verify` will show it.")],
    path: PublicFile,
    valid_after: Annotated[
        str | None, typer.Option("--valid-after", help="YYYYMMDD: not for releases of earlier days.")
    ] = None,
    valid_before: Annotated[
        str | None, typer.Option("--valid-before", help="YYYYMMDD: not for releases from this day on.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Trust a publisher's key: add it to the allowed signers in your config folder."""
    from adumbra.attestation.trust import ALLOWED

    line = _signer(path, name, valid_after, valid_before).line()
    _add(ALLOWED, line, json)


@app.command()
def revoke(path: PublicFile, json: AsJson = False) -> None:
    """Stop trusting a key, for old releases too: add it to the revoked keys in your config folder."""
    from adumbra.attestation.trust import REVOKED

    _add(REVOKED, _public(path).line(), json)


def _add(name: str, line: str, json: bool) -> None:
    """Append one line to a file of the user's config folder."""
    from adumbra.attestation.trust import user_folder, user_trust

    user_trust()  # a file that cannot be read is refused before it grows
    place = user_folder() / name
    place.parent.mkdir(parents=True, exist_ok=True)
    before = place.read_text(encoding="utf-8") if place.exists() else ""
    gap = "" if before.endswith("\n") or not before else "\n"
    with place.open("a", encoding="utf-8") as stream:
        stream.write(f"{gap}{line}\n")
    say(f"added to {place}:\n{line}", {"file": str(place), "line": line}, json)


def _signer(path: Path, name: str, valid_after: str | None, valid_before: str | None) -> "AllowedSigner":
    from adumbra.attestation.trust import NAMESPACE, AllowedSigner, parse_signer, parse_time

    made = AllowedSigner(
        names=(name,),
        key=_public(path),
        namespaces=(NAMESPACE,),
        valid_after=parse_time(valid_after),
        valid_before=parse_time(valid_before),
    )
    return parse_signer(made.line())  # refuses a name that the file cannot hold


def _public(path: Path) -> "PublicKey":
    """The key of a .pub file."""
    from adumbra.attestation.signers import read_public_key

    return read_public_key(path)


def demanded(
    key: str | None,
    trust_file: Path | None,
    revoked: Path | None,
    signer: str | None,
    required: bool,
) -> "Demand":
    """What `verify` asks of a signature; without files given, the user's own are read."""
    from adumbra.attestation.trust import Trust, user_trust
    from adumbra.release.detached import make_demand

    given = trust_file is not None or revoked is not None
    known = Trust.read(trust_file, revoked) if given else user_trust()
    return make_demand(key=key, trust=known, signer=signer, require_signature=required)
