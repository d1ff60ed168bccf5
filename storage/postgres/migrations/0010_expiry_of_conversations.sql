create index conversations_by_last_use on conversations (app_id, updated_at);
