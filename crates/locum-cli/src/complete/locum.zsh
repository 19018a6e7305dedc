#compdef locum
# Completion of locum in zsh: what may come next is asked of locum itself.

_locum() {
    local value about
    local -a closed open
    while IFS=$'\t' read -r value about; do
        # What is not whole yet is followed by no space.
        if [[ $value == *[=/] ]]; then
            open+=("$value")
        elif [[ -n $about ]]; then
            closed+=("${value//:/\\:}:$about")
        else
            closed+=("${value//:/\\:}")
        fi
    done < <(locum __complete -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    if (( ${#closed} + ${#open} == 0 )); then
        _files
        return
    fi
    (( ${#closed} )) && _describe -V locum closed
    (( ${#open} )) && compadd -S '' -a open
    return 0
}

if [[ ${funcstack[1]} == _locum ]]; then
    _locum "$@"
else
    compdef _locum locum
fi
