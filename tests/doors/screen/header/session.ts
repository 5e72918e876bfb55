import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { Item } from '../../../../src/core/events/items.ts'
import type { LiveItem } from '../../../../src/core/events/live-board.ts'
import type { TaskBoard } from '../../../../src/core/state/plan.ts'
import { emptyState, type SessionState } from '../../../../src/core/state/state.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { fold } from '../../../support/session-events.ts'
import { local, moreSamples, recorded, sampleEvents, sampleItems } from '../samples.ts'

export const plain = openTheme({ theme: 'plain', env: {}, reader: false })
export const coloured = openTheme({ theme: 'dark', env: { COLORTERM: 'truecolor' }, reader: false })
export const forReader = openTheme({ theme: 'plain', env: {}, reader: true })

/** When the events of `stateAfter` begin: 22:41:07; Unix time, ms. */
export const BEGIN = local(20, 22, 41) + 7000
/** 22:45 on the same evening. */
export const NOW = local(20, 22, 45)

/** A session with every limit in which this has happened, a second apart. */
export function stateAfter(events: readonly SessionEvent[], created: SessionEvent = begun): SessionState {
  return recorded([created, ...events]).reduce(fold, emptyState('20261120_1'))
}

const begun: SessionEvent = {
  ...moreSamples['every limit'],
  prices: [],
  goal: 'Write a link checker\nthat is fast.',
  model: 'gpt-6',
  effort: 'high',
}

export const atWork: readonly SessionEvent[] = [
  { ...sampleEvents['round-started'], round: 4 },
  { ...sampleEvents['turn-started'], round: 4 },
  { ...sampleEvents.usage, round: 4, last: { ...sampleEvents.usage.last, total: 92_000 } },
  {
    ...sampleEvents.limits,
    primary: { usedPercent: 40, windowMinutes: 300, resetsAt: local(21, 5, 2) },
  },
]

export const board: TaskBoard = {
  title: 'linkcheck',
  tasks: Array.from({ length: 15 }, (_, i) => ({
    id: `T${i + 1}`,
    name: ['Read the page', 'Follow redirects', 'Report what is broken'][i % 3] ?? '',
    phase: i < 5 ? 'Core' : 'Report',
    done: i < 1,
  })),
  current: 'T2',
}

export const npmTest: LiveItem = liveItem({ ...sampleItems.command, status: 'running', output: '' }, NOW - 42_000)

export function liveItem(item: Item, startedAt = NOW, text = ''): LiveItem {
  return { item, startedAt, text, dropped: 0 }
}
