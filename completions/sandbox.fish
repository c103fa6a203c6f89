# Completion of `sandbox` for fish. The program says which words fit; see `sandbox completions --help`.
function __sandbox_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -a words (commandline -ct)
    set -l lines (command sandbox complete -- $words 2>/dev/null)
    switch "$lines[1]"
        case 'command *'
            # From here on it is another command's line.
            set -l first (math (string replace 'command ' '' -- $lines[1]) + 1)
            set -l rest $words[$first..-1]
            set -l line (string escape -- $rest[1..-2]) $rest[-1]
            complete -C (string join ' ' -- $line)
        case files
            __fish_complete_path (commandline -ct)
        case directories
            __fish_complete_directories (commandline -ct) ''
        case words
            printf '%s\n' $lines[2..-1]
    end
end
complete -c sandbox -f -a '(__sandbox_complete)'
