-- When the user got an address that can be restored. Null: an older version has stored the row.
alter table earlier_emails add column added_at timestamptz;
