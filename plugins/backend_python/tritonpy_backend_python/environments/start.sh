# Usage: bash start.sh SCRIPT PROGRAM [ARGUMENT ...]: sources SCRIPT, then replaces itself with PROGRAM.
# SCRIPT gets no arguments: a sourced script would see this script's arguments.
tritonpy_script=$1
tritonpy_program=("${@:2}")
set --
# Many activate scripts end with a test that is false without a terminal: report their failure and continue.
source "$tritonpy_script" || echo "$tritonpy_script ended with status $?" >&2
case $tritonpy_program in */*) export PATH="${tritonpy_program%/*}:$PATH" ;; esac
exec "${tritonpy_program[@]}"
