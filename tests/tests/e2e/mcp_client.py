"""Calls tools by the public MCP client for Python, and prints what they say.

mcp_client.py CALLS SERVER ARGUMENTS...: CALLS is a file with a list of
[tool, arguments]. The client holds every answer against the tool's schema.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


def field(result, *names):
    return next(getattr(result, name) for name in names if hasattr(result, name))


async def main():
    with open(sys.argv[1]) as file:
        calls = json.load(file)
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
    said = {"tools": [], "answers": []}
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            listed = await session.list_tools()
            said["tools"] = sorted(tool.name for tool in listed.tools)
            for name, arguments in calls:
                result = await session.call_tool(name, arguments)
                said["answers"].append(
                    {
                        "tool": name,
                        "isError": field(result, "is_error", "isError"),
                        "answer": field(
                            result, "structured_content", "structuredContent"
                        ),
                    }
                )
    print(json.dumps(said))


asyncio.run(main())
