"""Find turns of phrase that plain English does without; each is named with what to say instead.

usage: python .ci/words.py [FILE...]

Without files, all that users and contributors read is checked: code, docs and configuration, not the tests.
Generated parts of docs are left out, since a turn in them is found at its source.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]
_PLACES = (
    "python",
    "jvm-shim",
    "conf",
    "docs",
    ".ci",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
_SUFFIXES = (".py", ".scala", ".java", ".js", ".md", ".yaml", ".yml", ".sh", ".template")
TURNS: Mapping[str, str] = {
    r"nobody|somebody": "no one, the user, another process, or the passive",
    r"(?:is|are|was|were) to (?:have|be)": "should, must, will",
    r"from now on": "from the next micro-batch, after that",
    r"so many(?! that)": "a number, this many",
    r"besides": "in addition, also",
    r"whatever (?:that|it) is worth": "even if it does not pay",
    r"makes of it": "decides, derives from it",
    r"(?:is|are) told of": "hears of, is notified of",
    r"begins? anew|starts? anew": "start over, restart",
    r"at the begin": "at the start",
    r"all that there is|all there are": "everything, all of them",
}

_GENERATED = re.compile(r"<!-- (\S+) -->.*?<!-- /\1 -->", re.DOTALL)
# Between two words: white space, and at a line's end also the ends of two literals, or a comment's mark.
_GAP = r"""(?:[ \t]*"?[ \t]*\n\s*(?:[a-z]?"|\#|//|\*|>)?\s*|\s+)"""


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line (from 1), turn and what to say instead, for each turn in a text, also across lines."""
    by_hand = _GENERATED.sub(lambda part: re.sub(r"\S", " ", part[0]), text)
    for turn, instead in TURNS.items():
        for match in re.finditer(rf"\b(?:{turn.replace(' ', _GAP)})\b", by_hand, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, re.sub(_GAP, " ", match.group()), instead


def _tracked() -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--", *_PLACES], cwd=_CHECKOUT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = _CHECKOUT / name
        if path.suffix in _SUFFIXES and path.is_file() and path != Path(__file__).resolve():
            yield path


def main() -> int:
    """Print every turn that is found; return 1 if there is one."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or list(_tracked())
    code = 0
    for path in paths:
        for line, turn, instead in found(path.read_text(encoding="utf-8")):
            print(f"{path.relative_to(_CHECKOUT)}:{line}: '{turn}': say {instead}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
