"""Emails: jobs that send them, recipients, opens and suppressions.

Emails are jobs (`mail.py`, `app/mail/sending.py`), which areas store in the transaction of the change that the
email reports. Subject and parts are complete and encrypted in the job. The mail accounts are tried in order. If a
mail server does not answer after it has received an email, only a further attempt of the job sends it again. It may
arrive twice then, with the same `Message-ID`, because the loss of a code would be worse. The job names its user, or
else a keyed hash of the address (`recipients.py`), so that an erasure finds it. A held job is deleted when its code
or link has expired.

Emails are sent to the normalized form of an address only, by which addresses are compared. Otherwise somebody could
get the code of an address that merely looks the same.

An email of a strategy has a row (`mails.py`), stored with its job. The row's state is what makes a second send a
duplicate, and it is stored right after the mail server has accepted the email. A job that runs again finds it there
and sends nothing. So only a worker that is killed between both, or a lost answer, sends an email twice. The
recipient's address is only a keyed hash in the row. The pixel's URL has the address, and an open counts only if
both match.

Opens are kept in memory and written in batches (`opens.py`), because anybody can request the pixel, and the image
must not wait for the database. The queue is bounded. What is stored is delivered at least once; a killed process
loses what has arrived in about the last 0.1 s.
"""
