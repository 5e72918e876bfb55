import { UserError } from '../base/errors.ts'
import { commandOfFlag, GATE_DEFAULTS, type GateEntry, type GateSetting } from './gate-entries.ts'
import type { Settings } from './schema.ts'
import { GATES } from './toml-gates.ts'

/** What has to pass before done, in the order in which it runs. */
export interface Gates {
  gates: readonly GateSetting[]
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
): Gates {
  const counting = new Map<string, GateEntry>()
  for (const entry of entries) {
    checkTimeout(entry, settings)
    if (!counting.has(entry.gate.name)) counting.set(entry.gate.name, entry)
  }
  const network = reachesNetwork(settings)
  const ofFiles = [...counting.values()].map(({ gate }) => ({ ...gate, network: gate.network ?? network }))
  const gates = withVerified(ofFiles, verify, settings)
  const placeOf = ({ name, run }: GateSetting): string => {
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
  gates: readonly GateSetting[],
  verify: readonly string[],
  settings: Pick<Settings, 'sandbox' | 'network'>,
): GateSetting[] {
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
