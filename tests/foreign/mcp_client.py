"""The official Python client against `locum mcp` and `/mcp` of `locum serve`, in both eras of the protocol: what another
implementation of it must see.

Usage: mcp_client.py LOCUM. It makes a home and a project of its own, and ends with an error if anything is amiss.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

PATIENCE_S = 120

TURN = {"tool_calls": [{"name": "ls", "input": {}}], "usage": {}, "delay_ms": 250}
SCRIPT = {"agents": {"*": [TURN, TURN, TURN, {"text": "Done: {{task}}", "usage": {}}]}}


async def call(session, tool, progress=None, **arguments):
    """Calls a tool; its answer, which the client holds against what was announced, and whether it is a refusal."""
    result = await session.call_tool(tool, arguments, progress_callback=progress)
    [content] = result.content
    assert json.loads(content.text) == result.structured_content, result
    return result.structured_content, result.is_error


async def check_tools(session):
    listed = await session.list_tools()
    assert [tool.name for tool in listed.tools] == ["subagent", "shared_context", "manage_tasks"], listed
    assert all(tool.output_schema and tool.annotations for tool in listed.tools), listed
    agents, refused = await call(session, "subagent", action="list_agents")
    assert not refused and any(agent["name"] == "explore" for agent in agents["agents"]), agents
    written, refused = await call(session, "shared_context", action="write", key="goal", value="v")
    assert not refused and written["version"] == 1, written
    read, refused = await call(session, "shared_context", action="read", key="goal")
    assert not refused and read["value"] == "v", read
    missing, refused = await call(session, "subagent", action="status", task_id="t_99")
    assert refused and missing["error"] == "TASK_NOT_FOUND", missing


async def check_progress(session):
    seen = []

    async def progress(value, total, message):
        seen.append((value, message))

    ran, refused = await call(session, "subagent", progress, action="run", agent="explore", task="a")
    assert not refused and ran["result"] == "Done: a", ran
    values = [value for value, _ in seen]
    assert values and values == sorted(set(values)), seen
    assert all(message.startswith("@explore t_01 ") for _, message in seen), seen


async def check_resources(session):
    listed = await session.list_resources()
    uris = [str(resource.uri) for resource in listed.resources]
    assert "locum://agents/explore" in uris and "locum://tasks/t_01" in uris and "locum://context/goal" in uris, uris
    templates = await session.list_resource_templates()
    assert len(templates.resource_templates) == 5, templates
    [result] = (await session.read_resource("locum://tasks/t_01/result")).contents
    assert result.text == "Done: a", result
    transcript = (await session.read_resource("locum://tasks/t_01/transcript")).contents
    assert "ended: completed" in transcript[0].text, transcript


async def check_prompts(session):
    listed = await session.list_prompts()
    assert [prompt.name for prompt in listed.prompts] == ["delegate", "roster"], listed
    prompt = await session.get_prompt("delegate", {"goal": "Ship it."})
    assert "Ship it." in prompt.messages[0].content.text, prompt


async def check_giving_up(session):
    spawned, _ = await call(session, "subagent", action="spawn", agent="explore", task="b")
    task = spawned["task_id"]
    with anyio.CancelScope() as scope:

        async def progress(value, total, message):
            scope.cancel()

        await call(session, "subagent", progress, action="wait", task_ids=[task])
    assert scope.cancelled_caught, "the wait was answered before it was given up"
    waited, refused = await call(session, "subagent", action="wait", task_ids=[task])
    assert not refused and waited["tasks"][0]["status"] == "completed", waited
    collected, refused = await call(session, "subagent", action="collect", task_id=task)
    assert not refused and collected["result"] == "Done: b", collected


CHECKS = (check_tools, check_progress, check_resources, check_prompts, check_giving_up)


async def with_handshake(session):
    hello = await session.initialize()
    assert hello.server_info.name == "locum" and "shared_context" in hello.instructions, hello


async def standing_alone(session):
    about = await session.discover()
    assert "2026-07-28" in about.supported_versions and "shared_context" in about.instructions, about


class Place:
    """A home and a project for one server."""

    def __init__(self, locum, folder):
        self.locum = locum
        self.project = folder / "project"
        (self.project / ".git").mkdir(parents=True)
        script = folder / "script.json"
        script.write_text(json.dumps(SCRIPT))
        self.model = ["--model", f"scripted:{script}"]
        self.environment = {"LOCUM_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}

    @contextlib.asynccontextmanager
    async def over_pipes(self):
        server = StdioServerParameters(
            command=self.locum, args=["mcp", *self.model], env=self.environment, cwd=self.project
        )
        async with stdio_client(server) as streams:
            yield streams

    @contextlib.asynccontextmanager
    async def over_http(self):
        command = [self.locum, "serve", "--listen", "0", "--json", *self.model]
        server = subprocess.Popen(
            command, cwd=self.project, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        try:
            said = json.loads(server.stdout.readline())
            token = Path(said["token_file"]).read_text().strip()
            async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as client:
                async with streamable_http_client(f"{said['url']}/mcp", http_client=client) as streams:
                    yield streams
        finally:
            server.terminate()
            server.wait()


async def check_all(locum, way, era):
    with tempfile.TemporaryDirectory(prefix="locum-foreign-") as folder, anyio.fail_after(PATIENCE_S):
        place = Place(locum, Path(folder))
        async with getattr(place, way)() as streams, ClientSession(*streams[:2]) as session:
            await era(session)
            for check in CHECKS:
                await check(session)
                print(f"{way}, {era.__name__}, {check.__name__}: passed")


def main():
    locum = str(Path(sys.argv[1]).resolve())
    for way in ("over_pipes", "over_http"):
        for era in (with_handshake, standing_alone):
            anyio.run(check_all, locum, way, era)


main()
