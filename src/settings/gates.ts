import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { nearestName } from '../base/text.ts'
import type { Gate } from '../core/events/outcome.ts'
import { command, globs, line, type Settings, shortDuration, trueOrFalse } from './schema.ts'
import { GATES, type Layer, shortened, type WrittenGate } from './toml.ts'

/** What has to pass before done, in the order in which it runs. */
export interface LoadedGates {
  gates: readonly Gate[]
  /** Where each was written, by its name: `codemachine.toml:3`, `--verify`. */
  gatePlaces: ReadonlyMap<string, string>
  /** Why rounds cannot be run with them, a sentence; null if they can. What runs no rounds may pass over it. */
  gateRefusal: string | null
}

/**
 * The gates that count of all that were written in files, and after them those of `verify`. Of two with one name that of
 * the person counts, for a project's file is written by whoever can write in the work directory. A `UserError` for one
 * that is wrong in any run.
 */
export function countingGates(
  entries: readonly GateEntry[],
  verify: readonly string[],
  settings: Pick<Settings, 'sandbox' | 'network' | 'commandMinutes'>,
): LoadedGates {
  const counting = new Map<string, GateEntry>()
  for (const entry of entries) {
    checkTimeout(entry, settings)
    if (!counting.has(entry.gate.name)) counting.set(entry.gate.name, entry)
  }
  const network = reachesNetwork(settings)
  const ofFiles = [...counting.values()].map(({ gate }) => ({ ...gate, network: gate.network ?? network }))
  const gates = withVerified(ofFiles, verify, settings)
  const placeOf = ({ name, run }: Gate): string => {
    const entry = counting.get(name)
    return entry?.gate.run === run ? entry.place : '--verify'
  }
  const [excess] = gates.slice(MOST_GATES)
  if (excess !== undefined) {
    throw new UserError(`${placeOf(excess)}: there are ${gates.length} gates; ${MOST_GATES} are the most.`)
  }
  const gatePlaces = new Map(gates.map(gate => [gate.name, placeOf(gate)]))
  return { gates, gatePlaces, gateRefusal: network ? null : refusalOfNetwork(entries) }
}

/**
 * Some gates and what `--verify` adds to them: one that is required for each command, in place of one that only has its
 * name. A gate that has this command already is required from now on, and stays as it is otherwise.
 */
export function withVerified(
  gates: readonly Gate[],
  verify: readonly string[],
  settings: Pick<Settings, 'sandbox' | 'network'>,
): Gate[] {
  const network = reachesNetwork(settings)
  const known = gates.map(gate => (verify.includes(gate.run) ? { ...gate, required: true } : gate))
  const added = [...new Set(verify)].filter(run => !gates.some(gate => gate.run === run)).map(commandOfFlag)
  return [
    ...known.filter(({ name }) => !added.includes(name)),
    ...added.map(run => ({ ...GATE_DEFAULTS, name: run, run, network })),
  ]
}

/** Whether the commands of a round reach the network. */
export function reachesNetwork({ sandbox, network }: Pick<Settings, 'sandbox' | 'network'>): boolean {
  return sandbox === 'danger-full-access' || (sandbox === 'workspace-write' && network)
}

const MOST_GATES = 50

/** A gate runs what agents wrote, so it never has more than the rounds have. */
function refusalOfNetwork(entries: readonly GateEntry[]): string | null {
  const excess = entries.find(({ gate }) => gate.network === true)
  if (excess === undefined) return null
  return `${excess.places.get('network') ?? excess.place}: ${GATES}.network is true, and the rounds have no network; a gate never has more rights than they, so give it to both with --network, or take it out.`
}

/** A project's own file does not have a night wait longer than for a command of an agent. */
function checkTimeout({ layer, places, gate }: GateEntry, { commandMinutes }: Pick<Settings, 'commandMinutes'>): void {
  const timeout = places.get('timeout')
  if (layer !== 'project' || timeout === undefined || gate.timeoutMs <= commandMinutes * 60_000) return
  throw new UserError(
    `${timeout}: ${GATES}.timeout is longer than a command may take (command_minutes = ${commandMinutes}), which a project's own file cannot ask for; raise command_minutes in your own config.toml, or write the gate there.`,
  )
}

/** One gate as someone wrote it in a file. */
export interface GateEntry {
  layer: Layer
  /** Where it begins: `codemachine.toml:3`. */
  place: string
  /** Where each thing was said of it, by its key; what is not here was not said. */
  places: ReadonlyMap<string, string>
  /** `network` is null where nothing was said of it. */
  gate: Omit<Gate, 'network'> & { network: boolean | null }
}

/** What a gate is of which nothing more than its command is said. */
const GATE_DEFAULTS = {
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
function commandOfFlag(text: string): string {
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
