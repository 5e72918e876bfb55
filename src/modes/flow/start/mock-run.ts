import { mkdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { loadAgents } from '../../../agents/agent.ts'
import { Cleanup, UserError } from '../../../base/errors.ts'
import { version } from '../../../base/package.ts'
import { Engines } from '../../../core/engine.ts'
import type { EventOf } from '../../../core/events/events.ts'
import type { SessionOutcome } from '../../../core/events/outcome.ts'
import { usedBy } from '../../../core/rules/run-limits.ts'
import { emptyState, type SessionState } from '../../../core/state/state.ts'
import { inEffect, type Template } from '../../../core/template.ts'
import { chooseCodexHome } from '../../../engines/codex/find-codex.ts'
import { ReplayEngine } from '../../../engines/replay/replay-engine.ts'
import { lacksRoom } from '../../../platform/files.ts'
import { startTimeOf } from '../../../platform/processes.ts'
import { handleCommand } from '../../../project/commands/commands.ts'
import type { RunningSession } from '../../../project/commands/running-session.ts'
import type { EndedSession, RunOptions } from '../../../project/library.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { reportAtEnd } from '../../../project/reports.ts'
import { policyOf } from '../../../project/session-terms.ts'
import type { RunObserver } from '../../../project/sessions.ts'
import type { LoadedSettings } from '../../../project/settings/load.ts'
import type { Settings } from '../../../project/settings/schema.ts'
import { templateNamed } from '../../../project/start/templates.ts'
import { openAgentBook } from '../../../project/template-factory.ts'
import { LiveShare, Watchers } from '../../../project/watch/live-share.ts'
import { directoryOf, type World } from '../../../project/world.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import { openRedactor } from '../../../secrets/secrets.ts'
import { optionsOfRecords, ROUNDS_ALONE } from '../../../session/options.ts'
import { PersonAsked } from '../../../session/person.ts'
import { watchCommands } from '../../../session/records/control.ts'
import { openKeptTexts, refuseTexts } from '../../../session/records/kept-texts.ts'
import { openRecords, type Records } from '../../../session/records/records.ts'
import { takeRunLock } from '../../../session/records/run-lock.ts'
import { Session } from '../../../session/session.ts'
import { playLogged, type SessionLog } from '../../../session/session-log.ts'
import { makeMemoryFolderOrRefuse } from '../../../workspace/memory/memory-folder.ts'
import { memoryRoot, scopeFolder, sessionFolder } from '../../../workspace/memory/memory-paths.ts'
import { type BuiltMock, SCRIPT_NAME, scriptOf, shownCounts, toldOf, type Unplayable } from '../file/mock-script.ts'
import { type FlowOptions, type FlowPlan, flowOptionsOf, PLAN_NAME } from '../file/plan.ts'
import {
  bytesOfRecording,
  type FoundRecording,
  findRecording,
  keptRecording,
  withRecordedItems,
} from '../file/recording.ts'
import { writeMemory } from './runtime-files.ts'

/** A workflow to replay from its recordings. */
interface MockRun {
  plan: FlowPlan
  /** From `flowOptionsOf`, with the mode `mock`. */
  options: FlowOptions
  /** Whether to refuse a prompt or an input that differs from the recording. */
  strict: boolean
  /** Sentences for the person; left out: none. */
  remarks?: readonly string[]
  /** Work directory, and settings for a replay. */
  run: RunOptions
}

/**
 * Replays a workflow in its own session, whose outcome is `replayed`. Needs no codex, git or sandbox. Before it journals or
 * shows anything, it throws a `UserError`: exit code 2 for a missing or unplayable recording, and for anything that `strict`
 * refuses; 6 while a codemachine runs here.
 */
export async function runMock(world: World, wanted: MockRun, observer: RunObserver): Promise<EndedSession> {
  const { clock, platform, pid, signal } = world
  await using opened = new Cleanup()
  const records = await openRecords({ ...world, directory: directoryOf(world, wanted.run) })
  const { directory } = records
  const loaded = await settingsOf(world, directory, wanted.run)
  const plan = await withRecordedItems(directory, wanted.plan, signal)
  const mock = { ...wanted, plan, options: flowOptionsOf(plan, wanted.options) }
  const { settings } = loaded
  opened.use(await takeRunLock(records.lock, { platform, pid, now: new Date(clock.now()), directory }))
  const redactor = await redactorFor(world, records, loaded)
  const made = await madeScript(world, records, mock, redactor)
  const session = await openSession(world, records, mock, made, redactor)
  const work: Work = { world, records, mock, settings, redactor, made, observer, ...session }
  const state = await play(work)
  const ended = { id: state.id, outcome: outcomeOf(state), limits: state.limits, used: usedBy(state) }
  const report = await reportAtEnd({ records, id: state.id, named: null, resumable: false })
  observer.ended?.({ ...ended, waiting: 0, directory: null }, report)
  return ended
}

/** Returns the redactor of a real run; without codex's home, codex has no secrets. */
async function redactorFor(
  { env, home, clock }: World,
  { root, secrets: project }: Records,
  { settings, providers }: LoadedSettings,
): Promise<Redactor> {
  const keys = [...providers.values()].flatMap(({ keyEnv }) => keyEnv ?? [])
  try {
    const { path } = await chooseCodexHome({ setting: settings.codexHome, env, home, codemachineHome: root })
    return openRedactor({ env, codexHome: path, project, clock, keys })
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return openRedactor({ env, codexHome: null, project, clock, keys })
  }
}

interface Work {
  world: World
  records: Records
  mock: MockRun
  settings: Settings
  redactor: Redactor
  made: BuiltMock
  observer: RunObserver
  id: string
  kept: EventOf<'session-created'>['kept'] & {}
}

/** Finds all recordings, and makes the script. */
async function madeScript(
  { signal }: World,
  { directory }: Records,
  { plan, options, strict }: MockRun,
  redactor: Redactor,
): Promise<BuiltMock> {
  const found = new Map<string, FoundRecording>()
  for (const step of plan.steps) found.set(step.id, await findRecording(directory, plan, step, signal))
  const { from, writes, verbose } = options
  const redact = (text: string) => redactor.text(text)
  const made = scriptOf(plan, { from, writes, verbose, found, placeOf: keptRecording, redact })
  if ('unplayable' in made) throw notPlayable(made.unplayable)
  const [changed] = made.changed
  if (strict && changed !== undefined) {
    throw new UserError(
      'CM1005',
      `The prompt or the input has changed since ${changed} was recorded, and --strict does not allow that.`,
      {
        hint: 'Without --strict, codemachine replays the old recording. With --no-mock, the step runs for real and is recorded again.',
      },
    )
  }
  return made
}

function notPlayable([first, ...others]: readonly Unplayable[]): UserError {
  if (first === undefined) return new UserError('CM1005', 'There is nothing to replay.')
  const { step, problem } = first
  const more = others.length === 1 ? ' Nor can one more step.' : ` Nor can ${others.length} more steps.`
  return new UserError(
    'CM1005',
    `Step ${step.index} (${step.description ?? step.id}) cannot be replayed: ${problem}.${others.length === 0 ? '' : more}`,
    { hint: 'To run the step for real and record it: add --no-mock' },
  )
}

/** Creates the session's folders, and stores its script and recordings. */
async function openSession(
  { clock }: World,
  records: Records,
  { plan }: MockRun,
  { script, played }: BuiltMock,
  redactor: Redactor,
): Promise<Pick<Work, 'id' | 'kept'>> {
  const texts = (steps: BuiltMock['script']['steps']) => [
    { name: PLAN_NAME, text: JSON.stringify(plan) },
    { name: SCRIPT_NAME, text: JSON.stringify({ ...script, steps }) },
  ]
  refuseTexts(texts(script.steps), text => redactor.text(text))
  const { directory } = records
  const id = await records.nextSessionId(new Date(clock.now()))
  const folder = join(records.sessionFolder(id), 'kept')
  await mkdir(folder, { mode: 0o700 })
  for (const { step, recording } of played) {
    const text = await bytesOfRecording(directory, recording)
    if (text === null) throw new UserError('CM1005', `${recording.path} changed while codemachine read it; try again.`)
    await writeFile(join(folder, keptRecording(step)), text, { flag: 'wx', mode: 0o600 })
  }
  const steps = script.steps.map(({ recording, ...step }) => ({
    ...step,
    recording: recording === null ? null : { ...recording, path: join(folder, recording.path) },
  }))
  const kept = await openKeptTexts(records.sessionFolder(id)).keep(texts(steps))
  await mkdir(join(records.sessionFolder(id), 'rounds'), { mode: 0o700 })
  // Its report goes there.
  await makeMemoryFolderOrRefuse(directory, join(memoryRoot, 'projects', id), 'write its report there')
  return { id, kept }
}

/** Plays the session to its end; returns its last state. */
async function play(work: Work): Promise<SessionState> {
  const { world, records, redactor, observer, id } = work
  const { clock, platform, pid } = world
  await using opened = new Cleanup()
  const owner = { pid, startTime: await startTimeOf(pid, platform) }
  const live = opened.use(new LiveShare({ path: records.live, owner, redactor, clock }))
  const options = { records, views: [observer.view, live], clock, redactor }
  const begin = async (log: SessionLog) => {
    log.emit(createdOf(work))
    await log.sync()
  }
  return await playLogged(emptyState(id), options, begin, async log => {
    await runToEnd(work, log, opened)
    return log.state
  })
}

async function runToEnd(work: Work, log: SessionLog, opened: Cleanup): Promise<SessionOutcome> {
  const { world, records, settings, redactor, observer, id } = work
  const { clock } = world
  const { directory } = records
  const watchers = new Watchers(observer.hasScreen ?? false, world)
  const asked = new PersonAsked(world.signal)
  const replay = new ReplayEngine({ directory, clock, codemachineVersion: version, log: () => {} })
  const engines = new Engines({ replay }, 'replay')
  opened.defer(() => engines.close())
  const remarks = [...(work.mock.remarks ?? [])]
  const runner = new Session({
    log,
    engines,
    providers: { byName: new Map(), usual: 'codex', remoteModel: null, ask: async () => null },
    ...ROUNDS_ALONE,
    lacksRoom: () => lacksRoom(directory),
    template: await openTemplate(work, log.state, remarks),
    agents: {
      book: openAgentBook({ agents: async () => loadAgents(), directory }),
      directory,
      platform: world.platform,
      atOnce: 1,
    },
    deniedPaths: () => [],
    policy: policyOf(settings),
    ...optionsOfRecords(records, id),
    redactor,
    clock,
    takeRemarks: () => remarks.splice(0),
    canAsk: observer.canAsk,
    audience: watchers,
    asked,
    beforeEnd: async ended => {
      for (const message of await writeMessages(work, ended)) log.emit({ type: 'warning', round: null, message })
      return null
    },
  })
  const current: RunningSession = { id, runner, asked, waiting: async () => 0, limit: null }
  const ask: Parameters<typeof watchCommands>[1] = command =>
    handleCommand(command, current, watcher => watchers.watched(watcher))
  opened.use(await watchCommands(records.control, ask, clock))
  const letGo = () => {
    watchers.letGo()
    runner.attend(false)
  }
  observer.reach?.({ ask, attend: () => runner.attend(true), letGo })
  using _ = { [Symbol.dispose]: () => observer.reach?.(null) }
  return await runner.run()
}

async function openTemplate(work: Work, state: SessionState, remarks: string[]): Promise<Template> {
  const { records, id, kept } = work
  const kind = templateNamed(records.templates, state.template, 'command')
  const memory = sessionFolder({ directory: records.directory, id, records: records.sessionFolder(id) })
  return await inEffect(kind.name, 'open', () =>
    kind.open({
      directory: records.directory,
      memory,
      scopeFolder: name => scopeFolder(memory, name),
      agents: loadAgents(),
      isPlanReady: false,
      tell: remark => void remarks.push(remark),
      kept: openKeptTexts(records.sessionFolder(id)).of(kept),
    }),
  )
}

function createdOf({ mock, records, settings, kept, made }: Work): EventOf<'session-created'> {
  const { plan, options } = mock
  const ids = plan.steps.map(({ id }) => id)
  return {
    type: 'session-created',
    goal: plan.description === null ? plan.name : `${plan.name}: ${plan.description}`,
    template: 'flow',
    directory: records.directory,
    // Only its recordings limit it.
    limits: { rounds: null, timeMs: null, tokens: null },
    sandbox: settings.sandbox,
    network: settings.network,
    model: settings.model,
    effort: settings.effort,
    overrides: [],
    said: {},
    gates: [],
    options: { ...options, shown: shownCounts(made.script, ids), told: toldOf(made.script, ids) },
    kept,
    replayed: true,
    queued: null,
    host: hostname(),
    codemachine: version,
  }
}

function outcomeOf({ ended }: SessionState): SessionOutcome {
  if (ended === null) throw new Error('The session was replayed and has not ended.')
  return ended.outcome
}

/** Writes the last message of each replayed step, like a real run. Returns a sentence for each failure. */
async function writeMessages({ records, redactor, made }: Work, { last }: SessionState): Promise<ReadonlySet<string>> {
  const problems = new Set<string>()
  for (const { step, recording } of made.played.slice(0, last?.round ?? 0)) {
    const said = recording.lastMessage
    if (said !== null)
      await writeMemory(records.directory, step, redactor.text(said), problem => void problems.add(problem))
  }
  return problems
}
