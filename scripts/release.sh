#!/usr/bin/env bash
# Builds a release, checks it in empty environments, and tags it:
#
#   scripts/release.sh check        sdist and wheel into dist/; the wheel in an empty environment of each Python 3.11 to 3.14
#   scripts/release.sh tag          the same, then the git tag vVERSION (not pushed)
#
# The wheel is built from the sdist. Dependencies are those that pip chooses within the bounds of pyproject.toml, not the
# versions of constraints.txt. A Python that is not installed is skipped, and the summary says so.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=.venv/bin/python
die() { printf 'release: %s\n' "$*" >&2; exit 1; }

case ${1:-} in
check|tag) ;;
*) die "usage: scripts/release.sh check|tag" ;;
esac
[ -x "$PYTHON" ] || die "no .venv; run make lint first"

version=$("$PYTHON" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
if [ "$1" = tag ]; then
    [ -z "$(git status --porcelain)" ] || die "the working tree has changes; commit them first"
    git rev-parse -q --verify "refs/tags/v$version" >/dev/null && die "the tag v$version exists; raise the version in pyproject.toml"
    grep -Eq "^## $version - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || die "CHANGELOG.md has no line '## $version - YYYY-MM-DD'"
fi

rm -rf dist
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
"$PYTHON" -m venv "$build"
"$build/bin/python" -m pip install --quiet --disable-pip-version-check build
"$build/bin/python" -m build --outdir dist .
wheels=(dist/topicshark-"$version"-*.whl)

TOPICSHARK_WHEEL=$PWD/${wheels[0]} "$PYTHON" -m pytest -p no:randomly tests/test_wheel.py

if [ "$1" = tag ]; then
    git tag -a "v$version" -m "topicshark $version"
    printf 'release: tagged v%s; git push origin v%s publishes it\n' "$version" "$version"
fi
