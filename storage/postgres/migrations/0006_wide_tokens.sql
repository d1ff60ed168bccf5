alter table conversation_records
    alter column input_token type bigint,
    alter column output_token type bigint;
