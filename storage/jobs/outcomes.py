"""The statements with which workers store the outcomes of attempts, for procrastinate's driver."""

from storage.jobs.failures import COLUMNS, REPLACE

# The worker and the number identify an attempt. The lock keeps both unchanged until the outcome is stored.
_ATTEMPT = """
select id from procrastinate_jobs
where id = %(job_id)s and status = 'doing' and worker_id = %(worker_id)s and attempts = %(attempts)s for update
"""
FINISH = f"""
with attempt as ({_ATTEMPT}) select procrastinate_finish_job_v1(id, %(status)s, %(delete_job)s) from attempt
"""
HOLD = f"""
with attempt as ({_ATTEMPT}), failed as (
    insert into job_failures (job_id, {", ".join(COLUMNS)})
    select id, {", ".join(f"%({name})s" for name in COLUMNS)} from attempt {REPLACE}
)
select procrastinate_finish_job_v1(id, %(status)s, %(delete_job)s) from attempt
"""
RETRY = f"""
with attempt as ({_ATTEMPT}) select procrastinate_retry_job_v2(id, %(retry_at)s, null, null, null) from attempt
"""
