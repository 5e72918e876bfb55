import { UserError } from '../../base/errors.ts'
import { truncate } from '../../base/text.ts'
import type { Gate } from '../../core/events/outcome.ts'
import { ownFilesOf } from '../../core/rules/proof/gate-files.ts'
import { command, valueProblem } from '../../platform/toml-check.ts'
import type { Settings } from './schema.ts'
import type { SettingsFile } from './settings-file.ts'

/** The gates of a run, in order. */
export interface LoadedGates {
  gates: readonly Gate[]
  /** Place of each gate by name: `codemachine.toml:3`, `--verify`. */
  gatePlaces: ReadonlyMap<string, string>
  /** Why no round can run with these gates, a sentence; null if rounds can. Commands that run no rounds ignore it. */
  gateRefusal: string | null
}

/**
 * The gates of the files, then those of `verify`. Of two with the same name the person's wins: anyone who can write in the
 * work directory can write the project's file. Throws a `UserError` for a gate that is invalid in any run.
 */
export function effectiveGates(
  entries: readonly GateEntry[],
  verify: readonly string[],
  settings: Pick<Settings, 'sandbox' | 'network' | 'commandMinutes'>,
): LoadedGates {
  const counting = new Map<string, GateEntry>()
  for (const entry of entries) {
    const { layer, timeoutAt: at, gate } = entry
    if (at !== null) checkTimeout({ layer, at, what: 'gates.timeout', timeoutMs: gate.timeoutMs }, settings)
    if (!counting.has(entry.gate.name)) counting.set(entry.gate.name, entry)
  }
  const network = reachesNetwork(settings)
  const inFiles = [...counting.values()].map(({ gate }) => ({ ...gate, network: gate.network ?? network }))
  const gates = withVerified(inFiles, verify, settings)
  const placeOf = ({ name, run }: Gate): string => {
    const entry = counting.get(name)
    return entry?.gate.run === run ? entry.place : '--verify'
  }
  const [excess] = gates.slice(MAX_GATES)
  if (excess !== undefined) {
    throw new UserError(
      'CM0701',
      `${placeOf(excess)}: there are ${gates.length} gates; at most ${MAX_GATES} are allowed.`,
    )
  }
  const gatePlaces = new Map(gates.map(gate => [gate.name, placeOf(gate)]))
  return { gates, gatePlaces, gateRefusal: network ? null : networkRefusal(entries) }
}

/**
 * Adds a required gate for each command of `--verify`. It replaces a gate that has the command as its name; a gate that
 * already runs the command only becomes required.
 */
export function withVerified(
  gates: readonly Gate[],
  verify: readonly string[],
  settings: Pick<Settings, 'sandbox' | 'network'>,
): Gate[] {
  const network = reachesNetwork(settings)
  const known = gates.map(gate => (verify.includes(gate.run) ? { ...gate, required: true } : gate))
  const added = [...new Set(verify)].filter(run => !gates.some(gate => gate.run === run)).map(verifyCommand)
  return [
    ...known.filter(({ name }) => !added.includes(name)),
    ...added.map(run => ({ ...GATE_DEFAULTS, name: run, run, network })),
  ].map(withOwnFiles)
}

/** True if the commands of a round have network access. */
export function reachesNetwork({ sandbox, network }: Pick<Settings, 'sandbox' | 'network'>): boolean {
  return sandbox === 'danger-full-access' || (sandbox === 'workspace-write' && network)
}

const MAX_GATES = 50

/** A gate runs agents' code, so it never has more rights than the rounds. */
function networkRefusal(entries: readonly GateEntry[]): string | null {
  const excess = entries.find(({ gate }) => gate.network === true)
  if (excess === undefined) return null
  return `${excess.networkAt}: gates.network is true, but the rounds have no network. A gate never has more rights than the rounds. Allow it for both with --network, or remove it.`
}

/** Rejects a project's timeout above the bound of an agent's command: its file cannot make a session wait longer. */
export function checkTimeout(
  { layer, at, what, timeoutMs }: { layer: SettingsFile['layer']; at: string; what: string; timeoutMs: number },
  { commandMinutes }: Pick<Settings, 'commandMinutes'>,
): void {
  if (layer !== 'project' || timeoutMs <= commandMinutes * 60_000) return
  throw new UserError(
    'CM0701',
    `${at}: ${what} is longer than a command may take (command_minutes = ${commandMinutes}). A project's own file cannot ask for that. Raise command_minutes in your own config.toml, or define the gate there.`,
  )
}

/** A gate of a file, with its places. */
interface GateEntry {
  layer: SettingsFile['layer']
  /** Its first line: `codemachine.toml:3`. */
  place: string
  networkAt: string
  /** Null: not written. */
  timeoutAt: string | null
  /** `network`: null if not written. */
  gate: Omit<Gate, 'network'> & { network: boolean | null }
}

/** A gate protects the files that its command runs by itself, such as the `Makefile` of `make test`. */
function withOwnFiles(gate: Gate): Gate {
  const own = ownFilesOf(gate.run).filter(path => !gate.protect.includes(path))
  return own.length === 0 ? gate : { ...gate, protect: [...gate.protect, ...own] }
}

/** Values of a gate with only a command. */
const GATE_DEFAULTS = { timeoutMs: 10 * 60_000, required: true, network: null, protect: [], everyRound: false } as const

/** Returns the gates of one file. Throws a `UserError` of one sentence, with the place, for two of one name. */
export function gateEntries({ layer, value, placeOf }: SettingsFile): GateEntry[] {
  const entries = (value.gates ?? []).map(({ run = '', ...said }, index): GateEntry => {
    const gate = {
      name: said.name ?? run,
      run,
      timeoutMs: said.timeout ?? GATE_DEFAULTS.timeoutMs,
      required: said.required ?? GATE_DEFAULTS.required,
      network: said.network ?? GATE_DEFAULTS.network,
      protect: said.protect ?? GATE_DEFAULTS.protect,
      everyRound: said.every_round ?? GATE_DEFAULTS.everyRound,
    }
    const timeoutAt = said.timeout === undefined ? null : placeOf('gates', index, 'timeout')
    return { layer, place: placeOf('gates', index), networkAt: placeOf('gates', index, 'network'), timeoutAt, gate }
  })
  for (const [index, { gate, place }] of entries.entries()) {
    const first = entries.slice(0, index).find(other => other.gate.name === gate.name)
    if (first === undefined) continue
    throw new UserError(
      'CM0701',
      `${place}: the gate at ${first.place} is also called "${truncate(gate.name, 60)}"; give each gate its own name.`,
    )
  }
  return entries
}

/** Checks a command of `--verify` like the `run` of a gate. */
function verifyCommand(text: string): string {
  const problem = valueProblem(command, text, JSON.stringify(text))
  if (problem === null) return text
  throw new UserError('CM0701', `--verify ${problem}.`)
}
