"""The path of one request: pipeline, checks, bodies and large responses.

The handler of a stream returns before the stream begins. It returns a coroutine (`DeferredResponse`), which the
pipeline awaits, so that a long stream keeps no other stack frames in memory. For the same reason,
`request_pipeline` in `pipeline.py` replaces the routing of aiohttp's application.

Large bodies are limited and decoded in steps. A user has at most 64 MiB in bodies of more than 32 KiB, and a
process 256 MiB (`held_bodies.py`). The bytes count from their arrival until the request is answered; of audio, only
those beyond 1 MiB count. JSON above 320 KiB is accepted only if its size comes from long texts, such as the base64
of a mask (`streams/large_json.py`). These texts are cut out and decoded in pieces, one iteration of the event loop
after the other. orjson would hold the loop for 80 ms, and for up to half a second if the body consists of small
objects.

Large REST responses are sent like streams (`large_responses.py`): in pieces of 64 KiB, with the same timeout for a
client that does not read. Unsent bytes are limited to 8 MiB per caller and 128 MiB per process.

The rest of an upload after an early response is read and discarded (`pipeline.py`), for at most 10 s or 16 MiB more
than the endpoint accepts, and only while the connection is open. aiohttp's own code for this would continue after
the end of the connection.
"""
