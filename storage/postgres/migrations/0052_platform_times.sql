-- When an event happened at the platform, such as a cancellation. `entered_at` is when the server has learned of it.
alter table asset_entries add column if not exists happened_at timestamptz;
