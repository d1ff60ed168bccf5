"""Sends traces to an OpenTelemetry collector, by OTLP over HTTP; needs the extra `parley[otel]`."""

import os
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.spans import Span, Trace

_KINDS = {"stream": SpanKind.SERVER, "stage": SpanKind.INTERNAL, "attempt": SpanKind.CLIENT}


class OtlpSender:
    """Makes spans and sends them, in the thread that calls it.

    Headers, timeout, certificates, sampling and the service's name are what OpenTelemetry's own variables say.
    """

    def __init__(self, url: str) -> None:
        named = {SERVICE_NAME: "parley", "process.pid": os.getpid(), **OTELResourceDetector().detect().attributes}
        provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._ended = _Ended()
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer("parley")
        self._parents = TraceContextTextMapPropagator()
        self._exporter = OTLPSpanExporter(endpoint=url)

    def send(self, traces: Sequence[Trace]) -> bool:
        """Whether the collector took what is sampled of `traces`; waits for it."""
        for trace in traces:
            self._make(trace)
        spans = self._ended.taken()
        return not spans or self._exporter.export(spans) is SpanExportResult.SUCCESS

    def stop(self) -> None:
        """Try no more: a call under way is the last."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _make(self, trace: Trace) -> None:
        parent = self._parents.extract({"traceparent": trace.parent}, context=Context())
        under = self._span(trace.root, parent)
        for child in trace.children:
            self._span(child, under)

    def _span(self, span: Span, parent: Context) -> Context:
        made = self._tracer.start_span(
            span.name,
            context=parent,
            kind=_KINDS[span.kind],
            attributes=span.attributes,
            start_time=span.begin_ns,
        )
        if span.first_output_ns is not None:
            made.add_event("first output", timestamp=span.first_output_ns)
        if span.failed:
            made.set_status(StatusCode.ERROR)
        made.end(end_time=span.end_ns)
        return set_span_in_context(made, parent)


class _Ended(SpanProcessor):
    """Keeps spans from their end until they are taken."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._spans.append(span)

    def taken(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans
