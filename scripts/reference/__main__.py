"""Write the pages, or tell which are stale."""

import argparse
import sys

from scripts.reference.pages import PAGES, REPO, stale


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.reference", description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not up to date")
    if parser.parse_args().check:
        late = stale()
        for name in late:
            print(f"{name} is stale; make it again: python -m scripts.reference", file=sys.stderr)
        return int(bool(late))
    for name, page in PAGES.items():
        path = REPO / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(page(), encoding="utf-8")
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
