-- which process has the turn while it runs: the turn of a dead one is over
alter table conversation_records add column process text not null default '';
