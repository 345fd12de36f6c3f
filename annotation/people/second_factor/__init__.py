"""The second step of a log-in: codes of an authenticator app, recovery codes, and passkeys, which also let in
by themselves. Only of accounts with a password here; whom a provider vouches for, it asks as it likes.
"""
