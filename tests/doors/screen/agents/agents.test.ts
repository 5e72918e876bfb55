import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { LiveEvent, Recorded, SessionEvent } from '../../../../src/core/events/events.ts'
import type { Reply } from '../../../../src/core/shapes/reply.ts'
import { emptyState } from '../../../../src/core/state/state.ts'
import { agentList } from '../../../../src/doors/screen/agents/agent-list.ts'
import { agentRows } from '../../../../src/doors/screen/agents/agent-rows.ts'
import type { Key } from '../../../../src/doors/screen/composer/keys.ts'
import { SessionPane } from '../../../../src/doors/screen/screen/session-pane.ts'
import type { FullView, Stage } from '../../../../src/doors/screen/view/full-view.ts'
import type { Ask } from '../../../../src/project/library.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { openJournal } from '../../../../src/session/records/journal.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { HandClock } from '../../../support/hand-clock.ts'
import { promise } from '../../../support/promise.ts'
import { fold } from '../../../support/session-events.ts'
import { commandOf, created, ends, instanceOf, leading, planned, runs, starts } from '../build/night.ts'
import { plain } from '../header/session.ts'
import { local, recorded, sampleEvents, sampleItems } from '../samples.ts'

const NOW = local(20, 22, 50)
const front = instanceOf('frontend-dev', 1)
const back = instanceOf('backend-dev', 2)
const at = (instance: string) => ({ round: 2, instance })
const atWork = [...planned, ...leading, starts('frontend-dev', 1, 'T2'), starts('backend-dev', 2, 'T4', 'T5')]
const usage = (thread: string, total: number, instance?: string): SessionEvent => {
  const counts = { ...sampleEvents.usage.total, total }
  return { ...sampleEvents.usage, round: 2, thread, total: counts, ...(instance === undefined ? {} : { instance }) }
}
const says = (text: string, instance: string, item = 'm1'): LiveEvent => {
  return { type: 'text-delta', item, source: 'agent-message', text, ...at(instance) }
}
const ran = (command: string, output: string, instance: string, id = 'c1'): SessionEvent => ({
  type: 'item-completed',
  item: { ...commandOf(command, id), status: 'completed', exitCode: 0, durationMs: 3000, output },
  ...at(instance),
})

/** A session that is shown and journaled, and the list of its agents on a stage. */
async function openAgents({ answer = { code: 'done', message: 'It reads it.' } as Reply } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'agents-'))
  const path = join(folder, 'journal.ndjson')
  const journal = openJournal(path)
  onTestFinished(async () => {
    await journal[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })
  const pane = new SessionPane({
    theme: () => plain,
    motion: 'reduced',
    columns: () => 80,
    redact: text => text.replaceAll('hunter2', '[secret]'),
    print: () => {},
  })
  let state = emptyState('20261120_1')
  const happened: SessionEvent[] = []
  const happens = (...events: SessionEvent[]) => {
    happened.push(...events)
    for (const event of recorded(happened).slice(-events.length) as Recorded[]) {
      journal.append(event)
      state = fold(state, event)
      pane.event(event, state)
    }
  }
  const asked: Ask[] = []
  const copied: string[] = []
  const clock = Object.assign(new HandClock(), { now: () => NOW })
  const views: { view: FullView; detach: () => void }[] = []
  const started: Promise<void>[] = []
  const stage: Stage = {
    open: view => void views.push({ view, detach: view.attach?.(stage) ?? (() => {}) }),
    close: () => views.pop()?.detach(),
    leaveFor: () => {},
    changed: () => {},
    lend: async () => {},
    start: action => void started.push(action),
    copy: text => copied.push(text) > 0,
  }
  const list = agentList({
    pane,
    theme: plain,
    keymap: new Keymap(),
    clock,
    isWatching: false,
    columns: () => 80,
    journal: () => path,
    ask: async ask => {
      asked.push(ask)
      return answer
    },
    remember: () => {},
    onFailure: error => {
      throw error
    },
  })
  happens(created, ...atWork)
  stage.open(list)
  onTestFinished(() => {
    while (views.length > 0) stage.close()
  })
  const press = (...keys: string[]) => {
    for (const key of keys) views.at(-1)?.view.press(keyOf(key), stage)
  }
  return {
    happens,
    live: (event: LiveEvent) => pane.live(event, NOW - 12_000),
    press,
    paste: (text: string) => views.at(-1)?.view.paste?.(text),
    lines: (columns = 80, rows = 12) => {
      const shown = views.at(-1)?.view.frame({ columns, rows }).lines ?? []
      expect(shown).toHaveLength(rows)
      for (const line of shown) expect(widthOf(line)).toBeLessThanOrEqual(columns)
      return shown.map(line => line.trimEnd())
    },
    depth: () => views.length,
    settled: async () => void (await Promise.all(started)),
    asked,
    copied,
  }
}

function keyOf(key: string): Key {
  const isName = ['return', 'escape', 'up', 'down', 'left', 'backspace', 'pageup'].includes(key)
  const base = { input: isName ? '' : key, name: isName ? key : null, ctrl: false, meta: false, shift: false }
  return base as unknown as Key
}

test('the agents of a round are the leader, those at work for it, and those that have ended, each with its time and tokens', () => {
  const events = [created, ...atWork, usage('t-main', 90_000), usage('t-front', 1500, front), ends('backend-dev', 2)]
  const state = recorded(events as SessionEvent[]).reduce(fold, emptyState('20261120_1'))
  const rows = agentRows(state, [], NOW)
  expect(rows.map(({ name, tasks, standing, tokens }) => [name, tasks, standing, tokens])).toEqual([
    ['main agent', '', 'main', 90_000 - (sampleEvents['agent-ended'].tokens?.total ?? 0)],
    ['frontend-dev', 'T2', 'at-work', 1500],
    ['backend-dev', 'T4, T5', 'completed', sampleEvents['agent-ended'].tokens?.total ?? null],
  ])
})

promise('O80')
test('the list says who is at work on what, since when and with how many tokens, and Enter looks into one', async () => {
  const { live, lines, press, depth, happens } = await openAgents()
  happens(usage('t-front', 45_200, front))
  live(runs('frontend-dev', 1, 'npm test'))
  expect(lines(80, 8)).toEqual([
    'Agents, 2 at work · 3 agents',
    expect.stringMatching(/^ {2}Agent {9}Tasks {3}Does .* Time {2}Tokens$/),
    expect.stringMatching(/^› main agent {12}2 agents at work .*–$/),
    expect.stringMatching(/^ {2}frontend-dev {2}T2 {6}running npm test 0:12 .* 45\.2k$/),
    expect.stringMatching(/^ {2}backend-dev {3}T4, T5 {2}thinking .*–$/),
    '',
    '',
    expect.stringMatching(/^Enter open · q back · t tell it · \/ find/),
  ])
  press('down', 'return')
  expect(depth()).toBe(2)
  expect(lines()[0]).toMatch(/^● frontend-dev {2}T2 {2}\d+:\d\d · 45\.2k tokens · running npm test 0:12$/)
  press('escape')
  expect(depth()).toBe(1)
})

promise('O80')
test('inside an agent are its commands with their output, its live words without a secret, and its end, at which the view stays', async () => {
  const { happens, live, lines, press } = await openAgents()
  happens(ran('ls src', 'app.ts\nlist.ts\n', front), ran('make', 'of the other one', back))
  press('down', 'return')
  live(says('The key is hunter2, and the list ', front))
  live(says('is made.', front))
  live(says('I am another one.', back))
  await expect.poll(() => lines(80, 16).join('\n')).toContain('$ ls src')
  const shown = lines(80, 16).join('\n')
  expect(shown).toContain('$ ls src  ✔ exit 0, 3.0 s')
  expect(shown).toContain('list.ts')
  expect(shown).toContain('The key is [secret], and the list is made.')
  expect(shown).not.toMatch(/other one|another one|hunter2/)
  happens(
    {
      type: 'item-completed',
      item: { ...sampleItems['agent-message'], id: 'm1', text: 'The list is made.' } as never,
      ...at(front),
    },
    ends('frontend-dev', 1, 'All of it is done.'),
  )
  await expect.poll(() => lines(80, 16).join('\n')).toContain('All of it is done.')
  const after = lines(80, 16)
  expect(after[0]).toMatch(/^✔ frontend-dev {2}T2 {2}3m12s · .* · completed$/)
  expect(after.join('\n')).toContain('All of it is done.')
  happens({ ...sampleEvents['round-ended'], round: 2 })
  expect(lines(80, 16)[0]).toMatch(/^– frontend-dev {2}T2 {2}.* · completed$/)
})

test('of agents at work the main agent tells that they were started, and no calls that run', async () => {
  const { live, lines, press } = await openAgents()
  press('return')
  const call = (id: string, tool: string): LiveEvent => ({
    type: 'item-started',
    round: 2,
    item: { kind: 'tool-call', id, tool, status: 'running', durationMs: null },
  })
  live(call('c1', 'run_agent'))
  live(call('c2', 'run_agent'))
  live(call('c3', 'look_up'))
  const shown = lines(80, 20).join('\n')
  expect(shown).not.toContain('run_agent')
  expect(shown).toMatch(/^tool look_up {2}0:12$/m)
})

test('what was done before it was opened, and while the journal was read, is there once', async () => {
  const { happens, lines, press } = await openAgents()
  happens(ran('first', '', front, 'c1'))
  press('down', 'return')
  happens(ran('second', '', front, 'c2'))
  await expect.poll(() => lines(80, 20).filter(line => /\$ (first|second)/.test(line)).length).toBe(2)
})

test('it is told something in a line, and ended once that is confirmed; what was not taken stays in the line', async () => {
  const { press, paste, lines, asked, settled } = await openAgents()
  press('down', 't', ...'use tabs')
  expect(lines().at(-1)).toMatch(/^Tell frontend-dev: use tabs/)
  paste('\nand no \x1b[31mcolours')
  press('return')
  await settled()
  expect(asked).toEqual([{ type: 'steer-agent', agent: front, text: 'use tabs\nand no \x1b[31mcolours' }])
  expect(lines().at(-1)).toBe('It reads it.')
  press('s')
  expect(lines().at(-1)).toBe('Stop frontend-dev? The round continues. Enter stops it · Esc goes back')
  press('escape')
  expect(asked).toHaveLength(1)
  press('s', 'return')
  await settled()
  expect(asked.at(-1)).toEqual({ type: 'stop-agent', agent: front })

  const refusing = await openAgents({ answer: { code: 'not-heard', message: 'It does not hear.' } as Reply })
  refusing.press('down', 't', ...'hm', 'return')
  await refusing.settled()
  expect(refusing.lines().at(-1)).toBe('It does not hear.')
  refusing.press('!')
  expect(refusing.lines().at(-1)).toMatch(/^Tell frontend-dev: hm!/)
})

test('one that ends while a text for it is typed: that is said, the text stays, and Enter tells the main agent', async () => {
  const { press, happens, lines, asked, settled } = await openAgents()
  press('down', 'return', 't', ...'use tabs')
  happens(ends('frontend-dev', 1))
  expect(lines().at(-1)).toMatch(/^Tell frontend-dev: use tabs {3}frontend-dev has ended · Esc goes back$/)
  const offer = 'frontend-dev has ended; Enter tells the main agent instead · Esc leaves'
  press('return')
  expect(lines().at(-1)).toBe(offer)
  expect(lines(40).at(-1)).toBe('Enter: main agent · Esc leaves')
  press('q')
  expect(lines().at(-1)).toMatch(/q back$/)
  press('t')
  expect(lines().at(-1)).toBe(offer)
  press('return')
  await settled()
  expect(asked).toEqual([{ type: 'steer', text: 'use tabs' }])
  expect(lines().at(-1)).toBe('It reads it.')

  const raced = await openAgents({ answer: { code: 'agent-ended', message: 'It has ended.' } as Reply })
  raced.press('down', 't', ...'hm', 'return')
  await raced.settled()
  expect(raced.lines().at(-1)).toBe(offer)

  const over = await openAgents()
  over.press('down', 't', ...'hm')
  over.happens(sampleEvents['session-ended'])
  over.press('return')
  expect(over.lines().at(-1)).toBe('Its session has ended; in the field, ↑ brings back what you typed')
  expect(over.asked).toEqual([])
  over.press('escape', 'q')
  expect(over.depth()).toBe(0)
})

test('what is offered for an agent is what reaches it: one that has ended is neither told anything nor stopped', async () => {
  const { press, happens, lines } = await openAgents()
  happens(ends('backend-dev', 2))
  expect(lines().at(-1)).toMatch(/t tell it · \/ find/)
  press('down')
  expect(lines().at(-1)).toContain('t tell it · s stop it')
  press('down')
  expect(lines().at(-1)).not.toMatch(/tell it|stop it/)
})

test('one that has ended can be told nothing, and the leader is not stopped by that key', async () => {
  const { press, happens, lines, asked } = await openAgents()
  press('down', 'return')
  happens(ends('frontend-dev', 1))
  press('t')
  expect(lines().at(-1)).toBe('frontend-dev has ended')
  press('escape', 'up', 'up', 's')
  expect(lines().at(-1)).toMatch(/^The main agent ends with its round\. \/stop/)
  expect(asked).toEqual([])
})

test('where one agent works alone, the list has that one, and it is shown from the start of its round on', async () => {
  const { happens, lines, press } = await openAgents()
  happens(
    ends('frontend-dev', 1),
    ends('backend-dev', 2),
    { ...sampleEvents['round-ended'], round: 2 },
    { ...sampleEvents['round-started'], round: 3, input: 'The third round.' },
  )
  expect(lines(80, 8)[2]).toMatch(/^› main agent/)
  expect(lines(80, 8)[3]).toBe('')
  press('return')
  await expect.poll(() => lines(80, 30).join('\n')).toContain('The third round.')
  expect(lines(80, 30).join('\n')).not.toContain('frontend-dev')
})

test('list and agent fit every terminal, and the name is copied', async () => {
  const { live, lines, press, copied } = await openAgents()
  live(says('word '.repeat(500), front))
  for (const [columns, rows] of [
    [20, 5],
    [40, 10],
    [200, 50],
    [8, 3],
  ] as const)
    lines(columns, rows)
  press('down', 'y', 'return')
  expect(copied).toEqual([front])
  for (let rows = 2; rows < 30; rows += 1) lines(20 + rows, rows)
})
