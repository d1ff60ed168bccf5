-- no-transaction
alter table attempts validate constraint attempts_of_first_partition;
