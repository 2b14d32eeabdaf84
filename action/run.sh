#!/usr/bin/env bash
# The last step of action.yml: run one command, put what it prints into the job's summary, and end with its exit code.
set -uo pipefail

case "${EMBAUDIT_COMMAND:-}" in
	check | parity | vectors | verify | search | why | switch) form=(--markdown) ;;
	gate) form=() ;;
	*)
		echo "embaudit's action runs a question (check, parity, vectors, verify, search, why, switch) or gate, not '${EMBAUDIT_COMMAND:-}'." >&2
		exit 2
		;;
esac
# Words as a shell would read them, of which nothing is run or expanded.
printed=$(mktemp) && words=$(mktemp) || exit 2
trap 'rm -f "$printed" "$words"' EXIT
if ! python3 -c 'import os, shlex, sys
sys.stdout.write("".join(f"{word}\0" for word in shlex.split(os.environ["EMBAUDIT_ARGUMENTS"])))' >"$words" 2>/dev/null; then
	echo "The action's arguments cannot be read: a quote is open, or there are none." >&2
	exit 2
fi
mapfile -d '' -t arguments <"$words"

embaudit "$EMBAUDIT_COMMAND" "${arguments[@]}" "${form[@]}" >"$printed"
code=$?
cat "$printed"
if [[ -n "${GITHUB_STEP_SUMMARY:-}" ]]; then
	{
		[[ $EMBAUDIT_COMMAND == gate ]] && echo '```'
		# A summary may have a megabyte.
		head -c 900000 "$printed"
		[[ $EMBAUDIT_COMMAND == gate ]] && echo '```'
		((code == 0)) || printf '\nexit code %d\n' "$code"
	} >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
