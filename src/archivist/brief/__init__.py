"""How memory gives back: select, render, record."""
