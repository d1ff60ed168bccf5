"""Checks of configs when they are written, beyond the models of their kinds.

Configs are checked against each other when they are written. A field that names another config is marked with
`Ref`. `storage/configs/rules.py` reads the configs that a value names, in the transaction that writes it. A missing
config causes a warning. `configs.py` refuses values that cannot be used, such as options that the platform of the
named account does not have (`vendors.py`), and warns about probable mistakes, such as a sign-in platform without
the ids of the apps (`sign_in.py`).

Stored values are not checked again, so that a stricter version of Parley still loads them. The list of configs
shows the warnings that a check would report.
"""
