"""A reader with a backlog gets it in pieces, without loss."""

from contextlib import aclosing

from streams.log import PIECE_BYTES, EventLog

MANY = 1 << 30


async def test_a_backlog_is_sent_in_pieces_up_to_the_end():
    log = EventLog(keep_bytes=MANY, lag_bytes=MANY)
    for number in range(5_000):
        log.put(b"%0100d" % number)
    log.finish(b"end")

    async with aclosing(log.follow(0)) as following:
        pieces = [ready async for ready in following]

    assert b"".join(piece.frames for piece in pieces) == b"".join(b"%0100d" % n for n in range(5_000)) + b"end"
    assert max(len(piece.frames) for piece in pieces) <= PIECE_BYTES
    assert len(pieces) <= 5_000 * 100 / PIECE_BYTES + 2
    assert [piece.final for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert pieces[-1].last_id == log.last_id


async def test_a_frame_larger_than_a_piece_is_yielded_alone_and_shared():
    log, large = EventLog(keep_bytes=MANY, lag_bytes=MANY), b"b" * 3 * PIECE_BYTES
    for frame in (b"a", large, b"c"):
        log.put(frame)
    log.finish(b"d")

    async with aclosing(log.follow(0)) as following:
        pieces = [ready async for ready in following]

    assert [(piece.last_id, piece.final) for piece in pieces] == [(1, False), (2, False), (4, True)]
    assert pieces[1].frames is large


async def test_frames_that_an_attached_reader_has_not_read_are_not_dropped():
    log = EventLog(keep_bytes=8 * PIECE_BYTES, lag_bytes=4 * PIECE_BYTES)
    frames = [b"%01024d" % number for number in range(8 * PIECE_BYTES // 1024)]
    for frame in frames:
        log.put(frame)

    async with aclosing(log.follow(0)) as reader:
        seen = (await anext(reader)).frames
        more = [b"m" * 1024] * 200  # The writer does not wait for readers.
        for frame in more:
            log.put(frame)
        log.finish(b"end")
        seen += b"".join([ready.frames async for ready in reader])

    assert seen == b"".join([*frames, *more, b"end"])
