import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { nearestName } from '../base/nearest-name.ts'
import { type Layer, shortened } from './entries.ts'
import { GATES, type WrittenGate } from './toml-gates.ts'
import { command, globs, line, shortDuration, trueOrFalse } from './values.ts'

/** What has to pass before done, as a run goes by it; what each field means: `Gate` of a session. */
export interface GateSetting {
  name: string
  run: string
  timeoutMs: number
  required: boolean
  network: boolean
  protect: readonly string[]
  everyRound: boolean
}

/** One gate as someone wrote it in a file. */
export interface GateEntry {
  layer: Layer
  /** Where it begins: `codemachine.toml:3`. */
  place: string
  /** Where each thing was said of it, by its key; what is not here was not said. */
  places: ReadonlyMap<string, string>
  /** `network` is null where nothing was said of it. */
  gate: Omit<GateSetting, 'network'> & { network: boolean | null }
}

/** What a gate is of which nothing more than its command is said. */
export const GATE_DEFAULTS = {
  timeoutMs: 10 * 60_000,
  required: true,
  network: null,
  protect: [],
  everyRound: false,
} as const

/**
 * Checks what stands in one file; the first mistake is a `UserError` of one sentence with its place.
 * @param file the file's name in sentences
 */
export function gateEntries(written: readonly WrittenGate[], file: string, layer: Layer): GateEntry[] {
  const entries = written.map(gate => entryOf(gate, file, layer))
  for (const [index, { gate, place }] of entries.entries()) {
    const first = entries.slice(0, index).find(other => other.gate.name === gate.name)
    if (first === undefined) continue
    throw new UserError(
      `${place}: the gate at ${first.place} is called "${shortened(gate.name)}", too; give each a name of its own.`,
    )
  }
  return entries
}

/** What `--verify` says, checked as `run` is. */
export function commandOfFlag(text: string): string {
  if (v.is(FIELDS.run, text)) return text
  throw new UserError(`--verify is ${shortened(JSON.stringify(text))}; use ${v.getDescription(FIELDS.run)}.`)
}

const FIELDS = {
  name: line('a name on one line, of at most 100 characters', 100),
  run: command,
  timeout: shortDuration,
  required: trueOrFalse,
  network: trueOrFalse,
  protect: globs,
  every_round: trueOrFalse,
} as const

const gateSchema = v.partial(v.object(FIELDS))

function entryOf({ line: first, fields }: WrittenGate, file: string, layer: Layer): GateEntry {
  const place = `${file}:${first}`
  const known = Object.entries<v.GenericSchema>(FIELDS)
  for (const { key, line: at, value, written } of fields) {
    const schema = known.find(([name]) => name === key)?.[1]
    if (schema === undefined) return refuseUnknown(key, `${file}:${at}`)
    if (v.is(schema, value)) continue
    throw new UserError(`${file}:${at}: ${GATES}.${key} is ${shortened(written)}; use ${v.getDescription(schema)}.`)
  }
  const said = v.parse(gateSchema, Object.fromEntries(fields.map(({ key, value }) => [key, value])))
  const { run } = said
  if (run === undefined) {
    throw new UserError(`${place}: this gate has no run; write the command that has to pass: run = "npm test".`)
  }
  return {
    layer,
    place,
    places: new Map(fields.map(({ key, line: at }) => [key, `${file}:${at}`])),
    gate: {
      name: said.name ?? run,
      run,
      timeoutMs: said.timeout ?? GATE_DEFAULTS.timeoutMs,
      required: said.required ?? GATE_DEFAULTS.required,
      network: said.network ?? GATE_DEFAULTS.network,
      protect: said.protect ?? GATE_DEFAULTS.protect,
      everyRound: said.every_round ?? GATE_DEFAULTS.everyRound,
    },
  }
}

function refuseUnknown(key: string, place: string): never {
  const known = Object.keys(FIELDS)
  const near = nearestName(key, known)
  const mend = near === null ? `those of a gate are ${known.join(', ')}.` : `did you mean "${GATES}.${near}"?`
  throw new UserError(`${place}: unknown key "${GATES}.${key}"; ${mend}`)
}
