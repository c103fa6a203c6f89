# Completion of `sandbox` for bash. The program says which words fit; see `sandbox completions --help`.
_sandbox() {
    local kind line offset
    local -a lines=()
    while IFS= read -r line; do
        lines+=("$line")
    done < <(sandbox complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    kind=${lines[0]-}
    COMPREPLY=()
    case $kind in
    command\ *)
        # From here on it is another command's line. bash-completion knows how to complete it.
        offset=$((${kind#command } + 1))
        if declare -F _comp_command_offset >/dev/null; then
            _comp_command_offset "$offset"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$offset"
        elif ((COMP_CWORD == offset)); then
            mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
        else
            compopt -o default
        fi
        ;;
    files) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
    directories) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "${COMP_WORDS[COMP_CWORD]}") ;;
    words)
        for line in "${lines[@]:1}"; do
            COMPREPLY+=("${line%%$'\t'*}")
        done
        ;;
    esac
}
complete -F _sandbox sandbox
