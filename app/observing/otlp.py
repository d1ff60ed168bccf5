"""Sends traces to an OpenTelemetry collector by OTLP over HTTP. Requires the extra `parley[otel]`."""

import os
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.observing.spans import Span, Trace

_KINDS = {"stream": SpanKind.SERVER, "stage": SpanKind.INTERNAL, "attempt": SpanKind.CLIENT}


class OtlpSender:
    """Creates OpenTelemetry spans and sends them, in the calling thread.

    Headers, timeout, certificates, sampling and the service name are configured by OpenTelemetry's environment
    variables.
    """

    def __init__(self, url: str) -> None:
        attributes = {
            SERVICE_NAME: "parley",
            "process.pid": os.getpid(),
            **OTELResourceDetector().detect().attributes,
        }
        provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        self._ended_spans = _EndedSpans()
        provider.add_span_processor(self._ended_spans)
        self._tracer = provider.get_tracer("parley")
        self._parents = TraceContextTextMapPropagator()
        self._exporter = OTLPSpanExporter(endpoint=url)

    def send(self, traces: Sequence[Trace]) -> bool:
        """Send those of `traces` that are sampled, and return whether the collector has accepted them. Blocks."""
        for trace in traces:
            self._make(trace)
        spans = self._ended_spans.take()
        return not spans or self._exporter.export(spans) is SpanExportResult.SUCCESS

    def stop(self) -> None:
        """Stop sending. A call that is in progress is not retried."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _make(self, trace: Trace) -> None:
        parent = self._parents.extract({"traceparent": trace.parent}, context=Context())
        root_context = self._span(trace.root, parent)
        for child in trace.children:
            self._span(child, root_context)

    def _span(self, span: Span, parent: Context) -> Context:
        otel_span = self._tracer.start_span(
            span.name,
            context=parent,
            kind=_KINDS[span.kind],
            attributes=span.attributes,
            start_time=span.begin_ns,
        )
        if span.first_output_ns is not None:
            otel_span.add_event("first output", timestamp=span.first_output_ns)
        if span.failed:
            otel_span.set_status(StatusCode.ERROR)
        otel_span.end(end_time=span.end_ns)
        return set_span_in_context(otel_span, parent)


class _EndedSpans(SpanProcessor):
    """Collects sampled spans when they end."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        """Return the collected spans and forget them."""
        spans, self._spans = self._spans, []
        return spans
