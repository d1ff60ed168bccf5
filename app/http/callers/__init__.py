"""Who calls: sessions, signatures, server tokens and operators, and the rate limits of each."""
