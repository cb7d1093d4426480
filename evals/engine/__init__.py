"""The ledger beside other vector stores."""
