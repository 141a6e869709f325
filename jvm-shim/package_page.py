"""What a package index shows of a release: README with links that work there, and where the project lives.

With SPARK_ELASTIC_REPOSITORY=https://host/owner/name in the environment, links lead to the files of the
release's tag in that repository on GitHub, and the page names it. Without, README is as it is in a checkout.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]\[]*)\]\((?!https?://|#)([^)\s]+)\)")
_PAGES = {"Source": "", "Documentation": "/blob/{tag}/docs/index.md", "Changes": "/blob/{tag}/CHANGELOG.md",
          "Issues": "/issues"}  # fmt: skip


class Page(MetadataHookInterface):
    """Sets `readme` and `urls`, which pyproject.toml leaves to it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Raise SystemExit for a repository that is not an address."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("SPARK_ELASTIC_REPOSITORY", "").rstrip("/")
        if repository:
            if not re.fullmatch(r"https://[^/\s]+/[^/\s]+/[^/\s]+", repository):
                raise SystemExit(
                    f"SPARK_ELASTIC_REPOSITORY is {repository!r}: type the address of the repository: "
                    "https://host/owner/name"
                )
            tag = f"v{metadata['version']}"
            text = with_addresses(text, repository, tag)
            metadata["urls"] = {name: repository + page.format(tag=tag) for name, page in _PAGES.items()}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_addresses(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose links to files lead to those of a tag; pictures are the files themselves."""

    def address(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({repository}/{kind}/{tag}/{link[3]})"

    return _LINK.sub(address, text)
