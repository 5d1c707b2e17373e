# Usage: bash start.sh SCRIPT PROGRAM [ARGUMENT ...]: sources SCRIPT, then becomes PROGRAM.
# SCRIPT gets none of the arguments: a sourced script would see ours.
tritonpy_script=$1
tritonpy_program=("${@:2}")
set --
# Many activate scripts end with a test that is false without a terminal: their failure is told and forgiven.
source "$tritonpy_script" || echo "$tritonpy_script ended with status $?" >&2
case $tritonpy_program in */*) export PATH="${tritonpy_program%/*}:$PATH" ;; esac
exec "${tritonpy_program[@]}"
