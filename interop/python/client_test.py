"""Tests with the official Python client of the Model Context Protocol: over standard input, and over
HTTP. `STROWGER_BIN` names the program."""

import json
import os
import re
import subprocess
import tempfile
import threading
import unittest
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

PROGRAM = os.environ.get("STROWGER_BIN", "strowger")
# The limit on the text of an answer, in bytes.
LIMIT = 81_920
# Seconds that a call may take, and that a node may take to start.
PATIENCE = 60
TOKEN = "a token for agents"
# A file that is several answers long.
LINES = [f"line {number}" for number in range(20_000)]


def texts(answer):
    """The blocks of an answer, which are within the limit together."""
    blocks = [block.text for block in answer.content]
    assert sum(len(block.encode()) for block in blocks) <= LIMIT
    return blocks


async def whole(client, tool, arguments):
    """The text of an answer, followed to its end as its notes say, and the number of answers."""
    joined, answers = "", 0
    while True:
        answer = await client.call_tool(tool, arguments)
        assert not answer.is_error, answer
        answers += 1
        more = None
        for block in texts(answer):
            if re.match(r"\(.* call (again|continue_answer) with ", block):
                more = {key: int(number) for key, number in re.findall(r"(answer|offset)=(\d+)", block)}
            else:
                joined += block
        if more is None:
            return joined, answers
        if "answer" in more:
            tool, arguments = "continue_answer", more
        else:
            arguments = {**arguments, **more}


@asynccontextmanager
async def on_input(folder):
    """A client of the program that it starts."""
    server = StdioServerParameters(command=PROGRAM, args=["mcp", "--root", str(folder)])
    async with Client(server, read_timeout_seconds=PATIENCE) as client:
        yield client


@asynccontextmanager
async def over_http(folder):
    """A client of a running node, which ends with its input."""
    with tempfile.TemporaryDirectory() as place:
        place = Path(place)
        token = place / "token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        config = place / "node.toml"
        config.write_text(
            '[metrics]\nlisten = "127.0.0.1:0"\n'
            f"[mcp]\nhttp = true\ntoken_file = {json.dumps(str(token))}\n"
            f"[[tools.files]]\nroot = {json.dumps(str(folder))}\n"
        )
        arguments = ["run", "--json", "--with-parent", "--port", "0"]
        arguments += ["--config", str(config), "--control", str(place / "control.sock")]
        node = subprocess.Popen(
            [PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        late = threading.Timer(PATIENCE, node.kill)
        late.start()
        try:
            address = json.loads(node.stdout.readline())["http"]
            late.cancel()
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with create_mcp_http_client(headers=headers) as http:
                transport = streamable_http_client(f"http://{address}/mcp", http_client=http)
                async with Client(transport, read_timeout_seconds=PATIENCE) as client:
                    yield client
        finally:
            late.cancel()
            node.stdin.close()
            try:
                node.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
            node.stdout.close()


class AnswersReachTheirEnd(unittest.IsolatedAsyncioTestCase):
    async def check(self, connect):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "long.txt"
            file.write_text("".join(line + "\n" for line in LINES))
            async with connect(folder) as client:
                listed = await client.list_tools()
                tools = {tool.name: tool for tool in listed.tools}
                self.assertTrue(tools["read_text_file"].annotations.read_only_hint)
                for name in ("read_text_file", "edit_file", "continue_answer"):
                    self.assertEqual(tools[name].input_schema["type"], "object")
                # In pages of the tool itself.
                text, answers = await whole(client, "read_text_file", {"path": "long.txt"})
                self.assertGreater(answers, 2)
                self.assertEqual(text, file.read_text())
                # In parts that `continue_answer` returns: a diff has each line of the file.
                edits = [{"oldText": "line", "newText": "row", "all": True}]
                change = {"path": "long.txt", "edits": edits, "dryRun": True}
                diff, answers = await whole(client, "edit_file", change)
                self.assertGreater(answers, 2)
                removed = re.findall(r"^-(line \d+)$", diff, re.MULTILINE)
                self.assertEqual(removed, file.read_text().splitlines())
                added = re.findall(r"^\+row (\d+)$", diff, re.MULTILINE)
                self.assertEqual(added, [str(number) for number in range(len(LINES))])
                refused = await client.call_tool("read_text_file", {"path": "../secret"})
                self.assertTrue(refused.is_error)
                self.assertIn("rule: outside", refused.content[0].text)

    async def test_over_standard_input(self):
        await self.check(on_input)

    async def test_over_http(self):
        await self.check(over_http)


if __name__ == "__main__":
    unittest.main()
