"""What the doors that listen share: the socket, the connection, who may come in, and how one is refused."""
