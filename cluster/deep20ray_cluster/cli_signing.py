"""The commands that touch a private key: making keys, showing which key a file holds, signing. They work in the base installation.

A passphrase comes from a file or is asked for on the terminal; it is never an argument, which other users of the machine could read.
"""

import getpass
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from deep20ray.errors import UsageError

keys_app = typer.Typer(help="Signing keys.", no_args_is_help=True)

PassphraseFile = Annotated[
    Path | None, typer.Option("--passphrase-file", help="A file that holds the key's passphrase; its last line feed doesn't count.")
]


def sign(
    run_folder: Annotated[Path, typer.Argument(help="A sealed run's folder, or the file of another document, such as a contract.")],
    key: Annotated[Path, typer.Option("--key", help="The private key file that `keys new` wrote.")],
    passphrase_file: PassphraseFile = None,
) -> None:
    """Check a sealed run and sign its statement. Needs no Ray and may run on another machine."""
    from deep20ray_artifacts.signing import sign_document, sign_run

    passphrase = _passphrase(passphrase_file)
    if run_folder.is_file():
        path, digest = sign_document(run_folder, key, passphrase)
        print(f"signed: {path}, statement {digest}")
        return
    digest = sign_run(run_folder, key, passphrase=passphrase)
    print(f"signed: {run_folder.name}, statement {digest}")


@keys_app.command("new")
def keys_new(
    name: Annotated[str, typer.Argument(help="The key's name: NAME.key and NAME.pub are written.")],
    directory: Annotated[Path, typer.Option("--dir", help="Where to write them.")] = Path(),
    throwaway: Annotated[bool, typer.Option("--throwaway", help="Mark the key as good for simulated runs only.")] = False,
    encrypt: Annotated[bool, typer.Option("--encrypt", help="Encrypt the private file; asks for a passphrase.")] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Make an Ed25519 key pair. The private file is readable by its owner alone."""
    from deep20ray_artifacts.signing import new_key

    passphrase = _passphrase(passphrase_file, twice=True)() if encrypt or passphrase_file else None
    key = new_key(directory, name, throwaway=throwaway, passphrase=passphrase)
    print(key.private)
    print(key.public)


@keys_app.command("show")
def keys_show(public: Annotated[Path, typer.Argument(help="A public key file, NAME.pub.")]) -> None:
    """Show a public key's identity, as signatures and trust files name it."""
    from deep20ray_artifacts.keys import load_public

    key = load_public(public)
    print(f"{key.keyid}{' (throwaway: accepted for simulated runs only)' if key.throwaway else ''}")


def _passphrase(path: Path | None, twice: bool = False) -> Callable[[], bytes]:
    """How a passphrase is come by, when it turns out to be needed."""

    def read() -> bytes:
        if path is not None:
            try:
                return path.read_bytes().removesuffix(b"\n")
            except OSError as error:
                raise UsageError(f"--passphrase-file {path}: can't be read ({error.strerror}); give the path of a file") from None
        if not sys.stdin.isatty():
            raise UsageError("a passphrase is needed and there is no terminal to ask on; give --passphrase-file")
        first = getpass.getpass("passphrase: ")
        if twice and getpass.getpass("again: ") != first:
            raise UsageError("the two passphrases differ; try again")
        return first.encode()

    return read
