import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { request as requestByTls } from 'node:https'
import * as v from 'valibot'
import { messageOf, UserError } from '../../base/errors.ts'
import type { Access, Right } from './access.ts'

/** Result of a pairing. */
type PairingEnd = 'let-in' | 'refused' | 'too-late'

interface PairOptions {
  /** Rights of the new device. */
  right: Right
  /** Ends the pairing. */
  signal: AbortSignal
  /** Receives the code of eight digits that the new device must type. */
  onCode(code: string): void
  /** Asks whether to admit the device with this name that typed the code. */
  confirm(name: string): Promise<boolean>
}

const begunSchema = v.object({ id: v.string(), code: v.string() })
const stateSchema = v.variant('state', [
  v.object({ state: v.literal('waiting') }),
  v.object({ state: v.literal('asking'), name: v.string() }),
  v.object({ state: v.literal('over'), how: v.picklist(['let-in', 'refused', 'too-late']) }),
])

/**
 * Pairs a device from a terminal: asks the process that serves the page for a code, as a temporary device. Throws a
 * `UserError` if that process does not answer.
 */
export async function pairFromHere(address: string, access: Access, options: PairOptions): Promise<PairingEnd> {
  const { right, signal, onCode, confirm } = options
  const { device, key } = await access.add('a terminal, for pairing', 'steer')
  try {
    const begun = await bodyOf(await ask(address, 'pairing', { key, signal, body: {} }), begunSchema)
    onCode(begun.code)
    const states = await ask(address, `pairing/${begun.id}`, { key, signal })
    for await (const state of statesOf(states)) {
      if (state.state === 'over') return state.how
      if (state.state === 'waiting') continue
      const isLetIn = await confirm(state.name)
      const way = isLetIn ? 'confirm' : 'refuse'
      const answer = await ask(address, `pairing/${begun.id}/${way}`, { key, signal, body: isLetIn ? { right } : {} })
      answer.resume()
      return answer.statusCode === 200 ? (isLetIn ? 'let-in' : 'refused') : 'too-late'
    }
    return 'too-late'
  } catch (error) {
    if (error instanceof UserError || signal.aborted) throw error
    throw new UserError('CM0803', `The page does not answer: ${messageOf(error)}`)
  } finally {
    await access.end(device.id)
  }
}

/** Yields the states in a stream of server-sent events. */
async function* statesOf(stream: IncomingMessage): AsyncGenerator<v.InferOutput<typeof stateSchema>> {
  let rest = ''
  for await (const part of stream.setEncoding('utf8')) {
    const lines = `${rest}${part}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines)
      if (line.startsWith('data:')) yield v.parse(stateSchema, JSON.parse(line.slice('data:'.length)))
  }
}

async function ask(
  address: string,
  path: string,
  { key, signal, body }: { key: string; signal: AbortSignal; body?: object },
): Promise<IncomingMessage> {
  const url = new URL(`api/${path}`, address)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-codemachine': '1' }
  const method = body === undefined ? 'GET' : 'POST'
  // Its certificate may be self-signed: it is a process of this machine, at an address from the records.
  const sent =
    url.protocol === 'https:'
      ? requestByTls(url, { method, headers, signal, rejectUnauthorized: false })
      : request(url, { method, headers, signal })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answer
}

async function bodyOf<T>(answer: IncomingMessage, schema: v.GenericSchema<unknown, T>): Promise<T> {
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(Buffer.from(part))
  return v.parse(schema, JSON.parse(Buffer.concat(parts).toString('utf8')))
}
