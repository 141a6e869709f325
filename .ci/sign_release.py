"""Sign what `make release-check` has built in dist/, with GnuPG.

usage: .venv/bin/python .ci/sign_release.py KEY  (make sign KEY=...)

KEY is anything that `gpg --local-user` accepts: a fingerprint, or an address. The checksums of the wheel and
the source distribution get one signature. Each file for Maven Central gets its own, as it demands.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from release_check import DIST, ReleaseError

SIGNED = (".pom", ".jar")


def main(key: str) -> int:
    """Sign everything; return 1 if that fails."""
    try:
        signatures = sign(DIST, key)
    except ReleaseError as error:
        print(f"FAIL  {error}")
        return 1
    print(f"ok    {len(signatures)} signatures, each beside its file: gpg --verify FILE.asc FILE")
    return 0


def sign(dist: Path, key: str) -> list[Path]:
    """Write a signature beside each file that needs one, and return the signatures. Raises ReleaseError."""
    files = sorted(path for path in (dist / "maven").rglob("*") if path.suffix in SIGNED)
    sums = dist / "reports" / "SHA256SUMS"
    if not sums.is_file() or not files:
        raise ReleaseError(f"{dist} has no checksums or no Maven repository: type `make release-check`")
    return [_signature(path, key) for path in (sums, *files)]


def _signature(path: Path, key: str) -> Path:
    signature = path.with_name(f"{path.name}.asc")
    command = ["gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key]
    try:
        done = subprocess.run(
            [*command, "--output", signature, path], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ReleaseError("there is no gpg on PATH: install GnuPG") from None
    if done.returncode != 0:
        raise ReleaseError(f"gpg does not sign {path.name} with {key!r}: {done.stderr.strip()}")
    return signature


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"one key is wanted, found {sys.argv[1:]}: type `make sign KEY=FINGERPRINT`")
    sys.exit(main(sys.argv[1]))
