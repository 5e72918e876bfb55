import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../../src/base/clock.ts'
import type { LiveEvent, Recorded, SessionEvent } from '../../../../src/core/events/events.ts'
import { emptyState } from '../../../../src/core/state/state.ts'
import { drawScreen } from '../../../../src/doors/screen/screen/frame.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { fold } from '../../../support/session-events.ts'
import { forReader, plain } from '../header/session.ts'
import { moreSamples, recorded, sampleEvents } from '../samples.ts'
import { commandOf, created, ends, instanceOf, judged, leading, planned, runs, shown, starts } from './night.ts'

/** The screen of a build in which this has happened, and then passes by; a minute later. */
function screen(
  happened: readonly SessionEvent[],
  live: readonly LiveEvent[] = [],
  { columns = 90, rows = 24, reader = false } = {},
) {
  const model = new ScreenModel({
    theme: reader ? forReader : plain,
    clock: systemClock,
    motion: 'reduced',
    keymap: new Keymap(undefined, 'queue'),
    isWatching: false,
    size: () => ({ columns, rows }),
    redact: text => text,
    searchFiles: async () => [],
    onChange: () => {},
  })
  model.showsSession = true
  let state = emptyState('20261120_1')
  let at = 0
  const happens = (event: Recorded) => {
    state = fold(state, event)
    at = Date.parse(event.at)
    model.pane.event(event, state)
  }
  for (const event of recorded([created, ...happened])) happens(event)
  for (const event of live) model.pane.live(event, at)
  model.pane.step(at + 50)
  const printed = model.scrollback.take().split('\n')
  return { lines: drawScreen(model, at + 60_000).lines.map(line => line.trimEnd()), printed, model }
}

const atWork = [...planned, ...leading, starts('frontend-dev', 1, 'T2'), starts('qa-engineer', 2, 'T6')]
const says = (text: string, instance?: string): LiveEvent => ({
  type: 'text-delta',
  round: 2,
  item: 'm1',
  source: 'agent-message',
  text,
  ...(instance === undefined ? {} : { instance }),
})

describe('during a build', () => {
  test('task, phase, time, who works on what, what is said and the keys are there', () => {
    const { lines } = screen(atWork, [says('Two of them work at once.'), runs('frontend-dev', 1, 'npm test')])
    expect(lines).toEqual([
      '',
      '◆ Two of them work at once.',
      '● frontend-dev  T2  running npm test 1:00',
      '● qa-engineer   T6  thinking',
      '',
      'running · Create homepage component · 0 of 8 tasks · round 2 of 20 · 1:07 · 0 tokens',
      '─'.repeat(90),
      '›',
      '─'.repeat(90),
      'Esc interrupts · Ctrl+C plan · ? keys · Ctrl+E log · Ctrl+X all commands · Ctrl+T tasks',
    ])
  })

  test('while its leader only waits for them, nobody calls anything', () => {
    const delegates: LiveEvent = {
      type: 'item-started',
      round: 2,
      item: { kind: 'tool-call', id: 'x', tool: 'run_agent', status: 'running', durationMs: null },
    }
    const { lines } = screen(atWork, [delegates])
    expect(lines.join('\n')).not.toContain('run_agent')
    expect(lines).toContainEqual(expect.stringMatching(/^running · /))
  })

  test('40 columns and 10 rows are enough', () => {
    const { lines } = screen(atWork, [says('Two of them.'), runs('frontend-dev', 1, 'npm test')], {
      columns: 40,
      rows: 10,
    })
    expect(lines).toEqual([
      '',
      '◆ Two of them.',
      '● frontend-dev T2  running npm test 1:00',
      '● qa-engineer T6  thinking',
      'running · Create homepag… · 0 of 8 tasks',
      '─'.repeat(40),
      '›',
      '─'.repeat(40),
    ])
  })

  test('in 40 columns what somebody does changes, and how the rest is said does not', () => {
    const header = (command: string) => {
      const { lines } = screen(atWork, [{ type: 'item-started', round: 2, item: commandOf(command) }], {
        columns: 40,
        rows: 10,
      })
      return lines.find(line => line.startsWith('running'))
    }
    expect(header('cat docs/*.md && npm run lint')).toBe(header('ls'))
  })

  test('between the end of an agent and what its leader says next nobody calls anything', () => {
    const call: LiveEvent = {
      type: 'item-started',
      round: 2,
      item: { kind: 'tool-call', id: 'x', tool: 'run_agent', status: 'running', durationMs: null },
    }
    const { lines } = screen([...planned, ...leading, starts('frontend-dev', 1, 'T2'), ends('frontend-dev', 1)], [call])
    expect(lines.join('\n')).not.toContain('run_agent')
    expect(lines).toContainEqual(expect.stringMatching(/^running · /))
  })

  test('a summary and a change of plan have no number, for the next round takes it', () => {
    const starts = sampleEvents['round-started']
    const ends = { ...sampleEvents['round-ended'], counts: false }
    const { printed } = screen([
      ...planned,
      { ...starts, agent: 'project-summarizer', part: 'summary' },
      ends,
      { type: 'replan-asked', text: 'Leave out the cart.' },
      { ...starts, agent: 'master-mind' },
      ends,
      { ...sampleEvents.replanned, files: [] },
      { ...starts, agent: 'master-mind', part: 'orchestration' },
    ])
    const headings = printed.filter(line => line.startsWith('── ')).slice(2)
    expect(headings.map(line => line.replace(/[,─]+.*$/, '').trim() || line.replace(/^── | ─*$/g, ''))).toEqual([
      expect.stringMatching(/^summary: project-summarizer, /),
      expect.stringMatching(/^summary ended: /),
      expect.stringMatching(/^changing the plan: master-mind, /),
      expect.stringMatching(/^changing the plan ended: /),
      expect.stringMatching(/^round \d+ {2}building: master-mind, /),
    ])
  })

  test('the frame never reaches the height of the terminal, however many work', () => {
    const agents = Array.from({ length: 12 }, (_, i) => starts('backend-dev', i, `T${i}`))
    for (const columns of [20, 40, 99, 100, 160]) {
      for (let rows = 2; rows < 30; rows += 3) {
        const { lines } = screen([...planned, ...leading, ...agents], [says('a\n\nb\n'.repeat(20))], { columns, rows })
        expect(lines.length).toBeLessThan(rows)
        expect(lines.filter(line => widthOf(line) > columns)).toEqual([])
      }
    }
  })

  test('team building and the last look say so in the place of a phase', () => {
    const { lines } = screen([{ ...moreSamples['round of a build'], round: 1 }])
    expect(lines.join('\n')).toContain('A shop for tea. · team building · round 1 of 20 · 1:01')
    const look = screen([...planned, ...leading, { ...sampleEvents['round-started'], round: 3, part: 'last-look' }])
    expect(look.lines.join('\n')).toContain(' · last look · ')
  })

  test('a plan that waits for the person is not just a pause', () => {
    expect(screen(shown).lines).toContainEqual(expect.stringMatching(/^asks you about the plan · /))
    expect(screen(shown).printed).toContain(
      'the plan waits for you: Esc offers to start the build, or to change the plan',
    )
  })
})

describe('an agent that was given a task', () => {
  const instance = instanceOf('frontend-dev', 1)

  test('is printed with a line for what it did and a block for its result; its live words are not printed, and stand behind its name', () => {
    const done = { ...commandOf('npm test'), status: 'completed', exitCode: 0, durationMs: 4_200 } as const
    const { printed, lines } = screen(
      [
        ...atWork,
        {
          type: 'item-completed',
          round: 2,
          instance,
          item: { kind: 'agent-message', id: 'm2', text: 'Hm.', phase: null },
        },
        { type: 'item-completed', round: 2, instance, item: done },
        { ...moreSamples['changes of an agent'], instance },
        ends('frontend-dev', 1, 'All **well**.\n\n- one\n- two'),
        judged('T2', 'done'),
      ],
      [says('I test the cart.', instanceOf('qa-engineer', 2))],
    )
    const from = printed.indexOf('● frontend-dev  T2: Do it.')
    expect(printed.slice(from).filter(line => line !== '')).toEqual([
      '● frontend-dev  T2: Do it.',
      '● qa-engineer  T6: Do it.',
      'frontend-dev T2  $ npm test  → exit 0 in 4.2 s',
      'frontend-dev T2  ✎ new src/a.ts (+2), deleted src/b.ts',
      '● frontend-dev  completed, 3m12s, 45.2k tokens',
      '  All well.',
      '  • one',
      '  • two',
      'task T2 Create homepage component: done',
    ])
    expect(printed.join('\n')).not.toContain('I test the cart.')
    expect(lines).toContain('qa-engineer  ◆ I test the cart.')
    expect(lines).toContainEqual(expect.stringMatching(/^● qa-engineer {2}T6 {2}writing$/))
  })

  test('has words for a screen reader, and nothing that changes by itself', () => {
    const { printed, lines } = screen([...atWork, ends('frontend-dev', 1)], [], { reader: true })
    expect(printed).toContain('frontend-dev starts: T2: Do it.')
    expect(printed).toContain('frontend-dev  completed, 3m12s, 45.2k tokens')
    expect(lines.join('\n')).not.toContain('qa-engineer')
  })
})
