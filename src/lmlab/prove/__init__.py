"""The derivation language, its checker, and the ledger of claims."""
