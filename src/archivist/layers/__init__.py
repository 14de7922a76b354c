"""What the agents of a project share: knowledge, attempts, artifacts, working memory."""
