"""The wire format: errors, models, JSON, ids, money and times, and the look of pages.

Money is exact (`money.py`): an integer of minor units and a currency, whose exponent is that of ISO 4217. Prices of
tokens, characters and seconds are smaller than a minor unit: they are decimals (`numeric` in PostgreSQL). Neither
is ever a float.
"""
