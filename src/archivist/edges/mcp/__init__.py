"""The memory as an MCP server: tools, resources and prompts over stdio and streamable HTTP."""
