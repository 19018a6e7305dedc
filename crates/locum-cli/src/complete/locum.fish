# Completion of locum in fish: what may come next is asked of locum itself.

function __locum_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    locum __complete -- $words "$current" 2>/dev/null
end

complete --command locum --no-files --keep-order --arguments '(__locum_complete)'
