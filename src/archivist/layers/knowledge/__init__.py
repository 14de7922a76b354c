"""Facts, and the conflicts about them."""
