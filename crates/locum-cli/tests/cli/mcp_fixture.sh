# An MCP server for tests. It does as its tools are named, and what it is told by files in its directory.
echo start >>starts.txt
trap 'echo end >>ends.txt' EXIT

reply() {
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}

text() {
    reply '{"content":[{"type":"text","text":"'"$1"'"}]}'
}

tool() {
    printf '{"name":"%s","description":"%s","inputSchema":{"type":"object","properties":{"word":{"type":"string"}}}}' \
        "$1" "${2:-Does what it is called.}"
}

list() {
    printf '{"tools":['
    tool echo "$(cat description.txt 2>/dev/null)"
    for name in huge hang die picture refuse count shout; do
        printf ','
        tool $name
    done
    printf ']}'
}

while IFS= read -r line; do
    id=${line#*\"id\":}
    id=${id%%[!0-9]*}
    case $line in
    *'"method":"initialize"'*)
        case $1 in
        silent) ;;
        stranger) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
        broken) printf 'certainly not JSON\n{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
        dead) echo 'cannot find module' >&2 && exit 7 ;;
        *) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"f","version":"1"}}' ;;
        esac
        ;;
    *'"method":"tools/list"'*) reply "$(list)" ;;
    *'"name":"echo"'*) text "hello from $(pwd -P | sed 's|.*/||'), $TOKEN" ;;
    *'"name":"huge"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
        head -c 9000000 /dev/zero | tr '\0' x
        printf '"}]}}\n'
        ;;
    *'"name":"hang"'*) echo hung >>hung.txt && sleep 1000 ;;
    *'"name":"die"'*) echo 'last words' >&2 && exit 3 ;;
    *'"name":"picture"'*) reply '{"content":[{"type":"image","data":"AAAABBBB","mimeType":"image/png"}]}' ;;
    *'"name":"refuse"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"not like this"}}\n' "$id" ;;
    *'"name":"count"'*) echo call >>calls.txt && text counted ;;
    *'"name":"shout"'*)
        # Far more than a pipe holds: somebody must listen.
        head -c 500000 /dev/zero | tr '\0' e >&2
        echo later >description.txt
        printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        text shouted
        ;;
    esac
done
