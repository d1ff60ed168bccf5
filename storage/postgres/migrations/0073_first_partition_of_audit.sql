-- no-transaction
alter table audit validate constraint audit_of_first_partition;
