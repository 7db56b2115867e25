#!/bin/sh
# Makes .venv with everything that the tests and the demo need. Run it as often as you like:
# it does nothing when nothing changed, and starts again where a run was cut off.
#
#   PYTHON               the interpreter to use (default: python3.11, else python3)
#   CASCADE_TORCH        what pip is asked for (default: torch==2.13.0)
#   CASCADE_TORCH_INDEX  the index to take torch from, for example one of CPU-only wheels
#
# .venv remembers them: name them once. A Python that already has torch 2.6 or newer lends it
# to .venv; torch is not fetched then.
set -eu
cd "$(dirname "$0")/.."

pinned_torch="torch==2.13.0"
venv=.venv
venv_python=$venv/bin/python
settings=$venv/cascade-settings # the three variables, one a line
state=$venv/cascade-setup       # "installing" while pip works, then what was installed from what

old_python="" old_torch="" old_index=""
if [ -f "$settings" ]; then
    { read -r old_python && read -r old_torch && read -r old_index; } <"$settings" || true
fi
PYTHON=${PYTHON:-$old_python}
asked_torch=${CASCADE_TORCH:-$old_torch}
torch=${asked_torch:-$pinned_torch}
torch_index=${CASCADE_TORCH_INDEX:-$old_index}

say() { printf 'setup: %s\n' "$*"; }

# stop STATUS "what happened, and where" "what to do"
stop() {
    printf 'setup: %s\n       %s\n' "$2" "$3" >&2
    exit "$1"
}

works() { "$1" -c '' >/dev/null 2>&1; }

has_torch() {
    "$1" -c '
import sys, torch
sys.exit(tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6))' >/dev/null 2>&1
}

choose_python() {
    if [ -n "$PYTHON" ]; then
        works "$PYTHON" || stop 2 "PYTHON=$PYTHON does not run." \
            "Name a Python 3.11 or newer, for example: make setup PYTHON=/usr/bin/python3.11"
        python=$PYTHON
    elif works python3.11; then
        python=python3.11
    elif works python3; then
        python=python3
    else
        stop 2 "no python3.11 and no python3 on the PATH." \
            "Install Python 3.11 (Debian, Ubuntu: apt install python3.11 python3.11-venv), then run this again."
    fi
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop 2 "$python is Python $version, and CASCADE Timelines needs 3.11 or newer." \
            "Install a newer one and name it: make setup PYTHON=/path/to/python3.11"
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        stop 2 "$python (Python $version) can't make virtual environments: its venv or ensurepip module is missing." \
            "Debian and Ubuntu keep them in a package of their own: apt install python$version-venv, then run this again."
}

# Another place, Python or torch needs a new environment; changed files only an update.
place() { printf '%s\n' "$PWD" "$PYTHON" "$torch" "$torch_index" | cksum | tr ' ' '-'; }
files() { cat pyproject.toml constraints.txt tools/setup.sh | cksum | tr ' ' '-'; }

make_venv() { # make_venv [--system-site-packages]
    rm -rf "$venv"
    "$python" -m venv "$@" "$venv" || stop 1 "$python -m venv could not make $PWD/$venv." \
        "Its own words are above; a full disk and a read-only folder are the usual causes."
}

pip() { "$venv_python" -m pip --disable-pip-version-check --no-input "$@"; }

pip_install() {
    pip install -q --progress-bar off "$@" 2>"$venv/pip.log" || {
        grep -v 'is ignored' "$venv/pip.log" | tail -n 6 >&2
        stop 1 "pip could not install into $PWD/$venv; its last words are above, all of them in $venv/pip.log." \
            "Usually the network or the package index can't be reached. Run make setup again: it starts clean and reuses what was downloaded."
    }
}

say_torch_size() {
    say "asking the package index how large $torch is"
    if size=$(pip install -qq --dry-run --report - "$@" 2>/dev/null |
        "$venv_python" tools/download_size.py 2>/dev/null); then
        say "$torch $size"
        case $size in
        *" GB "*) say "(smaller: CASCADE_TORCH_INDEX=URL of an index with CPU-only wheels)" ;;
        esac
    else
        say "its size can't be learned here: about 200 MB for a CPU-only wheel, several GB with CUDA"
    fi
}

# --- is there anything to do? ----------------------------------------------------------------

before=none
if [ -e "$venv" ] && ! works "$venv_python"; then
    before=broken
elif [ -f "$state" ]; then
    before=$(cat "$state")
elif [ -e "$venv" ]; then
    before=foreign
fi
wanted="$(place) $(files)"
[ "$before" != "$wanted" ] || exit 0

# --- the environment -------------------------------------------------------------------------

choose_python
case $before in
none) say "making $PWD/$venv with Python $version" ;;
foreign) say "adding what is missing to the $venv that is here" ;;
installing) say "the last setup was cut off; making $venv anew" ;;
"$(place) "*) say "the project's needs changed; updating $venv" ;;
*) say "$venv does not fit this place, Python or torch; making it anew" ;;
esac

own_torch=no
case $before in
foreign | "$(place) "*)
    ! grep -qi 'include-system-site-packages = true' "$venv/pyvenv.cfg" || own_torch=yes
    ;;
*)
    if [ -z "$asked_torch$torch_index" ] && has_torch "$python"; then
        make_venv --system-site-packages
        ! has_torch "$venv_python" || own_torch=yes # a torch in another .venv can't be lent
    fi
    [ "$own_torch" = yes ] || make_venv
    ;;
esac
[ "$own_torch" = no ] || say "using the torch that $python has"
echo installing >"$state"
printf '%s\n' "$PYTHON" "$asked_torch" "$torch_index" >"$settings"

# --- what goes into it -----------------------------------------------------------------------

constraints=constraints.txt
if [ "$own_torch" = yes ] || [ "$torch" != "$pinned_torch" ]; then
    # Another torch has other needs: keep our pins of everything else.
    constraints=$venv/constraints.txt
    sed '/^# torch and what only torch brings/,$d' constraints.txt >"$constraints"
fi

pip_install -c "$constraints" pip # an old pip would download files to learn their size
if [ "$own_torch" = no ]; then
    if [ -n "$torch_index" ]; then
        say_torch_size --no-deps --index-url "$torch_index" "$torch"
        pip_install --no-deps --index-url "$torch_index" "$torch"
    else
        say_torch_size -c "$constraints" "$torch"
    fi
    set -- "$torch"
else
    set --
fi
say "installing (one to three minutes, silent unless something fails)"
pip_install -c "$constraints" "$@" --editable '.[gpu,dev]'

"$venv_python" -c 'import torch' || stop 1 "torch was installed into $PWD/$venv and can't be imported." \
    "Its own words are above; another build may suit this machine: make setup CASCADE_TORCH=torch==VERSION"
say "compiling, once (about half a minute)"
"$venv_python" -P -m dashboard.compiled
printf '%s\n' "$wanted" >"$state"
say "done: $PWD/$venv"
