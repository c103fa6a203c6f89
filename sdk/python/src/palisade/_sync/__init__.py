"""Made of `_async` by tools/make_sync.py: do not change these files."""
