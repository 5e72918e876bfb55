import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/session/events.ts'
import type { Item } from '../../src/session/items.ts'
import type { SessionOutcome } from '../../src/session/outcome.ts'
import { emptyState, fold } from '../../src/session/state.ts'
import { plainView } from '../../src/ui/plain-view.ts'
import { recorded, sampleEvents, sampleItems } from './samples.ts'

/** What the view writes for one event of a session in `/work`; the first line without its time. */
function shown(event: SessionEvent, colour = false): string {
  let text = ''
  const view = plainView(
    line => {
      text += line
    },
    { colour },
  )
  const [created, then] = recorded([sampleEvents['session-created'], event])
  if (!created || !then) throw new Error('no event')
  view.event(then, fold(fold(emptyState('20261120_1'), created), then))
  return text
}

const line = (event: SessionEvent) => shown(event).replace(/^22:41:08 {2}/, '')
const item = (of: Item) => line({ type: 'item-completed', round: 1, item: of })
const command = (of: Partial<Extract<Item, { kind: 'command' }>>) => item({ ...sampleItems.command, ...of })
const end = (outcome: SessionOutcome) => line({ ...sampleEvents['session-ended'], outcome })

describe('each event is a line', () => {
  const expected: Record<SessionEvent['type'], string> = {
    'session-created': 'session 20261120_1  build X  (goal, workspace-write, at most 20 rounds)\n',
    'session-resumed': 'session 20261120_1 goes on  build X  (at most 30 rounds)\n',
    'round-started': 'round 1  goal-worker, codex 0.169.0, model gpt-6\n',
    'turn-started': '',
    'item-completed': 'All is well.\n',
    'plan-updated': 'plan  [x] a  [>] b  [ ] c\n',
    usage: '',
    limits: '',
    'model-rerouted': 'codex changed the model: gpt-6 → gpt-5 (highRiskCyberActivity)\n',
    'request-answered': 'codex asked (item/commandExecution/requestApproval): rm -rf build  → declined\n',
    steered: 'a person says, to the next round: Leave the API.\n          Please.\n',
    warning: 'warning: The disk is nearly full.\n',
    error: 'error: stream disconnected: reset by peer (codex tries again)\n',
    'round-ended': 'round 1 ended: worked, 3m12s, 45.2k tokens, 7 files changed\n',
    waiting: 'waiting until 2026-11-21 05:02 (network: connection refused)\n',
    'memory-broken':
      'tasks.json could not be used: line 3 is not JSON. What it held was kept as tasks.json.broken-1. The last good version has been put back.\n',
    'repository-restored':
      "put back what the round changed in the repository's own settings: .git/config, .git/hooks/pre-commit (kept as /records/set-aside/1)\n",
    'done-nominated': 'claimed done by MAIN.md and tasks.json\n',
    'done-refused': 'claim refused (tasks-left): tasks.json still has 1 task.\n',
    'done-accepted': 'claim accepted: the tree is 0123456789ab\n',
    'session-ended':
      'session 20261120_1 ended: done — unverified, for no gates are configured  (3 rounds, 2h05m, 1.2M tokens)\n',
  }
  test.each(Object.values(sampleEvents))('$type', event => {
    expect(line(event)).toBe(expected[event.type])
  })

  test('it begins with the local time', () => {
    expect(shown(sampleEvents.warning)).toBe('22:41:08  warning: The disk is nearly full.\n')
  })

  test('what it waits for today needs no date', () => {
    const until = new Date(2026, 10, 20, 23, 5).toISOString()
    expect(line({ ...sampleEvents.waiting, until })).toContain('waiting until 23:05 (')
  })

  test('a round that failed says why, and that nothing changed', () => {
    const outcome = { class: 'quota', message: 'No credit is left.' } as const
    expect(line({ ...sampleEvents['round-ended'], outcome, tokens: null, changedCount: 0, durationMs: 950 })).toBe(
      'round 1 ended: quota: No credit is left., 950 ms, no files changed\n',
    )
  })
})

describe('each item is a line', () => {
  const expected: Record<Item['kind'], string> = {
    'user-message': '',
    'agent-message': 'First.\n\n          Second.\n',
    reasoning: 'thinks  Planning the change\n',
    command: '$ npm test  → exit 1 in 4.2 s\n          two\n          three\n          four\n',
    'file-change':
      '✎ src/a.ts (+2 −1)\n          ✎ new b.ts (+2)\n          ✎ deleted /else/c.ts\n          ✎ d.ts → e.ts (+0 −0)\n',
    plan: 'plan  1. look\n          2. leap\n',
    'web-search': 'web search  vitest 5 pools\n',
    'mcp-tool-call': 'tool docs/find  → failed in 120 ms: no such page\n',
    'tool-call': 'tool ask  → completed\n',
    'sub-agent': 'sub-agent spawnAgent (2 threads): Read the tests. ⏎ All of them.\n',
    image: 'image  /work/shot.png\n',
    compaction: 'codex compacted its context\n',
    unknown: 'codex did something this version does not know: timeTravel\n',
  }
  test.each(Object.values(sampleItems))('$kind', of => {
    expect(item(of)).toBe(expected[of.kind])
  })

  test('a command that worked shows no output', () => {
    expect(command({ status: 'completed', exitCode: 0 })).toBe('$ npm test  → exit 0 in 4.2 s\n')
  })

  test('a command that was not run says so', () => {
    expect(command({ status: 'declined', exitCode: null, durationMs: null, output: '' })).toBe(
      '$ npm test  → declined\n',
    )
  })

  test.each([
    ['/usr/bin/zsh -lc "echo \\"\\$HOME\\""', 'echo "$HOME"'],
    ['bash -lc ls', 'ls'],
    ["bash -lc 'a' 'b'", "bash -lc 'a' 'b'"],
    ["/bin/bash -lc 'cat <<E\n  x\nE'", 'cat <<E ⏎ x ⏎ E'],
    ['node -e 1', 'node -e 1'],
  ])('the shell around a command is left out only if that loses nothing: %j', (typed, text) => {
    expect(command({ command: typed, exitCode: 0 })).toContain(`$ ${text}  → `)
  })

  test('a file change that was not applied says so', () => {
    const changes = sampleItems['file-change'].changes.slice(0, 1)
    expect(item({ ...sampleItems['file-change'], status: 'failed', changes })).toBe('✎ src/a.ts (+2 −1)  → failed\n')
  })

  test('a change whose diff was cut does not pass for a small one', () => {
    const change = {
      path: '/work/b.ts',
      change: 'add',
      movedTo: null,
      diff: 'one\ntwo\n[… 70000 more characters]',
    } as const
    expect(item({ ...sampleItems['file-change'], changes: [change] })).toBe('✎ new b.ts (+2, and more)\n')
  })

  test('empty thoughts and messages are not shown', () => {
    expect(item({ ...sampleItems.reasoning, text: '' })).toBe('')
    expect(item({ ...sampleItems['agent-message'], text: ' \n' })).toBe('')
  })
})

describe('the end of a session in words', () => {
  test.each<[SessionOutcome, string]>([
    [{ kind: 'done', verified: true }, 'done — verified'],
    [{ kind: 'limit', limit: 'rounds' }, 'limit reached'],
    [{ kind: 'needs-person', reason: 'You are logged out.', hint: 'Log in.' }, 'needs a person: You are logged out.'],
    [{ kind: 'interrupted', signal: 'SIGINT' }, 'interrupted (SIGINT)'],
  ])('%j', (outcome, words) => {
    expect(end(outcome)).toContain(`session 20261120_1 ended: ${words}`)
  })

  test('a hint stands on a line of its own', () => {
    expect(end({ kind: 'needs-person', reason: 'You are logged out.', hint: 'Log in.' })).toMatch(
      /\)\n {10}Log in\.\n$/,
    )
  })
})

describe('what comes from outside is bounded', () => {
  test('a long message is cut, and says where the rest is', () => {
    const text = Array.from({ length: 100 }, (_, i) => `line ${i}`).join('\n')
    const lines = item({ ...sampleItems['agent-message'], text })
      .trimEnd()
      .split('\n')
    expect(lines).toHaveLength(41)
    expect(lines.at(-1)?.trim()).toBe('[… 60 more lines; all of it: codemachine logs 20261120_1 --json]')
  })

  test('a message without newlines is cut too', () => {
    const text = item({ ...sampleItems['agent-message'], text: 'x'.repeat(64_000) })
    expect(text.length).toBeLessThan(8300)
    expect(text).toContain('all of it: codemachine logs 20261120_1 --json')
  })

  test('a long command is cut to 300 characters', () => {
    expect(command({ command: `echo ${'x'.repeat(5000)}`, exitCode: 0 })).toHaveLength(
      '$   → exit 0 in 4.2 s\n'.length + 300,
    )
  })
})

describe('colour', () => {
  const ESC = String.fromCharCode(0x1b)

  test('there is none unless it is asked for', () => {
    expect(Object.values(sampleEvents).map(line).join('')).not.toContain(ESC)
  })

  test('an error is red whatever the environment says', () => {
    expect(shown({ ...sampleEvents.error, willRetry: false }, true)).toContain(`${ESC}[31merror: stream`)
  })
})

const hostile = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\x1b[2J', '\x9b', '\r', '\n', '\t', '\0', '\x7f', '\u202e', '\u2066', '\u2028', '\ud800'),
    fc.string({ unit: 'binary', maxLength: 2 }),
  ),
})

/** Puts the text in the place of every text of an event; its type and kinds stay. */
function filled<T>(value: T, text: string): T {
  return JSON.parse(JSON.stringify(value), (key, old) => (typeof old === 'string' && !FIXED.has(key) ? text : old))
}
const FIXED = new Set(['type', 'kind', 'status', 'change', 'class', 'phase', 'until', 'signal', 'limit'])

test('nothing from outside steers the terminal or reorders a line, whatever event it comes in', () => {
  const events = [
    ...Object.values(sampleEvents),
    ...Object.values(sampleItems).map(of => ({ type: 'item-completed', round: 1, item: of }) as const),
  ]
  fc.assert(
    fc.property(hostile, fc.constantFrom(...events), (text, event) => {
      const written = shown(filled(event, text))
      expect(written).not.toMatch(/[^\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/u)
      expect(written.isWellFormed()).toBe(true)
      expect(written === '' || written.endsWith('\n')).toBe(true)
    }),
    { numRuns: 2000 },
  )
})
