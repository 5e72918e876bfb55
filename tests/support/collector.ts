import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Value {
  stringValue?: string
  intValue?: number
  boolValue?: boolean
}

interface Attributed {
  name: string
  attributes: { key: string; value: Value }[]
}

export interface Span extends Attributed {
  spanId: string
  parentSpanId?: string
  status: { code?: number }
}

interface Metric {
  name: string
  sum?: { dataPoints: (Attributed & { asInt?: number; asDouble?: number })[] }
}

/** A collector that takes OTLP as JSON, or takes connections and never answers. */
export async function startCollector({ answers = true } = {}) {
  const bodies: { path: string; text: string; authorization: string | undefined }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    request.on('end', () => {
      bodies.push({ path: request.url ?? '', text, authorization: request.headers.authorization })
      if (answers) response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const of = (path: string) => bodies.filter(each => each.path === path).map(({ text }) => JSON.parse(text))
  return {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=canary-header',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=night',
    },
    bodies,
    resources: () =>
      of('/v1/traces').flatMap(body => body.resourceSpans.map((each: { resource: Attributed }) => each.resource)),
    spans: (): Span[] =>
      of('/v1/traces').flatMap(body =>
        body.resourceSpans.flatMap((each: { scopeSpans: { spans: Span[] }[] }) =>
          each.scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    metrics: (): Metric[] =>
      of('/v1/metrics').flatMap(body =>
        body.resourceMetrics.flatMap((each: { scopeMetrics: { metrics: Metric[] }[] }) =>
          each.scopeMetrics.flatMap(({ metrics }) => metrics),
        ),
      ),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Attributes by name, without the prefix. */
export const saidOf = ({ attributes }: Pick<Attributed, 'attributes'>) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key.replace(/^codemachine\./, ''), Object.values(value)[0]]))
