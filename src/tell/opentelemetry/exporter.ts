// A thread of its own (`telemetry.ts`): the packages load nothing into the process of the session, and cannot block it.
import { parentPort } from 'node:worker_threads'
import { context, DiagLogLevel, diag, metrics, type Span, SpanStatusCode, trace } from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'
import { METRICS, type Measure } from './measures.ts'

const sdk = new NodeSDK()
const fail = () => parentPort?.postMessage('failed')
diag.setLogger(
  { error: fail, warn: () => {}, info: () => {}, debug: () => {}, verbose: () => {} },
  { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
)
sdk.start()

const tracer = trace.getTracer('codemachine')
const meter = metrics.getMeter('codemachine')
const spans = new Map<string, Span>()
const instruments = new Map(Object.entries(METRICS).map(([name, metric]) => [name, recorderOf(name, metric)]))

parentPort?.on('message', (measure: Measure | 'close') => {
  if (measure === 'close')
    void sdk
      .shutdown()
      .catch(fail)
      .then(() => parentPort?.postMessage('closed'))
  else take(measure)
})

function recorderOf(
  name: string,
  { kind, unit, bounds }: { kind: 'counter' | 'histogram' | 'gauge'; unit: string; bounds?: readonly number[] },
) {
  const advice = bounds === undefined ? {} : { advice: { explicitBucketBoundaries: [...bounds] } }
  switch (kind) {
    case 'counter': {
      const counter = meter.createCounter(name, { unit })
      return counter.add.bind(counter)
    }
    case 'histogram': {
      const histogram = meter.createHistogram(name, { unit, ...advice })
      return histogram.record.bind(histogram)
    }
    case 'gauge': {
      const gauge = meter.createGauge(name, { unit })
      return gauge.record.bind(gauge)
    }
  }
}

function take(measure: Measure): void {
  switch (measure.does) {
    case 'begin': {
      const parent = measure.parent === null ? undefined : spans.get(measure.parent)
      const within = parent === undefined ? context.active() : trace.setSpan(context.active(), parent)
      spans.set(measure.span, tracer.startSpan(measure.name, { startTime: measure.at }, within))
      break
    }
    case 'end': {
      const span = spans.get(measure.span)
      spans.delete(measure.span)
      span?.setAttributes(measure.attributes)
      if (measure.hasFailed) span?.setStatus({ code: SpanStatusCode.ERROR })
      span?.end(measure.at)
      break
    }
    case 'metric':
      instruments.get(measure.metric)?.(measure.value, measure.attributes)
  }
}
