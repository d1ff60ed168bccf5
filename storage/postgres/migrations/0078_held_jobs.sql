-- no-transaction
-- For the list of held jobs, and their number.
create index concurrently procrastinate_jobs_held on procrastinate_jobs (id)
    where status in ('failed', 'aborted');
