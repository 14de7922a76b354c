"""What a bank does, one file a family: each function takes the bank, opens its transactions, calls rooms."""
