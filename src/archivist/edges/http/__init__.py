"""The HTTP door: FastAPI over one bank, for programs and the browser."""
