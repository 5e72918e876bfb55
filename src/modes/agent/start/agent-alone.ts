import { mkdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { findEnabledAgent } from '../../../agents/agent.ts'
import { cleanResult, rememberResult } from '../../../agents/agent-memory.ts'
import { readRoster } from '../../../agents/roster.ts'
import { Cleanup, UserError } from '../../../base/errors.ts'
import { version } from '../../../base/package.ts'
import { withLineEnd } from '../../../base/text.ts'
import type { EventOf, LiveEvent, Recorded } from '../../../core/events/events.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import { limitsInRun } from '../../../core/rules/run-limits.ts'
import type { Agent, AgentRoster } from '../../../core/shapes/agent.ts'
import type { View } from '../../../core/state/state.ts'
import { emptyState, type SessionState } from '../../../core/state/state.ts'
import { NO_KEPT_TEXTS } from '../../../core/template.ts'
import { type ProfileExtras, readProfileExtras } from '../../../engines/codex/profiles.ts'
import { tomlString } from '../../../platform/toml.ts'
import { endWhatWasLeft } from '../../../project/after-kill.ts'
import {
  agentsAtStart,
  chooseCodex,
  codexOptionsOf,
  openEngines,
  providersOf,
  timesOf,
} from '../../../project/engine-of-project.ts'
import { projectAround } from '../../../project/find.ts'
import type { RunOptions } from '../../../project/library.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { closedPaths, openSessionSecrets } from '../../../project/secrets/session-secrets.ts'
import { allowanceAtStart, policyOf, refuseUnpricedAgent, runOverridesOf } from '../../../project/session-terms.ts'
import type { SettingSources } from '../../../project/settings/load.ts'
import type { Settings } from '../../../project/settings/schema.ts'
import { openAgentBook } from '../../../project/template-factory.ts'
import { Watchers } from '../../../project/watch/live-share.ts'
import { directoryOf, type World } from '../../../project/world.ts'
import { SpokenText } from '../../../session/delegation/agent-call.ts'
import { problemOfDepth } from '../../../session/delegation/agent-request.ts'
import { optionsOfRecords, ROUNDS_ALONE } from '../../../session/options.ts'
import { PersonAsked } from '../../../session/person.ts'
import { openRecords } from '../../../session/records/records.ts'
import { takeRunLock } from '../../../session/records/run-lock.ts'
import { Session } from '../../../session/session.ts'
import { playLogged, type SessionLog } from '../../../session/session-log.ts'
import { describeEvent } from '../../../tell/words/event.ts'
import { type Hints, SHELL_HINTS } from '../../../tell/words/names.ts'
import { formatSpan } from '../../../tell/words/numbers.ts'
import { describeOutcome, wordsForCallHint } from '../../../tell/words/outcome.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import { AGENT_CALLS } from '../../registry.ts'
import { tidyCalls } from './earlier-calls.ts'

/** One task for one agent, without a running session. */
interface AgentCall {
  /** Name of the agent. */
  agent: string
  /** Reads the task, once the agent is known to be usable. */
  readTask(): Promise<string>
  options: RunOptions
  /** Receives the agent's messages and actions while it works, without secrets; null: only the result counts. */
  onText: ((text: string) => void) | null
  /** Receives sentences for the person. */
  onRemark(remark: string): void
  /** Receives each debug line, without secrets, if `logging.level` is `debug`. */
  onDebug?: ((line: string) => void) | undefined
}

/** Result of an agent that worked alone. `problem`: a sentence why its memory lacks the result; null: it has it. */
type AloneEnd = { kind: 'completed'; result: string; problem: string | null } | { kind: 'terminated' }

/**
 * Runs one agent for one task in its own session, in the project around the directory. Throws a `UserError` for problems
 * that a person must fix (exit code 2), and for an unfinished task (4).
 */
export async function runAgentAlone(world: World, call: AgentCall): Promise<AloneEnd> {
  const prepared = await prepareCall(world, call)
  const { name, engine, task, records, codex, loaded, settings, limits, remarks } = prepared
  for (const remark of remarks) call.onRemark(remark)
  await tidyCalls(world, records)
  const { redactor } = codex
  const { clock, platform, pid } = world
  await using opened = new Cleanup()
  const id = await records.nextSessionId(new Date(clock.now()))
  opened.use(await takeRunLock(records.callLock(id), { platform, pid, now: new Date(clock.now()) }))
  const engines = await openEnginesOf(world, call, prepared)
  opened.defer(() => engines.close())
  const answer = new Answer(call, prepared.maxWait, new SpokenText(redactor, text => call.onText?.(text)))
  const at = clock.now()
  const created: EventOf<'session-created'> = {
    type: 'session-created',
    goal: task,
    template: AGENT_CALLS.name,
    directory: prepared.directory,
    limits,
    ...(loaded.prices.length === 0 ? {} : { prices: loaded.prices }),
    sandbox: settings.sandbox,
    network: settings.network,
    model: settings.model,
    effort: settings.effort,
    overrides: call.options.config ?? [],
    said: runOverridesOf(settings, loaded.sources),
    gates: [],
    queued: null,
    host: hostname(),
    codemachine: version,
  }
  const options = { records, views: [answer], clock, redactor }
  const begin = (log: SessionLog) => log.emit(created)
  return await playLogged(emptyState(id), options, begin, async log => {
    const runner = await sessionOf(world, prepared, { id, log, engines })
    const outcome = await runner.run()
    switch (outcome.kind) {
      case 'answered': {
        const result = cleanResult(answer.text)
        const [instance, moment] = [instanceOf(name, at), new Date(at).toISOString()]
        const entry = { instance, at: moment, request: redactor.text(task), result }
        return { kind: 'completed', result, problem: await rememberResult(prepared.directory, name, entry) }
      }
      case 'interrupted':
        return { kind: 'terminated' }
      default:
        throw notDone(name, outcome, runner.state, { engine, waits: prepared.maxWait > 0 })
    }
  })
}

type PreparedCall = Awaited<ReturnType<typeof prepareCall>>

/** Find the agent, its engine, profile and task, before anything is written. Throws a `UserError` if the agent cannot work. */
async function prepareCall(world: World, call: AgentCall) {
  const directory = await projectAround({ ...world, directory: directoryOf(world, call.options) })
  const loaded = await settingsOf(world, directory, call.options)
  const { roster, remarks: passedOver } = await readRoster(directory, loaded.agentTables)
  const { name, engine = loaded.settings.engine } = agentNamed(roster, call.agent)
  const waiting = waitingAgents(world.env)
  const problem = problemOfDepth(name, waiting)
  if (problem !== null) throw new UserError('CM1009', problem, { exitCode: 4 })
  const task = await call.readTask()
  const records = await openRecords({ ...world, directory })
  const codex = await chooseCodex(world, records, loaded)
  const { settings, providers, provider } = providersOf(world, loaded)
  const {
    agents,
    profiles,
    offered,
    remarks: ofAgents,
  } = await agentsAtStart(world, records, codex, {
    roster,
    settings,
    inProfiles: loaded.lasting,
    overrides: call.options.config ?? [],
    asks: engine === 'codex',
    provider,
    isCodex: loaded.settings.engine === 'codex',
  })
  if (offered?.isLoggedIn === false)
    throw new UserError('CM0302', 'Codex is not logged in, so no agent can work.', { exitCode: 4, hint: LOG_IN })
  const unreadable = profiles.unreadable.get(name)
  if (unreadable !== undefined) throw unreadable
  const profile = profiles.usable.has(name) ? await readProfileExtras(codex.home.path, name) : NO_PROFILE
  const allowance = allowanceAtStart(settings, loaded.sources)
  const limits = limitsInRun(allowance, {}, AGENT_CALLS.defaultRounds({}) ?? settings.rounds)
  refuseUnpricedAgent(loaded.prices, agentNamed(agents, name).model, limits)
  const remarks = [...codex.binary.remarks, ...passedOver, ...ofAgents, ...(await endWhatWasLeft(world, records))]
  const maxWait = waitOf(settings, loaded.sources)
  const callers = [...waiting, name].join('/')
  const common = { directory, loaded, name, engine, task, records, codex, settings, providers, agents, profile }
  return { ...common, limits, remarks, maxWait, callers }
}

async function openEnginesOf(world: World, call: AgentCall, prepared: PreparedCall) {
  const { directory, loaded, records, codex, settings, providers, profile, maxWait, callers } = prepared
  const overrides = [
    ...profile.overrides,
    // Commands that inherit only a shell's minimum do not get the variable itself.
    `shell_environment_policy.set.${AGENTS_VARIABLE}=${tomlString(callers)}`,
    ...(call.options.config ?? []),
  ]
  const said = { settings, overrides, onDebug: call.onDebug, onWarning: call.onRemark.bind(call) }
  const options = await codexOptionsOf(world, records, codex, said)
  return openEngines(world, loaded, records, {
    ...options,
    // Its commands know which agents wait for them.
    env: { ...options.env, [AGENTS_VARIABLE]: callers },
    directory,
    // The repository's own files stay read-only: nothing here would notice a hook or filter that an agent adds.
    sandbox: { mode: settings.sandbox, network: settings.network, writable: [] },
    providers: providers.byName,
    ...timesOf({ ...settings, maxWait }),
  })
}

/** Creates the session for the one task. */
async function sessionOf(
  world: World,
  prepared: PreparedCall,
  { id, log, engines }: { id: string; log: SessionLog; engines: Awaited<ReturnType<typeof openEnginesOf>> },
): Promise<Session> {
  const { directory, records, codex, settings, providers, agents, profile, remarks } = prepared
  const template = await AGENT_CALLS.open({
    directory,
    memory: NO_FILES,
    scopeFolder: () => NO_FILES,
    agents,
    isPlanReady: false,
    tell: () => {},
    kept: NO_KEPT_TEXTS,
    call: {
      agent: prepared.name,
      task: prepared.task,
      ...(profile.developerInstructions === null ? {} : { instructions: profile.developerInstructions }),
    },
  })
  await mkdir(join(records.sessionFolder(id), 'rounds'), { mode: 0o700 })
  const book = openAgentBook({ agents: async () => agents, directory })
  return new Session({
    log,
    engines,
    providers,
    // Others may change the files meanwhile, and no claim is made about them.
    ...ROUNDS_ALONE,
    lacksRoom: async () => false,
    template,
    agents: { book, directory, platform: world.platform, atOnce: settings.agents.atOnce },
    deniedPaths: closedPaths(records, openSessionSecrets(records, { ...codex, writable: [] })),
    policy: policyOf({ ...settings, maxWait: prepared.maxWait }),
    ...optionsOfRecords(records, id),
    redactor: codex.redactor,
    clock: world.clock,
    takeRemarks: () => remarks.splice(0),
    canAsk: false,
    audience: new Watchers(false, world),
    asked: new PersonAsked(world.signal),
    beforeEnd: async () => null,
  })
}

const LOG_IN = 'Log in: codemachine login'
const NO_FILES = { main: '', tasks: '', kb: '' }
const NO_PROFILE: ProfileExtras = { overrides: [], developerInstructions: null }

function agentNamed({ sub }: AgentRoster, name: string): Agent {
  const found = findEnabledAgent(sub, name)
  if ('problem' in found) throw new UserError('CM1009', found.problem)
  return found.agent
}

/** Returns the longest wait, ms: a caller waits, and must hear at once that there is no answer. */
function waitOf(settings: Settings, sources: SettingSources): number {
  return sources.maxWait.layer === 'defaults' ? 0 : settings.maxWait
}

function instanceOf(agent: string, at: number): string {
  return `${agent}-${new Date(at).toISOString().replace(/[-:.Z]/g, '')}`
}

function notDone(
  name: string,
  outcome: SessionOutcome,
  { last }: SessionState,
  { engine, waits }: { engine: string; waits: boolean },
): UserError {
  const needsPerson = outcome.kind === 'needs-person' ? outcome : null
  const reason = needsPerson?.reason ?? describeOutcome(outcome).text
  const cause = last?.outcome ?? null
  const told = needsPerson?.hint ? wordsForCallHint(needsPerson.hint, { cause, waits }) : null
  const hint = cause?.class === 'auth' && engine === 'codex' ? LOG_IN : told
  return new UserError('CM1013', `${name} did not finish its task: ${safeText(reason).replace(/\.$/, '')}.`, {
    exitCode: 4,
    ...(hint === null ? {} : { hint }),
  })
}

/** Environment variable with the agents that wait for an agent outside of a session. */
const AGENTS_VARIABLE = 'CODEMACHINE_AGENTS'

/** Returns the agents that wait for the caller, the nearest last; empty if a person calls. */
function waitingAgents(env: NodeJS.ProcessEnv): string[] {
  return (env[AGENTS_VARIABLE] ?? '').split('/').filter(name => name !== '')
}

/** Follows an agent's messages and actions, and keeps its last message. */
class Answer implements View {
  readonly #call: Pick<AgentCall, 'onText' | 'onRemark'>
  readonly #maxWaitMs: number
  readonly #spoken: SpokenText
  /** Whether the current message was streamed. */
  #isHeard = false
  #last = ''
  #final: string | null = null

  /** `maxWaitMs`: the longest wait; 0: none, so that only the end reports a missing network. */
  constructor(call: Pick<AgentCall, 'onText' | 'onRemark'>, maxWaitMs: number, spoken: SpokenText) {
    this.#call = call
    this.#maxWaitMs = maxWaitMs
    this.#spoken = spoken
  }

  /** The agent's answer; empty: none. */
  get text(): string {
    return this.#final ?? this.#last
  }

  event(event: Recorded, state: SessionState): void {
    // Messages of a failed try are not the answer.
    if (event.type === 'round-started') this.#final = null
    const isAway = event.type === 'error' && event.waitsForNetwork && this.#maxWaitMs > 0
    const told = event.type === 'waiting' || isAway ? describeEvent(event, state, hintsOf(this.#maxWaitMs)) : null
    if (told !== null) this.#call.onRemark(told.text)
    if (event.type !== 'item-completed') return
    const { item } = event
    if (item.kind === 'command') this.#call.onText?.(`$ ${item.command}\n${withLineEnd(item.output)}`)
    if (item.kind !== 'agent-message') return
    if (!this.#isHeard) this.#spoken.add(item.text)
    this.#spoken.end()
    this.#isHeard = false
    this.#last = item.text
    if (item.phase === 'final-answer') this.#final = item.text
  }

  live(event: LiveEvent): void {
    if (event.type !== 'text-delta' || event.source !== 'agent-message') return
    this.#isHeard = true
    this.#spoken.add(event.text)
  }
}

/** Returns hints for the caller about the waits of a call. */
function hintsOf(maxWaitMs: number): Hints {
  const endWaitOfCall = `its waits may take ${formatSpan(maxWaitMs)} in total (--max-wait); Ctrl+C ends it`
  return { ...SHELL_HINTS, endWaitOfCall }
}
