import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Recorded } from '../../src/core/events/events.ts'
import type { ContextFacts } from '../../src/core/shapes/context.ts'
import type { Reply } from '../../src/core/shapes/reply.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState, type SessionState } from '../../src/core/state/state.ts'
import { NO_KEPT_TEXTS, type Template } from '../../src/core/template.ts'
import { changeKind } from '../../src/modes/change/change.ts'
import { editedPlan } from '../../src/modes/change/effects.ts'
import type { Plan } from '../../src/modes/change/plan.ts'
import { fileOf, LOOKS, lastVersion } from '../../src/modes/change/states/planning.ts'
import { type ChangeOptions, type ChangeWork, type StateName, workOf } from '../../src/modes/change/work.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { handleCommand } from '../../src/project/commands/commands.ts'
import type { Ask } from '../../src/project/library.ts'
import { NO_AGENTS, ofType, type Play, type PlayOptions, playSession, type Ran, saying } from './played-session.ts'
import { SESSION } from './session-events.ts'

/** How a test plays a change. */
export interface ChangePlay extends Partial<PlayOptions> {
  /** The work directory. */
  folder: string
  request?: string
  change?: Partial<ChangeOptions>
  /** What a person answers to its decisions, one after the other: a choice, and what they say with it. None after the last. */
  says?: readonly (readonly [choice: string, text?: string])[]
  /** What its look at the project finds. */
  facts?: Partial<ContextFacts>
  /** Looks in the place of those that are played here, or beside them. */
  looks?: Template['looks']
}

/** A plan of which a test says what matters to it. */
export function planOf(said: Partial<Plan> = {}): Plan {
  return {
    description: 'Count the requests of each client.',
    files: [{ path: 'api.js', change: 'counts requests' }],
    risks: ['none'],
    verification: [{ run: 'node --test', why: 'its tests pass' }],
    questions: [],
    ...said,
  }
}

/** A round whose agent ends with that value as its answer, after `doing` something. */
export function answering(value: unknown, doing?: () => Promise<void>): Play {
  return saying(typeof value === 'string' ? value : JSON.stringify(value), doing)
}

/** Plays a session of a change in a folder, whose git and models are played: what it looks at is read at once. */
export async function playChange(plays: readonly Play[], options: ChangePlay): Promise<Ran> {
  const { folder, request = 'limit the rate of requests', change, says = [], facts, looks, begun, onEvent } = options
  const left = [...says]
  const template = await openChangeIn(folder)
  return await playSession(plays, {
    limits: { rounds: 99 },
    ...options,
    template: { ...template, looks: { ...playedLooks(folder, facts), ...looks } },
    begun: { template: 'change', goal: request, options: optionsOf(change), ...begun },
    onEvent(event, playing) {
      const next = event.type === 'decision-asked' ? left.shift() : undefined
      if (next !== undefined) playing.runner.decide(next[0], next[1] ?? null)
      onEvent?.(event, playing)
    },
  })
}

/** Asks something of a session as a person does from another terminal; `playing`: what `onEvent` is told. */
export async function askIn(playing: Parameters<NonNullable<PlayOptions['onEvent']>>[1], ask: Ask): Promise<Reply> {
  const session = { id: SESSION, runner: playing.runner, asked: playing.asked, waiting: async () => 0, limit: null }
  return await handleCommand({ ...ask, at: new Date(0).toISOString() }, session, () => {})
}

function optionsOf(said: Partial<ChangeOptions> = {}): ChangeOptions {
  return {
    review: 'manual',
    planOnly: false,
    fixAttempts: 5,
    executor: null,
    planner: { model: null, effort: null },
    ...said,
  }
}

/**
 * A person who has the plan changed once, in this state, at its first event of those that are `on`; left out: as it is
 * entered. `go`: the changed plan is not shown.
 */
export function breakingIn(
  state: StateName,
  text: string,
  {
    go = false,
    on = type => type === 'state-entered',
  }: { go?: boolean; on?: (type: Recorded['type']) => boolean } = {},
): NonNullable<PlayOptions['onEvent']> {
  let isSaid = false
  return (event, { runner, events }) => {
    if (isSaid || !on(event.type) || statesIn(events).at(-1) !== state) return
    isSaid = true
    queueMicrotask(() => {
      runner.tell({ type: 'replan-asked', text, ...(go ? { goesOn: true as const } : {}) })
      runner.interrupt()
    })
  }
}

/** The states that it went through, in their order. */
export function statesIn(events: readonly Recorded[]): string[] {
  return ofType(events, 'state-entered').map(({ state }) => state)
}

/** The session after these events. */
export function sessionAfter(events: readonly Recorded[]): SessionState {
  return events.reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState(SESSION))
}

/** What a change has kept after these events. */
export function changeAfter(events: readonly Recorded[]): ChangeWork {
  return workOf(sessionAfter(events))
}

/** The template as it is carried out in that folder. */
export async function openChangeIn(folder: string): Promise<Template> {
  const memory = {
    main: join(folder, SESSION_FOLDER, 'MAIN.md'),
    tasks: join(folder, SESSION_FOLDER, 'tasks.json'),
    kb: join(folder, '.codemachine/kb'),
  }
  return await changeKind.open({
    directory: folder,
    memory,
    scopeFolder: () => memory,
    agents: NO_AGENTS,
    isPlanReady: false,
    tell: () => {},
    kept: NO_KEPT_TEXTS,
  })
}

/** The folder of the session, in the work directory. */
export const SESSION_FOLDER = `.codemachine/projects/${SESSION}`

/** Looks that wait for nothing: the clock of a played session would run on meanwhile. */
function playedLooks(folder: string, facts: Partial<ContextFacts> = {}): NonNullable<Template['looks']> {
  return {
    [LOOKS.context]: async () => ({
      text: '# The project\n\nA web server.\n',
      facts: {
        branch: 'main',
        dirty: 0,
        entries: 1,
        manifests: [],
        rules: [],
        commands: [
          { run: 'npm test', kind: 'test', from: 'package.json' },
          { run: 'node --test', kind: 'test', from: 'README.md' },
        ],
        mentioned: [],
        notes: [],
        ...facts,
      },
    }),
    [LOOKS.files]: async (_, session) => {
      const { planning } = workOf(session)
      const { files } = planning.draft?.plan ?? lastVersion(planning).plan
      return Object.fromEntries(files.map(({ path }) => [path, hashOf(join(folder, path))]))
    },
    [LOOKS.edited]: async (_, session) => {
      const file = join(folder, SESSION_FOLDER, fileOf(lastVersion(workOf(session).planning)))
      return existsSync(file) ? editedPlan(readFileSync(file, 'utf8')) : { problem: 'It is gone.' }
    },
  }
}

function hashOf(path: string): string | null {
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : null
}
