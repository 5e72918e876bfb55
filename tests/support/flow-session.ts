import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Recorded } from '../../src/core/events/events.ts'
import { fold } from '../../src/core/state/fold.ts'
import { emptyState } from '../../src/core/state/state.ts'
import type { Template } from '../../src/core/template.ts'
import {
  type FlowOptions,
  type FlowPlan,
  type FlowStep,
  filesOf,
  flowOptionsOf,
  PLAN_NAME,
} from '../../src/modes/flow/file/plan.ts'
import { flowKind } from '../../src/modes/flow/flow.ts'
import { lookOf } from '../../src/modes/flow/next.ts'
import type { FlowWork } from '../../src/modes/flow/work.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import { NO_AGENTS, type Play, type PlayOptions, playSession, type Ran } from './played-session.ts'
import { SESSION } from './session-events.ts'

/** A step, of which all that is not said is as a file has it that says nothing of it. */
export type SaidStep = Partial<Omit<FlowStep, 'work'>> & { id: string; run?: string; work?: Partial<FlowStep['work']> }

/** A workflow of these steps. */
export function planOf(steps: readonly SaidStep[], values: Readonly<Record<string, string>> = {}): FlowPlan {
  return {
    v: 1,
    file: '.codex-flow/workflows/three.workflow.toml',
    name: 'three',
    description: null,
    steps: steps.map(
      ({ run, work, ...said }, at): FlowStep => ({
        index: at + 1,
        stem: said.id,
        description: null,
        verify: [],
        retries: 0,
        approve: false,
        timeoutMs: null,
        when: null,
        readOnly: false,
        output: { kind: 'stdout' },
        work:
          run === undefined
            ? ({
                kind: 'agent',
                agent: 'writer',
                engine: 'codex',
                model: null,
                args: [],
                prompt: { path: 'p.md', found: 'p.md', text: 'You write.' },
                input: [],
                schema: null,
                rounds: 10,
                ...work,
              } as FlowStep['work'])
            : { kind: 'command', run },
        ...said,
      }),
    ),
    values: Object.fromEntries(Object.entries(values).map(([name, text]) => [name, { text, from: 'given' }])),
    sources: [],
  }
}

/** How a test runs a workflow: as a real run does, where nothing else is said. */
function optionsOf(plan: FlowPlan, said: Partial<FlowOptions> = {}): FlowOptions {
  return {
    ...flowOptionsOf(plan, {
      mode: 'real',
      from: null,
      carried: [],
      continueOnError: false,
      writes: false,
      pace: 0,
      verbose: false,
    }),
    ...said,
  }
}

/** The template of that workflow, for a session whose work directory is the folder. */
async function openFlowOf(
  plan: FlowPlan,
  folder: string,
  kept: Readonly<Record<string, string>> = {},
): Promise<Template> {
  const memory = (name: string) => ({
    main: join(folder, name, 'MAIN.md'),
    tasks: join(folder, name, 'tasks.json'),
    kb: join(folder, 'kb'),
  })
  const texts: Readonly<Record<string, string>> = { [PLAN_NAME]: JSON.stringify(plan), ...kept }
  return await flowKind.open({
    directory: folder,
    memory: memory('session'),
    scopeFolder: name => memory(`steps/${name}`),
    agents: NO_AGENTS,
    isPlanReady: false,
    tell: () => {},
    kept: { read: async name => texts[name] ?? '', has: name => Object.hasOwn(texts, name), path: name => name },
  })
}

/** Plays a session of a workflow in a folder. */
export async function playFlow(
  plan: FlowPlan,
  plays: readonly Play[],
  { folder, flow, ...options }: Partial<PlayOptions> & { folder: string; flow?: Partial<FlowOptions> },
): Promise<Ran> {
  const { begun, ...others } = options
  const opened = await openFlowOf(plan, folder)
  // The clock of a played session runs on while a file is waited for.
  const looks = plan.steps.flatMap(step =>
    filesOf(step)
      .filter(({ append }) => append)
      .map(({ path: file }, at) => {
        const path = join(folder, file)
        return [lookOf(step, at), async () => (existsSync(path) ? hashOf(readFileSync(path)) : null)] as const
      }),
  )
  return await playSession(plays, {
    folder,
    template: { ...opened, looks: Object.fromEntries(looks) },
    limits: { rounds: 99 },
    begun: { template: 'flow', options: optionsOf(plan, flow), ...begun },
    ...others,
  })
}

function hashOf(bytes: Buffer): { bytes: number; sha256: string } {
  return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

/** What a workflow has kept after these events. */
export function workAfter(events: readonly Recorded[]): FlowWork {
  return events.reduce((state, event) => fold(state, event, OWN_TEMPLATES), emptyState(SESSION)).work as FlowWork
}
