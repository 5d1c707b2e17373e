"""Who may call what: restricted APIs, forwarded headers, authentication and rights. Frontends ask, plugins know the callers."""
