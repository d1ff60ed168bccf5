create index conversations_of_user on conversations (app_id, uid, updated_at desc, conversation_id desc);
