"""What the HTTP and MCP servers share: the socket, the checks of a request, its body, and refusals."""
