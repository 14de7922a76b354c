#!/bin/sh
# Call Archivist at both ends of each run of an agent, and let its second run profit from the first.
set -eu

TASK="Make the checks of toolshed pass."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/toolshed"
cd "$folder/toolshed"
# An example must not touch your own global memory; leave this line out.
export ARCHIVIST_HOME="$folder/home"
export ARCHIVIST_ACTOR=orchestrator:example

# The project's own trap, which nobody told the agent: its checks want a seed.
cat > checks <<'EOF'
#!/bin/sh
test "$1" = --seed && echo "12 checks passed" && exit
echo "checks: error: the following arguments are required: --seed" >&2
exit 2
EOF
chmod +x checks

# Stand in for your agent: it believes its prompt, reads errors, and logs each command it runs.
agent() {
    case $1 in
        *"./checks --seed 7"*) set -- "./checks --seed 7" ;;
        *) set -- "./checks" "./checks --seed 7" ;;
    esac
    for command in "$@"; do
        code=0
        output=$($command 2>&1) || code=$?
        printf '{"kind": "tool_call", "tool": "bash", "text": "%s", "output": "%s", "exit_code": %d}\n' \
            "$command" "$output" "$code"
    done
    return "$code"
}

archivist init
for run in run-1 run-2; do
    brief=$(archivist run start --run "$run" --repo toolshed --task "$TASK")
    echo "$run is told: ${brief:-nothing yet}"

    status=success
    printf '{"episode": {"id": "%s", "project": "toolshed", "task": "%s"}}\n' "$run" "$TASK" > "$run.jsonl"
    agent "$brief $TASK" >> "$run.jsonl" || status=failed

    archivist run finish "$run.jsonl" --run "$run" --status "$status"
done

# A run that left no log, only what its reviewer found.
cat > review-1.jsonl <<'EOF'
{"run_id": "review-1", "seq": 1, "type": "review.verdict", "data": {"archetype": "guardian", "findings": [{"severity": "bug", "description": "The checks write into the home folder"}]}}
EOF
archivist run start --run review-1 --task "Review the checks."
archivist run finish review-1.jsonl --status success
