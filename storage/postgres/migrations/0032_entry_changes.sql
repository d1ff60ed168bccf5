-- The triggers of `withdrawal_entries` call the function of those of `asset_entries`: it names the table of each.

create or replace function refuse_asset_entry_change() returns trigger language plpgsql as $$
begin
    raise exception 'rows of % are append-only: add an entry that corrects them', tg_table_name;
end
$$;

alter function refuse_asset_entry_change() rename to refuse_entry_change;
