"""A tester that makes requests from the OpenAPI document against `locum serve`: no answer may be undocumented or 5xx.

Usage: api_tester.py LOCUM SECONDS
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

from locum_home import Home

# Events have no end, and the tester waits for one.
ENDLESS = ["/v1/events", "/v1/tasks/{task}/events"]
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
]
# What the examples of the document name.
SEEDS = [
    {"tool": "subagent", "input": {"action": "run", "agent": "explore", "task": "hello"}},
    {"tool": "shared_context", "input": {"action": "write", "key": "goal", "value": "ship"}},
    {"tool": "manage_tasks", "input": {"action": "add", "subject": "one"}},
]


def main(locum, seconds):
    tester = pathlib.Path(sys.executable).with_name("schemathesis")
    with Home(locum) as home:
        script = home.home / "script.json"
        script.write_text(json.dumps({"agents": {"*": [{"text": "Done: {{task}}"}]}}))
        environment = {"PATH": os.environ["PATH"], "HOME": str(home.home), "LOCUM_HOME": str(home.home)}
        # Requests that name no session share one, in which there is something to see.
        environment["LOCUM_SESSION"] = "tested"
        command = [home.locum, "serve", "--listen", "0", "--json", "--model", f"scripted:{script}"]
        server = subprocess.Popen(command, cwd=home.project, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            said = json.loads(server.stdout.readline())
            token = pathlib.Path(said["token_file"]).read_text().strip()
            for call in SEEDS:
                ask(said["url"], token, call)
            test(tester, said["url"], token, seconds)
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait(timeout=60)
        assert code == 0, f"the server ended with {code}"


def ask(url, token, call):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/requests", json.dumps(call).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test(tester, url, token, seconds):
    arguments = [str(tester), "run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {token}"]
    arguments += ["--checks", ",".join(CHECKS), "--max-time", str(seconds), "--request-timeout", "60"]
    for path in ENDLESS:
        arguments += ["--exclude-path", path]
    done = subprocess.run(arguments, timeout=seconds + 300)
    assert done.returncode == 0, f"the tester ended with {done.returncode}"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
