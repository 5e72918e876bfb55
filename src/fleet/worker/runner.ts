import { spawn } from 'node:child_process'
import type { OutcomeHint, SessionOutcome } from '../../core/events/outcome.ts'
import { SANDBOX_MODES, type SandboxMode } from '../../core/shapes/sandbox.ts'
import { settingsOf } from '../../project/open-run.ts'
import { OWNED_VARIABLE, type World } from '../../project/world.ts'
import type { FleetJob } from '../jobs.ts'

/** The most rights of a worker's sessions, by the settings of its person. */
export interface Rights {
  sandbox: SandboxMode
  network: boolean
  /** Templates that it runs; empty: all. */
  templates: readonly string[]
}

/** The arguments and environment of a job, and a sentence for each refused request. */
interface Given {
  args: string[]
  env: NodeJS.ProcessEnv
  refused: string[]
}

/** Reads these rights; a project cannot change them. */
export async function rightsOf(world: World): Promise<Rights> {
  const { settings } = await settingsOf(world, world.cwd, {}, { withoutProject: true })
  const { sandbox, network, fleet } = settings
  return { sandbox, network, templates: fleet.templates }
}

/** Returns the granted part of a job's requests: never more than the worker's own rights, but less on request. */
export function giveRights(job: FleetJob, { sandbox, network }: Rights): Given {
  const given: Given = { args: [], env: {}, refused: [] }
  if (job.sandbox !== undefined) {
    if (SANDBOX_MODES.indexOf(job.sandbox) <= SANDBOX_MODES.indexOf(sandbox)) given.args.push('--sandbox', job.sandbox)
    else
      given.refused.push(
        `It asks for the sandbox ${job.sandbox}, but gets ${sandbox}, the most that this worker allows.`,
      )
  }
  if (job.network === true && !network)
    given.refused.push('It asks for the network, but this worker does not allow it.')
  else if (job.network === true) given.args.push('--network')
  // Omitted fields come from the person's settings, which may allow them.
  else if (job.network === false) given.env.CODEMACHINE_NETWORK = 'false'
  const flags = {
    '--model': job.model,
    '--effort': job.effort,
    '--max-usage': job.maxUsage,
    '--max-wait': job.maxWaitMs === undefined ? undefined : `${job.maxWaitMs / 1000}s`,
  }
  for (const [flag, value] of Object.entries(flags)) if (value !== undefined) given.args.push(flag, String(value))
  if (job.review === true) given.args.push('--review')
  return given
}

/** Removes the database's address and credentials from an environment, so that agents' commands cannot find them. */
function withoutDatabase(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofDatabase = (name: string) => name === 'CODEMACHINE_QUEUE' || /^PG[A-Z]+$/.test(name)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofDatabase(name)))
}

/** A process that runs a session. It ends with the worker: the system then closes its stdin in any case. */
export interface Runner {
  /** Its exit code and the end of its stderr. Null: it was killed or did not start. Never rejects. */
  readonly ended: Promise<{ exitCode: number | null; said: string }>
  /** Ends it like a signal; kills it after a timeout. */
  end(): void
}

/** Timeout of its end, ms: it winds down a round and makes its savepoint. */
const END_MS = 30_000
/** Longest wait for the rest of its output after its end, ms. */
const SAY_MS = 1_000
const MOST_SAID = 4_000

/**
 * Starts another process of this program.
 * @param own how it is started, absolute
 * @param args what is typed for it
 * @param changes variables that are other than the worker's
 */
export function startRunner(
  { env, cwd, clock }: Pick<World, 'env' | 'cwd' | 'clock'>,
  { own, args, changes }: { own: readonly string[]; args: readonly string[]; changes: NodeJS.ProcessEnv },
): Runner {
  const [program = '', ...before] = own
  const child = spawn(program, [...before, ...args], {
    cwd,
    env: { ...withoutDatabase(env), ...changes, [OWNED_VARIABLE]: '1' },
    stdio: ['pipe', 'ignore', 'pipe'],
    // Ctrl+C on the terminal must reach only the worker, which ends the process in order.
    detached: true,
    windowsHide: true,
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-MOST_SAID)
  })
  child.stdin.on('error', () => {})
  const { promise: ended, resolve } = Promise.withResolvers<{ exitCode: number | null; said: string }>()
  child.once('error', error => resolve({ exitCode: null, said: error.message }))
  child.once('close', exitCode => resolve({ exitCode, said: said.trim() }))
  // Leftover processes of a killed one may keep its stderr open forever.
  child.once('exit', exitCode => {
    void clock.wait(SAY_MS).then(() => resolve({ exitCode, said: said.trim() }))
  })
  const over = new AbortController()
  void ended.then(() => over.abort())
  return {
    ended,
    end() {
      child.stdin.destroy()
      void clock.wait(END_MS, over.signal).then(() => {
        if (!over.signal.aborted) child.kill('SIGKILL')
      })
    },
  }
}

/** Returns the reason if the worker's machine ended a session that could continue elsewhere; otherwise null. */
export function hindranceOf(outcome: SessionOutcome | null): string | null {
  if (outcome?.kind !== 'needs-person' || outcome.goalOnly || outcome.hint === null) return null
  return OF_PLACE.has(outcome.hint.do) ? outcome.reason : null
}

/** True if the job itself may cause the problem: a model or effort that this codex rejects. Another worker may accept it. */
export function asksForIt({ model, effort }: FleetJob, outcome: SessionOutcome | null): boolean {
  const isConfiguration = outcome?.kind === 'needs-person' && outcome.hint?.do === 'mend-codex-configuration'
  return isConfiguration && (model !== undefined || effort !== undefined)
}

const OF_PLACE: ReadonlySet<OutcomeHint['do']> = new Set([
  'check-codex',
  'add-credit',
  'log-in',
  'mend-access',
  'mend-codex-configuration',
  'mend-sandbox',
  'mend-provider',
  'free-disk-space',
  // The wait for this login's window would exceed the session's limit.
  'resume',
])
