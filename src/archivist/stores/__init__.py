"""Where memory is kept: one protocol, its engines, migrations, the ledger and the search index."""
