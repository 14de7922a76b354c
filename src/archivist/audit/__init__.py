"""Did it help: verdicts on briefed lessons, reports, regressions."""
