-- Which account was asked to pay a withdrawal. Null: none was asked yet, or it was asked before this was recorded.
alter table withdrawals add column account text;
