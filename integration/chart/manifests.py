"""Render conf/kubernetes/manifests, for those who do not use Helm, from the chart and the examples.

usage: python -m integration.chart.manifests
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from integration.chart.helm import FOLDER, NAMESPACE, RELEASE, render

EXAMPLES = FOLDER / "examples"
MANIFESTS = FOLDER / "manifests"
_HEAD = """\
# Rendered from ../chart with ../examples/{name} (`make manifests`): change those. They are
# for an application `{release}` in the namespace `{namespace}`; REGISTRY is the registry of your image.
"""


def manifests() -> Iterator[tuple[Path, str]]:
    """Yield the file and the text of each manifest, in the order of names."""
    for example in sorted(EXAMPLES.glob("*.yaml")):
        head = _HEAD.format(name=example.name, release=RELEASE, namespace=NAMESPACE)
        yield MANIFESTS / example.name, head + render(example)


def main() -> None:
    """Write all manifests, and remove those whose example is gone."""
    MANIFESTS.mkdir(exist_ok=True)
    made = dict(manifests())
    for file, text in made.items():
        file.write_text(text, encoding="utf-8")
    for file in MANIFESTS.glob("*.yaml"):
        if file not in made:
            file.unlink()


if __name__ == "__main__":
    main()
