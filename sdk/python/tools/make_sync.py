"""Makes the synchronous clients (`_sync`) of the asynchronous ones (`_async`). `--check` says whether they are up to date."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src/palisade"

#: In this order.
WORDS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\b__aiter__\b", "__iter__"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncHTTPTransport\b", "HTTPTransport"),
    (r"\bhttpx\.AsyncClient\b", "httpx.Client"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\b(aclose)\b", "close"),
    (r"\baread\b", "read"),
    (r"\bpause_async\b", "pause"),
    (r"\bAsync(?=[A-Z])", ""),
]


def synchronous(text: str) -> str:
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    return text


def main() -> int:
    is_current = True
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        made = synchronous(source.read_text())
        if source.name == "__init__.py":
            made = '"""Made of `_async` by tools/make_sync.py: do not change these files."""\n'
        target = PACKAGE / "_sync" / source.name
        if target.exists() and target.read_text() == made:
            continue
        is_current = False
        if "--check" not in sys.argv:
            target.parent.mkdir(exist_ok=True)
            target.write_text(made)
    if "--check" in sys.argv and not is_current:
        print("run tools/make_sync.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
