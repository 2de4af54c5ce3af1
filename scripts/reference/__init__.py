"""The pages of docs/reference/, made from the code so that they cannot say anything else than it does.

    python -m scripts.reference              # write all of them, and docs/rules.md
    python -m scripts.reference --check      # write nothing; exit 1 and say which are stale

A page is a module with a function ``page() -> str``; ``pages.py`` has the list.
"""
