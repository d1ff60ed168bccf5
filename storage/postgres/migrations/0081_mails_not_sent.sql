-- no-transaction
-- Refused emails, and those that wait. A page of them must not read all emails that were sent.
create index concurrently mails_not_sent on mails (status, mail_id) where status <> 'sent';
