-- The first code, reset or button that proves a weakly proven address ends all access that was set up before. Addresses
-- that were verified before this migration count as strongly proven: otherwise, all their users would lose their
-- passwords at the next login with a code.

alter table identities
    -- Whether an email address was only proven by opening its link, which programs that scan emails do too.
    add column weakly_proven boolean not null default false;

alter table earlier_emails
    -- The same, when the address was replaced or removed.
    add column weakly_proven boolean not null default false;
