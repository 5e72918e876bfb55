import { expect, test } from 'vitest'
import { LiveBoard } from '../../../../src/core/events/live-board.ts'
import { agentLines, workLines } from '../../../../src/doors/screen/live.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { coloured, forReader, plain } from '../header/session.ts'
import { local } from '../samples.ts'
import { ends, instanceOf, leading, planned, runs, starts, stateAfter } from './night.ts'

const NOW = local(20, 22, 50)
const three = [starts('frontend-dev', 1, 'T2'), starts('backend-dev', 2, 'T4', 'T5'), starts('qa-engineer', 3)]

/** What is drawn of the agents of a build; the first one runs a command, for 12 seconds now. */
function drawn(columns: number, rows = 9, { agents = three, theme = plain } = {}): string[] {
  const state = stateAfter(...planned, ...leading, ...agents)
  const live = new LiveBoard()
  live.live(runs('frontend-dev', 1, 'npm test'), NOW - 12_000)
  return agentLines(state.agents, live.items, { columns, rows, theme, now: NOW })
}

test('each agent at work has a line: who, on which tasks, and what it does since when', () => {
  expect(drawn(60)).toEqual([
    '● frontend-dev  T2      running npm test 0:12',
    '● backend-dev   T4, T5  thinking',
    '● qa-engineer           thinking',
  ])
})

test('where there is room, two stand side by side', () => {
  expect(drawn(100)).toEqual([
    '● frontend-dev  T2      running npm test 0:12      ● backend-dev   T4, T5  thinking',
    '● qa-engineer           thinking',
  ])
})

test('on a narrow terminal what it does is cut, and its time is not', () => {
  expect(drawn(34)[0]).toBe('● frontend-dev T2  running n… 0:12')
  expect(drawn(20)[0]).toBe('● frontend-dev T2')
})

test('more than there is room for are counted', () => {
  const ten = Array.from({ length: 10 }, (_, i) => starts('frontend-dev', i + 1, `T${i}`))
  expect(drawn(60, 20, { agents: ten })).toHaveLength(6)
  expect(drawn(60, 20, { agents: ten }).at(-1)).toBe('+5 more')
  expect(drawn(120, 20, { agents: ten })).toHaveLength(5)
  expect(drawn(60, 1)).toEqual(['3 agents at work'])
  expect(drawn(60, 0)).toEqual([])
})

test('the line that counts them names the key that leads to them', () => {
  const state = stateAfter(...planned, ...leading, ...three)
  const lines = (rows: number) =>
    agentLines(state.agents, [], { columns: 40, rows, theme: plain, now: NOW, agentsKey: 'Alt+A' })
  expect(lines(2).at(-1)).toBe('+2 more · Alt+A')
  expect(lines(1)).toEqual(['3 agents at work · Alt+A'])
})

test('what the agent says that began to speak last stands behind its name, above those at work', () => {
  const state = stateAfter(...planned, ...leading, ...three)
  const live = new LiveBoard()
  const says = (agent: string, number: number, text: string) =>
    live.live(
      {
        type: 'text-delta',
        round: 2,
        item: 'm1',
        source: 'agent-message',
        text,
        instance: instanceOf(agent, number),
      },
      NOW,
    )
  says('frontend-dev', 1, 'I write the page.')
  says('backend-dev', 2, 'I store the orders, each in a row of its own, ')
  says('frontend-dev', 1, ' Now the styles.')
  const lines = (rows: number, columns = 40) =>
    workLines(state, live.items, { columns, rows, theme: plain, now: NOW }).map(line => line.trimEnd())
  expect(lines(12)).toEqual([
    'backend-dev  ◆ I store the orders, each',
    '               in a row of its own,',
    '● frontend-dev T2  writing',
    '● backend-dev T4, T5  writing',
    '● qa-engineer  thinking',
  ])
  expect(lines(4)).toEqual([
    'backend-dev    in a row of its own,',
    '● frontend-dev T2  writing',
    '● backend-dev T4, T5  writing',
    '● qa-engineer  thinking',
  ])
  expect(lines(3)).toHaveLength(3)
  expect(lines(3)[0]).toMatch(/^●/)
})

test('no line is wider than the terminal, whatever it looks like', () => {
  for (let columns = 2; columns < 130; columns += 1) {
    for (const theme of [plain, coloured, forReader]) {
      expect(drawn(columns, 9, { agents: three, theme }).filter(line => widthOf(line) > columns)).toEqual([])
    }
  }
})

test('what an agent was at when it ended is gone, and what another one does under the same id stays', () => {
  const live = new LiveBoard()
  live.live(runs('frontend-dev', 1, 'npm test'), NOW)
  live.live(runs('qa-engineer', 3, 'npm run lint'), NOW)
  const [event] = [ends('frontend-dev', 1)]
  if (event !== undefined) live.event({ v: 1, at: new Date(NOW).toISOString(), session: 's', ...event } as never)
  live.live({ type: 'output-delta', round: 2, item: 'c1', text: 'late', instance: instanceOf('frontend-dev', 1) }, NOW)
  expect(live.items.map(({ instance }) => instance)).toEqual([instanceOf('qa-engineer', 3)])
})
