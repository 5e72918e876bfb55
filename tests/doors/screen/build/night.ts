import type { EventOf, LiveEvent, SessionEvent } from '../../../../src/core/events/events.ts'
import type { Item } from '../../../../src/core/events/items.ts'
import { emptyState, type SessionState } from '../../../../src/core/state/state.ts'
import { fold } from '../../../support/session-events.ts'
import { local, moreSamples, recorded, sampleEvents } from '../samples.ts'

/** A build of eight tasks in four phases, just created. */
export const created: SessionEvent = { ...moreSamples['a build'], goal: 'A shop for tea.' }

const NAMES = [
  'Choose the stack',
  'Create homepage component',
  'Create the cart',
  'Write the API',
  'Store the orders',
  'Test the cart',
  'Measure the start',
  'Say how it is run',
]
const PHASES = ['Planning', 'Building', 'Building', 'Building', 'Building', 'Testing', 'Testing', 'Runtime']

export const tasks = NAMES.map((name, i) => ({ id: `T${i + 1}`, name, phase: PHASES[i] ?? '' }))

/** The plan is made. */
export const planned: readonly SessionEvent[] = [
  { ...moreSamples['round of a build'], round: 1 },
  { ...sampleEvents['round-ended'], round: 1, tasks: { done: 0, total: 8 } },
  { ...sampleEvents['plan-ready'], round: 1, tasks },
]

/** What a person is asked about it. */
export const planAsked: SessionEvent = {
  type: 'decision-asked',
  id: 'plan',
  title: 'The plan has 8 tasks. Start the build?',
  body: '',
  choices: [
    { id: 'accept', label: 'Start the build' },
    { id: 'change', label: 'Change the plan', text: 'must' },
    { id: 'stop', label: 'Stop', hint: 'codemachine resume continues from here' },
  ],
  default: null,
  until: new Date(local(21, 22, 41)).toISOString(),
}

export const planAccepted: SessionEvent = {
  type: 'decision-made',
  id: 'plan',
  choice: 'accept',
  text: null,
  by: 'person',
}

/** The plan waits for the person. */
export const shown: readonly SessionEvent[] = [...planned, planAsked]

/** The leader of the team is at work. */
export const leading: readonly SessionEvent[] = [
  { ...sampleEvents['round-started'], round: 2, agent: 'master-mind', part: 'orchestration' },
  { ...sampleEvents['turn-started'], round: 2 },
]

/** An agent that was given tasks; the number makes its instance its own. */
export function starts(agent: string, number: number, ...about: string[]): SessionEvent {
  return {
    ...sampleEvents['agent-started'],
    agent,
    instance: instanceOf(agent, number),
    tasks: about,
    request: `${about.join(', ')}: Do it.`,
    paths: null,
    model: null,
    effort: null,
  }
}

export function ends(agent: string, number: number, result = 'It is done.'): SessionEvent {
  return { ...sampleEvents['agent-ended'], instance: instanceOf(agent, number), result }
}

export function judged(
  task: string,
  verdict: EventOf<'task-judged'>['verdict'],
  detail: string | null = null,
): SessionEvent {
  return { ...sampleEvents['task-judged'], task, name: NAMES[Number(task.slice(1)) - 1] ?? '', verdict, detail }
}

export function instanceOf(agent: string, number: number): string {
  return `${agent}-20261120T22410800${number}`
}

export function commandOf(command: string, id = 'c1'): Extract<Item, { kind: 'command' }> {
  return {
    kind: 'command',
    id,
    command,
    directory: '/work',
    status: 'running',
    exitCode: null,
    durationMs: null,
    output: '',
  }
}

/** An agent runs a command. */
export function runs(agent: string, number: number, command: string): LiveEvent {
  return { type: 'item-started', round: 2, item: commandOf(command), instance: instanceOf(agent, number) }
}

/** A build in which this has happened, a second apart from 22:41:07 on. */
export function stateAfter(...events: readonly SessionEvent[]): SessionState {
  return recorded([created, ...events]).reduce(fold, emptyState('20261120_1'))
}
