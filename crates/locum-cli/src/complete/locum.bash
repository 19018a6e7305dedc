# Completion of locum in bash: what may come next is asked of locum itself.

_locum() {
    local line=${COMP_LINE:0:COMP_POINT} word blank current begun value about place
    local -a words=()
    COMPREPLY=()
    # Bash takes words apart at = and :, which locum does not: what was written together is put together again.
    for ((place = 0; place <= COMP_CWORD; place++)); do
        word=${COMP_WORDS[place]}
        blank=${line%%[!$' \t\n']*}
        line=${line:${#blank}}
        ((place == COMP_CWORD)) && word=$line
        line=${line:${#word}}
        if [[ -z $blank && ${#words[@]} -gt 0 ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
    done
    current=${words[${#words[@]} - 1]}
    begun=${current%"${current##*[=:]}"}
    while IFS=$'\t' read -r value about; do
        COMPREPLY+=("$(printf '%q' "${value#"$begun"}")")
    done < <(locum __complete -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -o bashdefault -o default -F _locum locum
