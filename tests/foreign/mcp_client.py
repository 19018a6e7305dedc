"""The official Python client against `locum mcp`: what another implementation of the protocol must see.

Usage: mcp_client.py LOCUM. It makes a home and a project of its own, and ends with an error if anything is amiss.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

PATIENCE_S = 60

TURN = {"tool_calls": [{"name": "ls", "input": {}}], "usage": {}, "delay_ms": 250}
SCRIPT = {"agents": {"*": [TURN, TURN, TURN, {"text": "Done: {{task}}", "usage": {}}]}}


async def call(session, tool, progress=None, **arguments):
    """Calls a tool; its answer, and whether it is a refusal."""
    result = await session.call_tool(tool, arguments, progress_callback=progress)
    [content] = result.content
    assert json.loads(content.text) == result.structured_content, result
    return result.structured_content, result.is_error


async def check_tools(session):
    listed = await session.list_tools()
    assert [tool.name for tool in listed.tools] == ["subagent", "shared_context", "manage_tasks"], listed
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


async def check_all(locum, folder):
    project = folder / "project"
    (project / ".git").mkdir(parents=True)
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    server = StdioServerParameters(
        command=locum,
        args=["mcp", "--model", f"scripted:{script}"],
        env={"LOCUM_HOME": str(folder / "home"), "PATH": os.environ["PATH"]},
        cwd=project,
    )
    with anyio.fail_after(PATIENCE_S):
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            hello = await session.initialize()
            assert hello.server_info.name == "locum" and "shared_context" in hello.instructions, hello
            for check in (check_tools, check_progress, check_giving_up):
                await check(session)
                print(f"{check.__name__}: passed")


def main():
    locum = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="locum-foreign-") as folder:
        anyio.run(check_all, locum, Path(folder))


main()
