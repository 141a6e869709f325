"""Runs kubectl, as a user does."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from integration.commands import output_of

_COMMAND_S = 120.0


class Refused(Exception):
    """A command of kubectl has failed; the text is what it said."""


class Kubectl:
    """kubectl with the rights of a kubeconfig, in one namespace; "": in those that objects name."""

    def __init__(self, program: Path, config: Path, namespace: str = "default") -> None:
        self.config = config
        self._program = program
        self.namespace = namespace

    def within(self, namespace: str) -> Kubectl:
        """Return the same for another namespace."""
        return Kubectl(self._program, self.config, namespace)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which other programs find this kubectl, and have its rights."""
        return {
            "PATH": f"{self._program.parent}{os.pathsep}{os.environ['PATH']}",
            "KUBECONFIG": str(self.config),
            # Beside its settings it would keep a cache of what the server can do, in the user's home.
            "KUBECACHEDIR": str(self.config.with_name("kubectl-cache")),
        }

    def command(self, *arguments: str) -> list[str]:
        """Return the command line, which needs `environment`."""
        within = [f"--namespace={self.namespace}"] if self.namespace else []
        return [str(self._program), *within, *arguments]

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = _COMMAND_S) -> str:
        """Return what a command prints. Raises Refused, and TimeoutExpired."""
        env = {**os.environ, **self.environment}
        return output_of(self.command(*arguments), Refused, timeout_s=timeout_s, stdin=stdin, env=env)

    def apply(self, text: str, *flags: str) -> str:
        """Apply objects, given as YAML."""
        return self.run("apply", "--filename=-", *flags, stdin=text)

    def get(self, *arguments: str) -> Any:
        """Return an object."""
        return json.loads(self.run("get", "--output=json", *arguments))

    def items(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a kind, those with these labels if there is a selector."""
        chosen = [f"--selector={selector}"] if selector else []
        found: list[dict[str, Any]] = self.get(kind, *chosen)["items"]
        return found
