"""Emails about accounts, the pages that they link to, and what a reader can do there.

Proofs of an address are strong or weak. Codes, password resets and the button behind a link are strong. To open a
link is a weak proof, because programs that scan emails do the same. The address is verified by it, and can be used,
but a weak proof says nothing about who has set up the account. Therefore a browser gets a page with a button
(`app/accounts/email/confirm_page.py`), and only other clients verify an address by opening its link.

The first code or reset deletes the access that was set up before, if the address had no proof or a weak one
(`first_proof.py`), because whoever signed up with it may not be its owner. It deletes the password, other
identities, sessions and codes, and ends a freeze, which would otherwise keep the owner of the address out. The
account and its data stay. `first_proof` runs in every login whose proof was an email (`Proven.receives_mail`), in a
password reset, and when an address is bound with a code. The button does the same after a weak proof. Without one,
it keeps everything, because the email says which account it confirms: otherwise all who sign up and confirm the
address would lose their passwords. The price is that a user whose emails are scanned loses it, and the page says so
before. It does not matter how the account got the address: an attacker can also add the address of somebody else to
an account that was created with another identity. Earlier addresses of the account are kept, because a user whose
session was stolen needs them to undo a change of the address.

"This was not me" is an encrypted token that only the server can make, not a code (`not_me.py`), because an attacker
who controls the account could revoke codes. Opening the link changes nothing, because programs open links in
emails. Only the button on its page makes the change. The button also restores a proven address that was replaced or
removed (`storage/accounts/earlier_emails.py`), and forgets the addresses that the account had after it, so that an
attacker cannot restore any of them. An account that was created with the address of somebody else may lose its last
identity in this way. It is then frozen. Otherwise its row and its data would stay forever, and nobody could log in
to it. It is not deactivated immediately, because its user may have mistyped the address. Until the freeze ends, the
app's server can recover the account.

If two addresses compete, the one that the account had longer wins. An address can be restored only if the account
had it for 7 days before it was replaced or removed, or since the sign-up. When an earlier address returns in any
way, it counts as if it had not been replaced, and the address that it replaces cannot be restored. Otherwise,
somebody who uses the account for a day could set an address, and take the account back with it after the user has
corrected that. The drawback is that a user whose new address was replaced within its first days cannot restore it.
The link in the notice then only ends the sessions and the codes, once per address, because its reader may also be
the attacker. The address before that can be restored. An attacker who goes unnoticed for 7 days has the same rights
as the user.

A linked identity is reported by a notice to the proven address, like a changed password (`notify_user` in
`mails.py`). Otherwise somebody who used an unattended session could link an identity and keep access unnoticed,
because "this was not me" removes only identities that were linked within the last 7 days.
"""
