"""A hook of MkDocs: files outside docs/ that a page links to become part of the site, under project/.

So a link is written once, relative to its file, and works both in a checkout and on the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
_PLACE = "project"
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def on_files(files: Files, config: Any) -> Files:
    """Add every file that a page links to, and the files linked to by those."""
    new = [page.src_uri for page in files.documentation_pages()]
    while new:
        uri = new.pop()
        for target in _outside(uri):
            added = f"{_PLACE}/{target}"
            if files.get_file_from_path(added) is None:
                files.append(File.generated(config, added, abs_src_path=str(ROOT / target)))
                new += [added] if target.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links to such files, and links from them, to their place on the site."""
    uri: str = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        target = _target(uri, link[0])
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif (ROOT / target).is_file():
            target = f"{_PLACE}/{target}"
        else:
            return link[0]  # MkDocs reports the problem
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")

    return _LINK.sub(moved, markdown)


def _outside(uri: str) -> set[str]:
    text = _source(uri).read_text(encoding="utf-8")
    targets = {_target(uri, link[0]) for link in _LINK.finditer(text)}
    return {target for target in targets if not target.startswith("docs/") and (ROOT / target).is_file()}


def _source(uri: str) -> Path:
    return ROOT / (uri.removeprefix(f"{_PLACE}/") if uri.startswith(f"{_PLACE}/") else f"docs/{uri}")


def _target(uri: str, link: str) -> str:
    """Return the target of a link in a page, relative to the checkout."""
    return posixpath.normpath(
        posixpath.join(posixpath.dirname(_source(uri).relative_to(ROOT).as_posix()), link)
    )
