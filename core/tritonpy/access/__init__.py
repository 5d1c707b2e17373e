"""Access control: restricted APIs, forwarded headers, authentication and authorization.

Frontends call it; authenticator plugins identify principals.
"""
