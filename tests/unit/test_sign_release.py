"""Tests that releases are signed: GnuPG itself signs with a test key, and verifies."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release_check import ReleaseError
from sign_release import sign

KEY = "release@example.org"


def verifies(signature: Path) -> bool:
    return gpg("--verify", signature, signature.with_suffix("")).returncode == 0


def gpg(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["gpg", "--batch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let gpg use a key ring with one key; its path is short, since it contains the agent's socket."""
    if shutil.which("gpg") is None:
        pytest.skip("no gpg on PATH")
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("GNUPGHOME", folder)
        made = gpg("--passphrase", "", "--quick-generate-key", KEY, "ed25519", "sign", "never")
        assert made.returncode == 0, made.stderr
        yield
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], check=True)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    for name in ("reports/SHA256SUMS", "maven/a/1/a-1.jar", "maven/a/1/a-1.pom", "maven/a/1/a-1.jar.sha1"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.mark.usefixtures("keyring")
def test_each_signature_is_that_of_its_file(dist: Path) -> None:
    signatures = sign(dist, KEY)
    assert [path.name for path in signatures] == ["SHA256SUMS.asc", "a-1.jar.asc", "a-1.pom.asc"]
    for signature in signatures:
        assert verifies(signature)
        signature.with_suffix("").write_text("something else")
        assert not verifies(signature)
    assert sign(dist, KEY) == signatures, "a second time"
    assert verifies(signatures[0])


@pytest.mark.usefixtures("keyring")
def test_a_key_that_is_not_there_is_named(dist: Path) -> None:
    with pytest.raises(ReleaseError, match=r"gpg does not sign SHA256SUMS with 'nobody@example\.org': .+"):
        sign(dist, "nobody@example.org")


def test_without_a_build_it_is_said_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="type `make release-check`"):
        sign(tmp_path, KEY)
