-- With `app_id` first, this index served "the identity of an app and a platform" too. Until a table has statistics,
-- PostgreSQL takes such an index as readily as the primary key, and every login reads all identities of its platform.

drop index identities_of_user;
create unique index identities_of_user on identities (uid, app_id, platform);
