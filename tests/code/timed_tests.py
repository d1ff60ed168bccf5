"""The tests that wait for a time instead of a state, and why."""

TIMED_WAITS = {
    "tests/app/ai/speech/test_turn_detection.py": "a client that cannot send for this time is held up",
    "tests/conftest.py": "the longest time that the tasks of a test may take to end",
    "tests/deploy/processes/test_remote_readers.py": "within this time, a process ends whose drain does not wait",
    "tests/deploy/processes/test_replacement.py": "the longest time that a replacement may take",
}
"""Tests that use `asyncio.wait` with a timeout, and why."""
TIMED_SLEEPS = {
    "the pace of a client, a reader or a vendor": (
        "tests/app/ai/attempts/test_closed_vendor_calls.py",
        "tests/app/ai/readers/test_large_responses.py",
        "tests/app/ai/pronunciation/test_accounts.py",
        "tests/app/ai/speech/test_recognition.py",
        "tests/app/ai/readers/test_remote_readers.py",
        "tests/app/ai/conversations/test_turns.py",
        "tests/app/doctor/test_ways.py",
        "tests/app/http/request/test_slow_bodies.py",
        "tests/app/http/serving/test_connections.py",
        "tests/app/valkey_proxy.py",
        "tests/deploy/processes/test_drain.py",
        "tests/deploy/proxies/test_nginx.py",
        "tests/deploy/processes/test_replacement.py",
        "tests/streams/test_body.py",
        "tests/streams/test_sse.py",
        "tests/streams/test_sse_readers.py",
        "tests/peers/vendor.py",
        "tests/vendors/local/test_pronunciation.py",
        "tests/vendors/calls/scripted_attempts.py",
        "tests/vendors/calls/test_guarded_voices.py",
        "tests/vendors/http/upstream.py",
    ),
    "the pace of calls or measurements that go on until something happens": (
        "tests/app/ai/streams/test_many_streams.py",
        "tests/app/ai/inputs/test_tiny_chunks.py",
        "tests/deploy/killed/test_processes.py",
        "tests/deploy/poolers/test_failover.py",
        "tests/running/poolers.py",
        "tests/deploy/processes/test_paused_process.py",
        "tests/deploy/processes/test_processes.py",
        "tests/waiting.py",
    ),
    "a part of a timeout passes, or all of it, before the step that is tested": (
        "tests/app/ai/streams/test_ended_sessions.py",
        "tests/app/ai/readers/test_ended_streams.py",
        "tests/app/http/wire/test_ingress.py",
        "tests/app/http/callers/test_limits.py",
        "tests/storage/conversations/test_turns.py",
        "tests/streams/test_log.py",
        "tests/vendors/calls/test_hedging.py",
        "tests/vendors/calls/test_timeouts.py",
    ),
    "the time itself is measured": (
        "tests/actors/runtime/test_receipt.py",
        "tests/app/work/test_jobs.py",
        "tests/app/admin/test_operators.py",
        "tests/deploy/processes/test_reader_memory.py",
        "tests/libraries/test_uvloop.py",
    ),
}
"""Tests that sleep for a time, by the reason. None sleeps to see that something has happened meanwhile."""
