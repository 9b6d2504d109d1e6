"""Making keys and signing sealed runs. The only module that touches a private key; no verifying module imports it.

Signing believes nothing: it recomputes every file digest, the plan's and the journal's chain, and checks the records, before it signs
the statement's bytes as they stand.
"""

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from deep20ray.canonical import Digest, sha256
from deep20ray_artifacts import dsse
from deep20ray_artifacts.documents import SUFFIX, read_document
from deep20ray_artifacts.errors import DocumentRefused, EnvelopeRefused, FolderRefused, KeyRefused, SignatureRefused, WriteFailed
from deep20ray_artifacts.files import sync_folder, write_atomic, write_new
from deep20ray_artifacts.folder import opened
from deep20ray_artifacts.keys import THROWAWAY_LINE, keyid, pem_block, trusted_key
from deep20ray_artifacts.kinds import parse_any
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.redaction import DRAFT_NAME, REDACTION_NAME
from deep20ray_artifacts.statement import PAYLOAD_TYPE
from deep20ray_artifacts.verify import ATTESTATION_NAME, STATEMENT_NAME, check_for_signing, check_redaction, verify_run

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_BYTES: Final = 16_384
_CLEAR: Final = "PRIVATE KEY"
_ENCRYPTED: Final = "ENCRYPTED PRIVATE KEY"
Passphrase = Callable[[], bytes]
"""How a key's passphrase is come by: a file or a prompt, never an argument."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key pair that was just written."""

    keyid: Digest
    private: Path
    public: Path


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and whether it may sign simulated runs only. Its repr shows neither."""

    private: Ed25519PrivateKey
    throwaway: bool

    def __repr__(self) -> str:
        return "SigningKey(...)"

    @property
    def keyid(self) -> Digest:
        """The identity of its public key."""
        return keyid(self.private.public_key())


def new_key(folder: Path, name: str, throwaway: bool = False, passphrase: bytes | None = None) -> NewKey:
    """Makes an Ed25519 pair: ``NAME.key`` (PKCS8 PEM, mode 0600) and ``NAME.pub`` (PEM) in ``folder``.

    Args:
        passphrase: encrypts the private file (PKCS8, AES-256).
        throwaway: mark both files, so that signers and verifiers take the key for simulated runs only.

    Raises:
        KeyRefused: a file of that name is there (nothing is ever overwritten), or the name isn't plain.
        WriteFailed: the folder can't be written.
    """
    if not _NAME.fullmatch(name):
        raise KeyRefused(f"key name {name!r}: use letters, digits, dots, hyphens and underscores, 64 at most")
    private_path, public_path = folder / f"{name}.key", folder / f"{name}.pub"
    for path in (private_path, public_path):
        if path.is_symlink() or path.exists():
            raise KeyRefused(f"{path} exists and is never overwritten; choose another name, or move it away")
    key = Ed25519PrivateKey.generate()
    mark = f"{THROWAWAY_LINE}\n".encode() if throwaway else b""
    if passphrase == b"":
        raise KeyRefused(f"key {name}: an empty passphrase protects nothing; choose a long one")
    private = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    )
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_pair((private_path, mark + private), (public_path, mark + public))
        sync_folder(folder)
    except OSError as error:
        raise WriteFailed(f"can't write a key to {folder}: {error.strerror or error}; choose another folder") from None
    return NewKey(keyid(key.public_key()), private_path, public_path)


def _write_pair(private: tuple[Path, bytes], public: tuple[Path, bytes]) -> None:
    """Both files or neither. Raises OSError."""
    write_new(*private, 0o600)
    try:
        write_new(*public, 0o644)
    except OSError:
        with suppress(OSError):
            private[0].unlink()
        raise


def load_private(path: Path, passphrase: Passphrase | None = None) -> SigningKey:
    """Reads ``NAME.key``; ``passphrase`` is asked only where the key is encrypted.

    Raises:
        KeyRefused: no such file, readable by others, another form or algorithm. The message never holds any of it.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise KeyRefused(f"can't read the key {path}: {error.strerror}; make one with 'keys new'") from None
    if not stat.S_ISREG(mode) or mode & 0o077:
        raise KeyRefused(f"{path}: others may read this private key; run chmod 600 on it, or make a new one")
    der, throwaway = pem_block(data, (_CLEAR, _ENCRYPTED), path)
    encrypted = f"BEGIN {_ENCRYPTED}-".encode() in data
    if encrypted and passphrase is None:
        raise KeyRefused(f"{path}: this key is encrypted; give its passphrase, in a file by --passphrase-file")
    try:
        key = load_der_private_key(der, password=passphrase() if encrypted and passphrase is not None else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        why = "the passphrase is wrong, or the file damaged" if encrypted else "not a PKCS8 private key; make one with 'keys new'"
        raise KeyRefused(f"{path}: {why}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyRefused(f"{path}: not an Ed25519 key; make one with 'keys new'")
    return SigningKey(key, throwaway)


def sign_payload(payload: bytes, key: SigningKey, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """The DSSE envelope of ``payload`` with one signature, as bytes. Ed25519 is deterministic, and so are they."""
    signature = dsse.Signature(key.keyid, key.private.sign(dsse.pae(payload_type, payload)))
    return dsse.encode(dsse.Envelope(payload_type, payload, (signature,)))


def sign_document(path: Path, key_path: Path, passphrase: Passphrase | None = None) -> tuple[Path, Digest]:
    """Checks a document, such as a contract, and signs it: ``NAME.dsse.json`` beside ``NAME.json``.

    Returns:
        The signed file, and the digest of the statement that was signed.

    Raises:
        KeyRefused: the key can't be used.
        VerificationError: it is no document of a known kind, or a throwaway key would sign it.
        WriteFailed: the folder can't be written.
    """
    key = load_private(key_path, passphrase)
    if key.throwaway:
        raise SignatureRefused(f"{path}: a throwaway key signs simulated runs only; make a key with 'keys new' and sign with that")
    payload = read_document(path)
    try:
        parse_any(payload)
    except DocumentRefused as error:
        raise DocumentRefused(f"{path}: {error}") from None
    signed = path.with_name(path.name.removesuffix(".json") + SUFFIX)
    write_atomic(signed, sign_payload(payload, key))
    return signed, sha256(payload)


def sign_run(run_dir: Path, key_path: Path, limits: Limits | None = None, passphrase: Passphrase | None = None) -> Digest:
    """Checks a sealed folder in full and signs it: ``attestation.dsse.json`` takes the place of ``statement.json``.

    In a folder that was redacted it is the redaction that is signed: ``redaction.dsse.json`` takes the place of ``redaction.json``.

    A run that this key has signed is verified and left as it is.

    Returns:
        The digest of the statement that was signed.

    Raises:
        KeyRefused: the key can't be used.
        VerificationError: the folder isn't what its statement says, another key signed it, or a throwaway key would sign a run that
            wasn't simulated.
        WriteFailed: the folder can't be written. Signing again is safe.
    """
    key = load_private(key_path, passphrase)
    if (run_dir / DRAFT_NAME).exists():
        return _sign_redaction(run_dir, key, limits)
    if (run_dir / ATTESTATION_NAME).exists() and not (run_dir / STATEMENT_NAME).exists():
        return _signed_already(run_dir, key, limits)
    run = check_for_signing(run_dir, limits)
    if key.throwaway and not run.statement.predicate.simulated:
        raise SignatureRefused(f"{run_dir.name}: a throwaway key signs simulated runs only; make a key with 'keys new' and sign with that")
    write_atomic(run_dir / ATTESTATION_NAME, sign_payload(run.payload, key))
    try:
        (run_dir / STATEMENT_NAME).unlink()
        sync_folder(run_dir)
    except OSError as error:
        raise WriteFailed(f"can't remove {run_dir / STATEMENT_NAME}: {error.strerror}; it is signed: remove the file") from None
    return run.statement_sha256


def _signed_already(run_dir: Path, key: SigningKey, limits: Limits | None) -> Digest:
    try:
        return verify_run(run_dir, [trusted_key(key.private.public_key(), key.throwaway)], limits).statement_sha256
    except SignatureRefused as error:
        try:
            with opened(run_dir) as folder:
                signer = dsse.parse(folder.read(ATTESTATION_NAME, (limits or Limits()).attestation_bytes)).signatures[0].keyid
        except (EnvelopeRefused, FolderRefused):
            raise error from None
        if signer == key.keyid:
            raise
        raise SignatureRefused(
            f"{run_dir.name}: signed already, by key {signer[:12]} and not by {key.keyid[:12]}; a run has one signature, verify that one"
        ) from None


def _sign_redaction(run_dir: Path, key: SigningKey, limits: Limits | None) -> Digest:
    if key.throwaway:
        raise SignatureRefused(f"{run_dir.name}: a throwaway key signs simulated runs only, and no redaction; sign with a lasting one")
    statement = check_redaction(run_dir, DRAFT_NAME, limits)
    write_atomic(run_dir / REDACTION_NAME, sign_payload(statement, key))
    try:
        (run_dir / DRAFT_NAME).unlink()
        sync_folder(run_dir)
    except OSError as error:
        raise WriteFailed(f"can't remove {run_dir / DRAFT_NAME}: {error.strerror}; it is signed: remove the file") from None
    return sha256(statement)
