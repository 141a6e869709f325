"""What a secured Spark UI needs: a key with its certificate, a login filter, tokens."""

from __future__ import annotations

import base64
import hmac
import json
import os
import shutil
import subprocess
from pathlib import Path

from spark_elastic.demo.cluster import spark_home

PASSWORD = "correct-horse"
FILTER = "LoginFilter"
_SOURCE = Path(__file__).parent / f"filters/{FILTER}.java"
_TOOL_S = 120.0


def compile_filter(folder: Path) -> None:
    """Compile the filter that wants a name and PASSWORD into a folder for the class path."""
    (api,) = (spark_home() / "jars").glob("jakarta.servlet-api-*.jar")
    _call("javac", "-cp", str(api), "-d", str(folder), str(_SOURCE))


def make_keystore(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a keystore (under PASSWORD) with a key for 127.0.0.1 alone, and the file of its certificate."""
    keystore, certificate = folder / f"{name}.p12", folder / f"{name}.pem"
    store = ("-alias", name, "-keystore", str(keystore), "-storepass", PASSWORD)
    extensions = ("san=ip:127.0.0.1", "bc:c=ca:true", "ku:c=digitalSignature,keyCertSign")
    options = [word for extension in extensions for word in ("-ext", extension)]
    _call("keytool", "-genkeypair", *store, "-keyalg", "EC", "-dname", f"CN={name}", *options)
    _call("keytool", "-exportcert", "-rfc", *store, "-file", str(certificate))
    return keystore, certificate


def _call(tool: str, *arguments: str) -> None:
    java = os.environ.get("JAVA_HOME")
    found = shutil.which(tool, path=None if java is None else f"{java}/bin")
    assert found is not None, f"there is no {tool}: the JDK has it"
    subprocess.run([found, *arguments], check=True, capture_output=True, timeout=_TOOL_S)


def base64url(value: bytes) -> str:
    """Encode as tokens are."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def token(key: bytes) -> str:
    """Sign a token as Spark's JWSFilter wants it."""
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "alice"})
    signed = ".".join(base64url(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{base64url(hmac.digest(key, signed.encode(), 'sha256'))}"


def basic(user: str) -> str:
    """Write the header of a login with PASSWORD."""
    return "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
