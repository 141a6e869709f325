"""The parts of a secured Spark UI: a key with its certificate, a login filter, tokens."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path

from integration.jdk_tools import KEYTOOL, compile_java, run_tool

PASSWORD = "correct-horse"
FILTER = "LoginFilter"
_SOURCE = Path(__file__).parent / f"filters/{FILTER}.java"


def compile_filter(folder: Path) -> None:
    """Compile the filter that asks for a name and PASSWORD into a folder for the class path."""
    compile_java(_SOURCE, folder)


def make_keystore(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a keystore (under PASSWORD) with a key for 127.0.0.1 only, and the file of its certificate."""
    keystore, certificate = folder / f"{name}.p12", folder / f"{name}.pem"
    store = ("-alias", name, "-keystore", str(keystore), "-storepass", PASSWORD)
    extensions = ("san=ip:127.0.0.1", "bc:c=ca:true", "ku:c=digitalSignature,keyCertSign")
    options = [word for extension in extensions for word in ("-ext", extension)]
    run_tool(KEYTOOL, "-genkeypair", *store, "-keyalg", "EC", "-dname", f"CN={name}", *options)
    run_tool(KEYTOOL, "-exportcert", "-rfc", *store, "-file", str(certificate))
    return keystore, certificate


def base64url(value: bytes) -> str:
    """Encode in the encoding of tokens."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def token(key: bytes) -> str:
    """Sign a token for Spark's JWSFilter."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "alice"})
    signed = ".".join(base64url(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{base64url(hmac.digest(key, signed.encode(), 'sha256'))}"


def basic(user: str) -> str:
    """Return the header of a login with PASSWORD."""
    return "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
