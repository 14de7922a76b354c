"""The blocks that are always in context, and the proposals that change them."""
