"""Who may do what, and the tokens that prove who asks."""
