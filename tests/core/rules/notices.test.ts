import { describe, expect, test } from 'vitest'
import type { EventOf } from '../../../src/core/events/events.ts'
import {
  describeGate,
  gateNotice,
  memoryNotice,
  networkRefused,
  outcomeNotice,
  protectedNotice,
  readOnlyHome,
  restoredNotice,
  stuckNotice,
  taskNotice,
} from '../../../src/core/rules/notices.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'

const { type: _, round: __, when: ___, treeAfter: ____, ...failed } = sampleEvents['gate-ended']
const result = { ...failed, output: '', problem: null }

describe('the result of a gate', () => {
  test.each([
    [{}, 'The check `tests` fails (exit code 1).'],
    [{ exitCode: null }, 'The check `tests` fails.'],
    [{ problem: 'No shell.' }, 'The check `tests` fails (exit code 1). No shell.'],
    [
      { output: ' \n  a\nb\n\n' },
      'The check `tests` fails (exit code 1).\n  The end of its output:\n     \n      a\n    b\n ',
    ],
    [{ output: ' \n ' }, 'The check `tests` fails (exit code 1).'],
    [
      { status: 'flaky' as const },
      'The check `tests` is flaky: it failed (exit code 1), then passed on the same files.',
    ],
    [
      { status: 'flaky' as const, exitCode: null },
      'The check `tests` is flaky: it failed, then passed on the same files.',
    ],
  ])('%j', (change, text) => {
    expect(describeGate({ ...result, ...change })).toBe(text)
  })

  test('of before any work was done says so', () => {
    const says = (['before', 'claim'] as const).map(when => gateNotice(when, result).text.endsWith('was done.'))
    expect(says).toEqual([true, false])
  })
})

test('a memory file that could not be used is told with what became of it', () => {
  const problem = { file: 'tasks.json', problem: 'It is broken.', setAside: null, restored: false } as const
  expect(memoryNotice(problem).text).toBe('tasks.json could not be used: It is broken. Update it first.')
  expect(memoryNotice({ ...problem, setAside: 'x.1', restored: true }).text).toBe(
    'tasks.json could not be used: It is broken. Its content is saved as x.1. codemachine restored the last good version. Update it first.',
  )
})

test('files that were touched are named, with how', () => {
  expect(protectedNotice(sampleEvents['protected-changed'].files).text).toContain(
    'tests/a.test.ts (marks tests as skipped), tests/b.test.ts (deleted)',
  )
  expect(restoredNotice(['.git/config', '.git/hooks/x']).text).toContain('.git/config, .git/hooks/x')
})

test('of a task that was judged the next round is told what it has to do about it, and else nothing', () => {
  const told = (verdict: EventOf<'task-judged'>['verdict'], detail: string | null = null) =>
    taskNotice({ ...sampleEvents['task-judged'], verdict, detail })?.text ?? null
  expect([told('refused'), told('refused', 'No.')]).toEqual([
    'T2 (Create homepage component) is marked done, but codemachine does not accept that: nothing shows it.',
    'T2 (Create homepage component) is marked done, but codemachine does not accept that: No.',
  ])
  expect([told('parked'), told('parked', 'Why.')]).toEqual([
    'T2 (Create homepage component) is parked: it failed too often. Leave it, and continue with the rest.',
    'T2 (Create homepage component) is parked: Why. Leave it, and continue with the rest.',
  ])
  expect(told('put-back')).toContain('codemachine restored it')
  const silent = ['changed', 'edited', 'done', 'failed', 'reopened', 'added', 'removed'] as const
  expect(silent.map(verdict => told(verdict))).toEqual(silent.map(() => null))
})

test('of how a round ended the next one is told what it can do about it', () => {
  const told = (end: Parameters<typeof outcomeNotice>[0]['class'], message: string | null = null) =>
    outcomeNotice({ class: end, message })?.text ?? null
  expect([told('silent'), told('silent', 'Quiet.')]).toEqual([
    expect.stringContaining('ended it: no more output came. Look'),
    expect.stringContaining('ended it: Quiet. Look'),
  ])
  expect([told('refused'), told('refused', 'No.')]).toEqual([
    expect.stringContaining('refused: no reason was given. Try'),
    expect.stringContaining('refused: No. Try'),
  ])
  expect(told('context-full')).toContain('context of the last round was full')
  const silent = [
    'worked',
    'interrupted',
    'window',
    'throttle',
    'network',
    'quota',
    'auth',
    'config',
    'crashed',
  ] as const
  expect(silent.map(end => told(end))).toEqual(silent.map(() => null))
})

test('rounds that got nowhere are told what was said, and what is asked of them', () => {
  const stuck = sampleEvents.stuck
  const first = stuckNotice(stuck, ['one\ntwo', 'three']).text
  expect(first).toMatch(/^The last 3 rounds changed no file/)
  expect(first).toContain(' Their last messages:\n  - one\n    two\n  - three\n ')
  expect(first).toContain('try another approach')
  const second = stuckNotice({ ...stuck, why: 'same-refusal', remedy: 'more-effort' }, []).text
  expect(second).toMatch(
    /^The same claim was refused 3 times, for the same reason\. You were asked for another approach/,
  )
})

promise('D73', "A gate that may not write below the person's home says what lets it")
test.each([
  ['go: could not create module cache: mkdir /home/me/go: read-only file system', 'go'],
  [
    'error: failed to create directory `/home/me/.cargo/registry`\n\nCaused by:\n  Read-only file system (os error 30)',
    '.cargo',
  ],
  ['java.io.FileNotFoundException: /home/me/.gradle/x.lck (Read-only file system)', '.gradle'],
  ["npm error EROFS: read-only file system, mkdir '/home/me/.npm/_cacache'", '.npm'],
  ['in /home/me/src/app: open /home/me/.cache/go-build/1: Read-only file system', '.cache'],
])('a command that may not write below the home of the person is told what lets it: %s', (output, name) => {
  const said = readOnlyHome(output, { home: '/home/me', directory: '/home/me/src/app' })
  expect(said).toContain(`sandbox_workspace_write.writable_roots = ["/home/me/${name}"]`)
})

test('and one that may not write elsewhere, or prints a path alone, is not', () => {
  const place = { home: '/home/me', directory: '/home/me/src/app' }
  for (const output of [
    '/usr/lib/x: Read-only file system',
    '/home/me/.cargo: No such file',
    '/home/me/src/app/.git/x: Read-only file system',
  ])
    expect(readOnlyHome(output, place)).toBe(null)
})

test('a command that wanted the network is told how to get it', () => {
  const wanted = ['connect EPERM ::1', 'getaddrinfo ENOTFOUND x', 'Temporary failure in name resolution']
  expect(wanted.map(output => networkRefused(output) === null)).toEqual([false, false, false])
  expect([networkRefused(''), networkRefused('EPERMITTED')]).toEqual([null, null])
})
