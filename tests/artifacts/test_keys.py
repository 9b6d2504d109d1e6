"""Keys: modes, no overwriting, weak and foreign ones refused, and a signature that another program verifies."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from deep20ray_artifacts import dsse
from deep20ray_artifacts.errors import KeyRefused, WriteFailed
from deep20ray_artifacts.keys import THROWAWAY_LINE, load_public, trusted_key
from deep20ray_artifacts.signing import NewKey, load_private, new_key, sign_payload
from deep20ray_artifacts.statement import FILE_NAMES
from tests.artifacts.builder import sealed_run

P = 2**255 - 19
D = -121665 * pow(121666, P - 2, P) % P


def test_private_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = new_key(tmp_path, "open")
        os.umask(0o777)
        closed = new_key(tmp_path, "closed")
    finally:
        os.umask(before)
    for key in (made, closed):
        assert key.private.stat().st_mode & 0o777 == 0o600
        assert key.public.stat().st_mode & 0o777 == 0o644
        assert load_private(key.private).keyid == load_public(key.public).keyid == key.keyid


def test_nothing_is_overwritten(key: NewKey) -> None:
    folder = key.private.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(KeyRefused, match="never overwritten"):
        new_key(folder, "signer")
    key.private.unlink()
    with pytest.raises(KeyRefused, match="never overwritten"):
        new_key(folder, "signer")
    assert [path.name for path in folder.iterdir()] == ["signer.pub"]
    assert (folder / "signer.pub").read_bytes() == before["signer.pub"]
    (folder / "dangling.key").symlink_to(folder / "elsewhere")
    with pytest.raises(KeyRefused, match="never overwritten"):
        new_key(folder, "dangling")
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a\n", "x" * 65])
def test_key_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyRefused, match="key name"):
        new_key(tmp_path, name)


def test_an_unusable_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteFailed, match="can't write a key") as caught:
        new_key(tmp_path / "file", "key")
    assert "\n" not in str(caught.value)


def test_a_key_that_others_may_read_does_not_sign(key: NewKey) -> None:
    key.private.chmod(0o640)
    with pytest.raises(KeyRefused, match="chmod 600"):
        load_private(key.private)


def test_the_throwaway_mark_stands_in_both_files(tmp_path: Path, key: NewKey) -> None:
    marked = new_key(tmp_path, "demo", throwaway=True)
    for path in (marked.private, marked.public):
        assert path.read_text().splitlines()[0] == THROWAWAY_LINE == "# throwaway: accepted for simulated runs only"
    assert load_public(marked.public).throwaway
    assert load_private(marked.private).throwaway
    assert not load_public(key.public).throwaway


def test_no_key_shows_itself(key: NewKey) -> None:
    secret = "".join(key.private.read_text().splitlines()[1:-1])
    assert secret not in repr(load_private(key.private))
    key.private.write_text(key.private.read_text().replace("PRIVATE", "SECRET"))
    with pytest.raises(KeyRefused) as caught:
        load_private(key.private)
    assert secret not in str(caught.value)


def _small_order_points() -> list[bytes]:
    """Every spelling of a point that 8 times gives the neutral element.

    Orders 1, 2 and 4 have y = 1, -1 and 0. A point of order 8 doubles to one with y = 0, so that x^2 = -y^2, and the curve
    -x^2 + y^2 = 1 + d x^2 y^2 leaves d y^4 + 2 y^2 - 1 = 0.
    """
    ys = {0, 1, P - 1}
    root = _sqrt((1 + D) % P)
    assert root is not None
    for signed in (root, -root):
        y = _sqrt((signed - 1) * pow(D, P - 2, P) % P)
        ys |= set() if y is None else {y, P - y}
    spellings = [spelling for y in ys for spelling in (y, y + P) if spelling < 2**255]
    return [(spelling | sign << 255).to_bytes(32, "little") for spelling in spellings for sign in (0, 1)]


def _sqrt(square: int) -> int | None:
    root = pow(square, (P + 3) // 8, P)
    for candidate in (root, root * pow(2, (P - 1) // 4, P) % P):
        if candidate * candidate % P == square % P:
            return candidate
    return None


def test_points_of_small_order_are_refused() -> None:
    points = _small_order_points()
    assert len(points) == 14  # five y below p, two of them with a second spelling, each with both signs
    for raw in points:
        with pytest.raises(KeyRefused, match="small order"):
            trusted_key(Ed25519PublicKey.from_public_bytes(raw))


def test_the_refusal_matters() -> None:
    """Such a key accepts one signature on any message: without the refusal anyone could sign."""
    public = Ed25519PublicKey.from_public_bytes(b"\x01" + b"\0" * 31)
    public.verify(b"\x01" + b"\0" * 63, b"any message")


def test_other_files_are_no_keys(tmp_path: Path, key: NewKey) -> None:
    curve = generate_private_key(SECP256R1())
    bad = {
        "missing": None,
        "empty": b"",
        "text": b"hello\n",
        "large": b"#" * 20_000,
        "twice": key.public.read_bytes() * 2,
        "preface": b"not a comment\n" + key.public.read_bytes(),
        "private": key.private.read_bytes(),
        "curve": curve.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "cut": key.public.read_bytes().replace(b"MCow", b"MCo"),
        "relabelled": key.private.read_bytes().replace(b"PRIVATE", b"PUBLIC"),
    }
    for name, data in bad.items():
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(KeyRefused, match=name) as caught:
            load_public(path)
        assert "\n" not in str(caught.value)
    other = tmp_path / "curve.key"
    other.write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    other.chmod(0o600)
    with pytest.raises(KeyRefused, match="not an Ed25519 key"):
        load_private(other)


def test_openssl_verifies_a_signature_by_hand(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl command here")
    made = new_key(tmp_path, "demo", throwaway=True)  # with its comment line, which openssl must read past
    envelope = dsse.parse(sign_payload(b'{"any":"payload"}', load_private(made.private)))
    message, sig = tmp_path / "message", tmp_path / "sig"
    message.write_bytes(dsse.pae(envelope.payload_type, envelope.payload))
    sig.write_bytes(envelope.signatures[0].sig)
    command = [openssl, "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", str(made.public), "-in", str(message), "-sigfile", str(sig)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    message.write_bytes(message.read_bytes() + b" ")
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_the_documented_check_by_hand_works(tmp_path: Path) -> None:
    """The commands of docs/trust.md as they stand there, on a run that holds and on one that doesn't."""
    if not all(map(shutil.which, ("openssl", "sha256sum", "sh"))):
        pytest.skip("there is no openssl, sha256sum or sh here")
    text = (Path(__file__).parents[2] / "docs" / "trust.md").read_text()
    (script,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    made = new_key(tmp_path / "keys", "mine", throwaway=True)
    run = sealed_run(tmp_path / "runs", made.private)
    there = script.replace("first/runs/RUN_ID", str(run)).replace("keys/mine.pub", str(made.public))
    assert str(run) in there and str(made.public) in there

    def by_hand() -> tuple[int, str]:
        shutil.rmtree(tmp_path / "hand", ignore_errors=True)
        done = subprocess.run(["sh", "-e"], input=there, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, out = by_hand()
    assert code == 0 and "Signature Verified Successfully" in out and out.count(": OK") == len(FILE_NAMES)
    (run / "turns.arrow").write_bytes((run / "turns.arrow").read_bytes()[:-1] + b"x")
    assert by_hand()[0] != 0 and "turns.arrow: FAILED" in by_hand()[1]
    shutil.copyfile(new_key(tmp_path / "keys", "another").public, made.public)
    assert by_hand()[0] != 0
