"""Emails: jobs that send them, recipients, opens and suppressions.

Jobs send emails (`mail.py`, `app/mail/sending.py`). Areas store them in the transaction of the change that the
email reports. The job contains the complete subject and parts, encrypted. The mail accounts are tried in order. If
a mail server does not answer after it has received an email, only a further attempt of the job sends it again. The
email may then arrive twice, with the same `Message-ID`, because the loss of a code would be worse. The job names
its user or a keyed hash of the address (`recipients.py`), so that an erasure finds it. A held job is deleted when
its code or link has expired.

Emails are sent only to the normalized form of an address, which is also used to compare addresses. Otherwise,
somebody could get the code of an address that merely looks the same.

Users have addresses that are not ASCII before the @ only if an account sends to them (`smtputf8.py`): a mail server
without SMTPUTF8 would refuse each of their emails, also the one with the code for another address.

An email of a strategy has a row (`mails.py`), stored with its job. The row's state identifies duplicates. It is
stored right after the mail server has accepted the email, and a job that runs again finds it and sends nothing. So
an email is sent twice only if the worker is killed between both steps, or the answer is lost. The row contains the
recipient's address only as a keyed hash. The pixel's URL contains the address, and an open counts only if both
match.

Opens are kept in memory and written in batches (`opens.py`), because anybody can request the pixel, and the image
must not wait for the database. The queue is bounded. Stored opens are delivered at least once; a killed process
loses the opens of about the last 0.1 s.
"""
