"""Finish a release that was sealed and not published: the same bytes, with their proof and signature."""

from pathlib import Path

from adumbra.attestation.signers import Signer, open_key
from adumbra.errors import VerificationFailed, require
from adumbra.privacy.ledger import Ledger, open_ledger
from adumbra.release.artifact import verify
from adumbra.release.detached import PROOF_FILE, put_file, write_signature
from adumbra.release.storage import date_files


def resume(
    ledger: str | Path | Ledger,
    entry: str,
    *,
    target: str | Path | None = None,
    key: Signer | str | Path | None = None,
    unsigned: bool = False,
) -> Path:
    """Publish an interrupted release at no new charge; returns its folder.

    Parameters
    ----------
    ledger : the ledger that paid: open, a path, or a postgresql:// address
    entry : the id of the entry, as `Ledger.show` lists it
    target : where, if no place was recorded or it was taken
    key : signs it, where its card names a signer; the same key
    unsigned : publish it without the signature that its card names

    Raises
    ------
    InvalidInput, if its card names a signer and neither `key` nor `unsigned` is given.
    VerificationFailed, if the bytes are not those that were sealed. Nothing is published then.
    """
    if not isinstance(ledger, Ledger):
        with open_ledger(ledger) as book:
            return resume(book, entry, target=target, key=key, unsigned=unsigned)
    signer = open_key(key) if isinstance(key, str | Path) else key
    _sign_stranded(ledger, entry, signer, unsigned=unsigned)
    place = ledger.resume(
        entry, None if target is None else Path(target), digest_of=lambda folder: verify(folder).digest
    )
    date_files(place)  # reading it set the times of access
    return place


def _sign_stranded(book: Ledger, entry: str, signer: Signer | None, *, unsigned: bool) -> None:
    """Add the proof, and the signature where the card names a signer, if missing.

    What is signed is what the ledger sealed, by its digest, and by the key that the card names.
    """
    stored = next((one for each in book.show() for one in each.entries if one.id == entry), None)
    if stored is None or not stored.staged or not (staged := Path(stored.staged)).is_dir():
        require(signer is None, f"entry={entry}: nothing waits for a signature; leave --key out")
        return
    checked = verify(staged)
    if checked.digest != stored.digest:
        raise VerificationFailed(
            f"entry={entry}: the bytes at {staged} are not those that were sealed; nothing was signed"
        )
    if not (staged / PROOF_FILE).exists():
        put_file(staged, PROOF_FILE, book.proof(entry).to_bytes())
    named = checked.card.get("signed_by")
    if checked.signature is not None or named is None:
        require(signer is None, f"entry={entry}: nothing waits for a signature; leave --key out")
        return
    require(
        (signer is not None) != unsigned,
        f"entry={entry}: its card names the signer {named}; give --key, or else --unsigned to publish "
        "it without a signature",
    )
    if signer is not None:
        found = signer.public.fingerprint()
        require(found == named, f"key={found}: the card names {named}; give that key")
        write_signature(staged, signer, (staged / "card.json").read_bytes())
