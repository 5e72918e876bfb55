import { spawn } from 'node:child_process'
import type { OutcomeHint, SessionOutcome } from '../../core/events/outcome.ts'
import { SANDBOX_MODES, type SandboxMode } from '../../core/shapes/sandbox.ts'
import { settingsOf } from '../../project/open-run.ts'
import { OWNED_VARIABLE, type World } from '../../project/world.ts'
import type { FleetJob } from '../jobs.ts'

/** The most that a worker lets a session do, by the settings of the person who runs it. */
export interface Rights {
  sandbox: SandboxMode
  network: boolean
  /** The templates that it runs; none: all. */
  templates: readonly string[]
}

/** How a job is run, and a sentence for each thing that it asked for and does not get. */
interface Given {
  args: string[]
  env: NodeJS.ProcessEnv
  refused: string[]
}

/** Reads them; no project has a say. */
export async function rightsOf(world: World): Promise<Rights> {
  const { settings } = await settingsOf(world, world.cwd, {}, { withoutProject: true })
  const { sandbox, network, fleet } = settings
  return { sandbox, network, templates: fleet.templates }
}

/** What a job gets of what it asks for: never more than the worker's own rights, but less if it says so. */
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
  // What is left out is as the person has it, who may have allowed it.
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

/** What leads to the fleet's database, and what opens it: nothing that an agent's command is to find in its environment. */
function withoutDatabase(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ofDatabase = (name: string) => name === 'CODEMACHINE_QUEUE' || /^PG[A-Z]+$/.test(name)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofDatabase(name)))
}

/** A process that runs a session. It lives no longer than the worker: the system closes its stdin with that, whatever happens. */
export interface Runner {
  /** Its exit code, and the end of what it said on stderr. Null: it was killed, or could not be started. Never rejects. */
  readonly ended: Promise<{ exitCode: number | null; said: string }>
  /** Ends it as a signal would; it is killed if it takes longer than a worker waits. */
  end(): void
}

/** How long it may take to end, ms: a round is wound up, and its savepoint made. */
const END_MS = 30_000
/** How long the rest of what it has said is waited for when it has ended, ms. */
const SAY_MS = 1_000
const MOST_SAID = 4_000

/**
 * Starts this program once more.
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
    // A Ctrl+C on the terminal is for the worker, which ends it in order.
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
  // What it has started, and could not end because it was killed, may hold its stderr open for ever.
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

/** Whether it was the worker's place that ended a session, which would go on at another one; what it was. */
export function hindranceOf(outcome: SessionOutcome | null): string | null {
  if (outcome?.kind !== 'needs-person' || outcome.goalOnly || outcome.hint === null) return null
  return OF_PLACE.has(outcome.hint.do) ? outcome.reason : null
}

/** Whether a hindrance may come of what a job says itself: a model or an effort that codex does not take. Another worker may have it. */
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
  // The wait for this login's window would be longer than the session may wait.
  'resume',
])
