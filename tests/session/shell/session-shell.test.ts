import { expect, test } from 'vitest'
import { UserError } from '../../../src/base/errors.ts'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { nothingSecret, redactorOf } from '../../../src/secrets/redactor.ts'
import { SessionLog } from '../../../src/session/session-log.ts'
import {
  SessionShell,
  type SessionShellOptions,
  type ShellMeans,
  withoutSecrets,
} from '../../../src/session/shell/session-shell.ts'
import { promise } from '../../support/promise.ts'
import { type ScriptedShell, scriptedShell } from '../../support/scripted-shell.ts'
import { created, SESSION } from '../../support/session-events.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const VALUE = 'sk-test-4711-abcdefgh'
const never = new AbortController().signal
const OPEN = { thread: {}, signal: never }

function open(means: ShellMeans, template: SessionShellOptions['template'] = {}, redactor = nothingSecret) {
  const events: SessionEvent[] = []
  const clock = new VirtualClock(0)
  const journal = {
    append: (event: SessionEvent) => void events.push(event),
    sync: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const options = { journal, views: [], templates: OWN_TEMPLATES, clock, redactor: nothingSecret }
  const log = new SessionLog(emptyState(SESSION), options)
  log.emit(created())
  const round = { agent: 'worker', engine: 'codex', codex: '1', model: null, input: 'Go on.' }
  log.emit({ type: 'round-started', round: 1, ...round })
  const shell = new SessionShell({
    ...means,
    log,
    template,
    redactor,
    clock,
    leftMs: () => 3_600_000,
  })
  const run = (command: string, secrets: string[] = []) => shell.run({ command, secrets }, OPEN)
  const ofType = (type: SessionEvent['type']) => events.filter(event => event.type === type)
  return { shell, run, ofType, events }
}

const printing = (stdout: string, more: Partial<Parameters<typeof scriptedShell>[0]> = {}): ScriptedShell =>
  scriptedShell({ secrets: { SHOP_KEY: VALUE }, run: () => ({ stdout }), ...more })

promise(
  'T31',
  'A command has the secrets that it names as variables, and no others; no other command and no agent has them',
)
test('a command has the secrets that it names as variables, and no others', async () => {
  const means = scriptedShell({ secrets: { SHOP_KEY: VALUE, OTHER_KEY: 'another-value' }, closed: ['/shop/.env'] })
  const { run, ofType } = open(means)
  const { text, success } = await run('curl "$SHOP_KEY"', ['SHOP_KEY'])
  expect(means.ran).toMatchObject([
    { run: 'curl "$SHOP_KEY"', env: { SHOP_KEY: VALUE }, unreadable: ['/shop/.env'], timeoutMs: 600_000 },
  ])
  expect(success).toBe(true)
  expect(text).toBe('COMMAND: curl "$SHOP_KEY"\nRETURN CODE: 0\nSTDOUT:\n\nSTDERR:\n')
  expect(ofType('shell-ran')).toMatchObject([
    { round: 1, command: 'curl "$SHOP_KEY"', secrets: ['SHOP_KEY'], status: 'passed', exitCode: 0 },
  ])
  await run('ls')
  expect(means.ran[1]?.env).toEqual({})
})

test('a secret that is not there is asked for, and nothing is run', async () => {
  const means = scriptedShell()
  const { run, events } = open(means)
  const before = events.length
  expect(await run('curl', ['SHOP_KEY'])).toMatchObject({
    text: 'There is no secret SHOP_KEY, so nothing was run. Ask for it with ask_human.',
    success: false,
  })
  expect((await run('curl', ['PATH'])).text).toMatch(/^PATH cannot be the name of a secret/)
  expect([means.ran.length, events.length]).toEqual([0, before])
})

test.each([
  ['as it is', VALUE],
  ['in base64', Buffer.from(`user:${VALUE}`).toString('base64')],
  ['in hex', Buffer.from(VALUE).toString('hex')],
  ['in a URL', `https://shop.example/?key=${encodeURIComponent(VALUE)}`],
])('a secret that is printed %s is taken out, and the agent is told', async (_, printed) => {
  const { run, events, ofType } = open(printing(`it is ${printed}\n`))
  const { text } = await run('printenv', ['SHOP_KEY'])
  expect(text).toContain('[secret SHOP_KEY]')
  expect(text).toMatch(/NOTE: It has printed SHOP_KEY: .+ Do not print secrets\./)
  expect(text).not.toContain(printed)
  expect(ofType('shell-ran')).toMatchObject([{ printed: ['SHOP_KEY'] }])
  expect(JSON.stringify(events)).not.toContain(printed)
})

promise('T32')
test('a secret that is cut where the output is cut leaves nothing of itself', async () => {
  // The more often it is printed, the further the beginning of what is kept moves into what is shown.
  for (const [times, filler] of [
    [1, 40_000],
    [1500, 0],
    [1501, 3],
    [2000, 11],
  ] as const) {
    const { run, ofType } = open(printing(`${VALUE}\n`.repeat(times) + 'x'.repeat(filler)))
    await run('spam', ['SHOP_KEY'])
    const [ran] = ofType('shell-ran')
    const { stdout = '' } = ran as { stdout?: string }
    expect(stdout.length).toBeLessThanOrEqual(16_000)
    for (let length = 6; length < VALUE.length; length++) expect(stdout).not.toContain(VALUE.slice(-length))
  }
})

test('of a long secret that is cut nothing is left, though little else is left of what was printed', async () => {
  const value = Array.from({ length: 40 }, (_, n) => `part${n}`).join('-')
  const means = scriptedShell({ secrets: { K: value }, run: () => ({ stdout: `${value}\n`.repeat(500) }) })
  const { run, ofType } = open(means)
  await run('spam', ['K'])
  expect(ofType('shell-ran')).toMatchObject([{ printed: ['K'] }])
  expect(JSON.stringify(ofType('shell-ran'))).not.toContain('part39')
})

test('the last 16,000 characters of each stream go back', async () => {
  const { run, ofType } = open(printing('a'.repeat(9000) + 'b'.repeat(16_000)))
  await run('print', ['SHOP_KEY'])
  expect(ofType('shell-ran')).toMatchObject([{ stdout: 'b'.repeat(16_000) }])
})

promise('T33', 'The output of a command with a secret that is too short to be found is kept back whole')
test('the output of a command with a secret that is too short to be found is kept back whole', async () => {
  const means = scriptedShell({ secrets: { PIN: 'four' }, run: () => ({ stdout: 'four', exitCode: 3 }) })
  const { run, ofType } = open(means)
  const { text } = await run('charge', ['PIN'])
  expect(text).toContain('RETURN CODE: 3')
  expect(text).toContain('NOTE: Its output is withheld, because PIN is too short to be found in it.')
  expect(text).not.toContain('four')
  expect(ofType('shell-ran')).toMatchObject([{ stdout: '', stderr: '', withheld: true }])
})

test('it is kept back whole, too, where the command has another secret beside it that could be found', async () => {
  const secrets = { SHOP_KEY: VALUE, PIN: 'four' }
  const { run, ofType } = open(scriptedShell({ secrets, run: () => ({ stdout: `four and ${VALUE}` }) }))
  const { text } = await run('charge', ['SHOP_KEY', 'PIN'])
  expect(text).not.toMatch(/STDOUT:\n.*four/)
  expect(ofType('shell-ran')).toMatchObject([{ stdout: '', stderr: '', withheld: true, printed: ['SHOP_KEY'] }])
})

promise(
  'T34',
  'A file in which a command has left a secret is named to the person, closed to agents, and in no savepoint or diff',
)
test('a file in which a command has left a secret is closed to agents, and named by what is told of the command', async () => {
  const means = printing('', { leaks: () => ['debug.log'] })
  const { run, ofType } = open(means)
  const { text, leaked } = await run('charge > debug.log', ['SHOP_KEY'])
  expect(leaked).toEqual(['debug.log'])
  expect(means.hidden).toEqual(['debug.log'])
  expect(text).toMatch(/NOTE: A secret was found in debug\.log, which no command can read any more/)
  expect(ofType('shell-ran')).toMatchObject([{ leaked: ['debug.log'] }])
  expect(ofType('warning')).toEqual([])
  const thread = { agent: 'a', developerInstructions: '', model: null, effort: null }
  expect(withoutSecrets(thread, means.secrets.unreadable()).unreadable).toEqual(['debug.log'])
})

promise('T54')
test('a secret that a command has committed is said to the person at once, and the agent is told to leave the history', async () => {
  const object = `.git/objects/ab/${'c'.repeat(38)}`
  const means = printing('', { leaks: () => [object, 'debug.log'] })
  const { run, ofType } = open(means)
  const { text, leaked } = await run('git commit -am key', ['SHOP_KEY'])
  expect(leaked).toEqual([object, 'debug.log'])
  expect(text).toMatch(/NOTE: The git repository now contains it, .+ Do not commit secrets/)
  expect(ofType('warning')).toMatchObject([
    {
      message: `A command has put the secret SHOP_KEY into the git repository (${object}). Agents cannot read these objects any more. Take it out of the history before you push, or give the service another key.`,
    },
  ])
})

test('what the session knows to be secret is taken out of the command and of what it printed, though it was not given', async () => {
  const redactor = redactorOf([{ name: 'OTHER', value: 'other-0815-value', isEncoded: true }])
  const means = printing('other-0815-value')
  const { run, ofType } = open(means, {}, redactor)
  const { text } = await run('echo other-0815-value', ['SHOP_KEY'])
  expect(text).toBe('COMMAND: echo [secret OTHER]\nRETURN CODE: 0\nSTDOUT:\n[secret OTHER]\nSTDERR:\n')
  expect(ofType('shell-ran')).toMatchObject([{ command: 'echo [secret OTHER]', stdout: '[secret OTHER]' }])
})

test('a secret that was stored a moment ago is known to the session before a command can print it', async () => {
  const order: string[] = []
  const means = printing('', {
    run: () => {
      order.push('run')
      return {}
    },
  })
  const secrets = { ...means.secrets, refresh: () => void order.push('refresh') }
  await open({ ...means, secrets }).run('printenv', ['SHOP_KEY'])
  expect(order).toEqual(['refresh', 'run'])
})

test('a secret in the name of a file, or in why nothing was started, is not told', async () => {
  const problem = `cannot start ${VALUE}`
  const means = printing('', { run: () => ({ kind: 'not-started', problem }), leaks: () => [`logs/${VALUE}`] })
  const { run, ofType } = open(means)
  const { text, leaked } = await run('charge', ['SHOP_KEY'])
  expect(leaked).toEqual(['logs/[secret SHOP_KEY]'])
  expect(means.hidden).toEqual([`logs/${VALUE}`])
  expect(text).toContain('logs/[secret SHOP_KEY]')
  expect(text + JSON.stringify(ofType('shell-ran'))).not.toContain(VALUE)
})

test('what the thread may not read no command of it may read either', async () => {
  const means = printing('', { closed: ['/shop/.env'] })
  const { shell } = open(means)
  await shell.run({ command: 'cat', secrets: [] }, { thread: { unreadable: ['/shop/plan.md'] }, signal: never })
  expect(means.ran[0]?.unreadable).toEqual(['/shop/plan.md', '/shop/.env'])
})

test('a search that takes too long is broken off, and said', async () => {
  const means = printing('')
  const search = (_since: number, _secrets: unknown, signal: AbortSignal) =>
    new Promise<{ files: string[]; problem: string }>(resolve => {
      signal.addEventListener('abort', () => resolve({ files: [], problem: 'It was broken off.' }))
    })
  const { run, ofType } = open({ ...means, secrets: { ...means.secrets, search } })
  await run('charge', ['SHOP_KEY'])
  expect(ofType('warning')).toMatchObject([{ message: expect.stringContaining('It was broken off.') }])
})

test('files that cannot be searched are said, and the command counts', async () => {
  const means = printing('')
  const broken: ShellMeans = {
    ...means,
    secrets: {
      ...means.secrets,
      search: async () => Promise.reject(new UserError('CM0908', 'There are too many files.')),
    },
  }
  const { run, ofType } = open(broken)
  expect(await run('charge', ['SHOP_KEY'])).toMatchObject({ success: true })
  expect(ofType('warning')).toMatchObject([
    { message: 'Files that a command has changed may hold a secret. There are too many files.' },
  ])
})

test('nothing goes on once files that hold a secret cannot be closed to agents', async () => {
  const means = printing('', { leaks: () => ['config.ini'] })
  const full: ShellMeans = {
    ...means,
    secrets: {
      ...means.secrets,
      hide: async () => Promise.reject(new UserError('CM0908', 'Too many files hold a secret.')),
    },
  }
  await expect(open(full).run('charge', ['SHOP_KEY'])).rejects.toThrow('Too many files hold a secret.')
})

test('how a command ended that did not end by itself is said', async () => {
  const ends = [
    { kind: 'timed-out' },
    { kind: 'not-started', problem: 'codex is gone.' },
    { kind: 'broken-off' },
  ] as const
  const codes: string[] = []
  for (const end of ends) {
    const { run, ofType } = open(scriptedShell({ run: () => end }))
    codes.push((await run('x')).text.split('\n')[1] ?? '')
    expect(ofType('shell-ran')).toMatchObject([{ status: end.kind, exitCode: null }])
  }
  expect(codes).toEqual([
    'RETURN CODE: none: it took too long, so codemachine ended it and all its processes',
    'RETURN CODE: none: codex is gone.',
    'RETURN CODE: none: it was broken off',
  ])
})

test('a command has no more time than the settings give one', async () => {
  const means = scriptedShell({ commandMs: 100_000 })
  await open(means).run('sleep 99999')
  expect(means.ran[0]?.timeoutMs).toBe(85_000)
})

test('an agent that may only read runs nothing', async () => {
  const means = scriptedShell()
  const { shell } = open(means)
  const { success } = await shell.run(
    { command: 'touch a', secrets: [] },
    { thread: { readOnly: true }, signal: never },
  )
  expect([success, means.ran]).toEqual([false, []])
})

test('a secret is asked for once it is needed, with a reason where the one that is there does not work', async () => {
  const means = scriptedShell()
  const { shell, ofType } = open(means)
  const ask = { key: 'SHOP_KEY', question: 'The key of the shop.', reason: null }
  const first = await shell.ask(ask)
  expect(first).toMatchObject({ success: true, isAsked: true })
  expect(first.text).toMatch(/End your turn now with `done` false/)
  expect(ofType('secret-asked')).toEqual([expect.objectContaining({ round: 1, ...ask })])
  means.store('SHOP_KEY', VALUE)
  expect((await shell.ask(ask)).text).toMatch(/^SHOP_KEY is there\. You do not see its value/)
  expect(await shell.ask({ ...ask, reason: 'It answered 401.' })).toMatchObject({ isAsked: true })
  expect(ofType('secret-asked')).toHaveLength(2)
})

test('no command has a secret, and each that is wanted is asked for, while the template says that they may not have any', async () => {
  let refusal: string | null = 'The person has not said yet that they may.'
  const means = scriptedShell({ secrets: { SHOP_KEY: VALUE } })
  const { shell, run, ofType } = open(means, { refusesSecrets: () => refusal })
  expect(await run('curl shop', ['SHOP_KEY'])).toMatchObject({
    success: false,
    text: expect.stringMatching(/^The person has not said yet that they may\. Nothing was run\./),
  })
  expect(await run('ls')).toMatchObject({ success: true })
  const wanted = { key: 'SHOP_KEY', question: 'The key of the shop.', reason: null }
  expect(await shell.ask(wanted)).toMatchObject({ isAsked: true })
  expect(ofType('secret-asked')).toHaveLength(1)
  refusal = null
  expect(await shell.ask(wanted)).toMatchObject({ isAsked: false })
  expect(await run('curl shop', ['SHOP_KEY'])).toMatchObject({ success: true })
  expect(means.ran.map(({ run }) => run)).toEqual(['ls', 'curl shop'])
})

test.each(['PATH', 'LD_PRELOAD', 'shop_key', 'GIT_DIR', ''])('"%s" is refused as the name of a secret', async key => {
  const { shell, ofType } = open(scriptedShell())
  const answer = await shell.ask({ key, question: 'What?', reason: null })
  expect(answer).toMatchObject({ success: false, isAsked: false, text: expect.stringMatching(/Nobody was asked\.$/) })
  expect(ofType('secret-asked')).toEqual([])
})

test('a secret is confirmed by its check, of which nothing is repeated', async () => {
  const secrets = { SHOP_KEY: VALUE, FREE_KEY: 'without-a-check' }
  const means = scriptedShell({
    secrets,
    checks: { SHOP_KEY: 'curl shop' },
    run: ({ env }) => ({ stdout: JSON.stringify(env), exitCode: 22 }),
  })
  const { shell, events } = open(means)
  expect(await shell.confirm('MISSING', never)).toEqual({
    ok: false,
    problem: 'There is no secret MISSING.',
    missing: true,
  })
  expect(await shell.confirm('FREE_KEY', never)).toEqual({ ok: true, problem: null })
  expect(await shell.confirm('SHOP_KEY', never)).toEqual({ ok: false, problem: 'Its check failed (exit code 22).' })
  expect(means.ran).toMatchObject([{ run: 'curl shop', env: { SHOP_KEY: VALUE } }])
  expect(JSON.stringify(events)).not.toContain(VALUE)
})

test('a check that a person has broken off says nothing of the secret', async () => {
  const means = scriptedShell({
    secrets: { SHOP_KEY: VALUE },
    checks: { SHOP_KEY: 'curl shop' },
    run: () => ({ kind: 'broken-off' }),
  })
  expect(await open(means).shell.confirm('SHOP_KEY', AbortSignal.abort())).toBeNull()
})

test('a check that leaves its secret in a file is said', async () => {
  const means = scriptedShell({
    secrets: { SHOP_KEY: VALUE },
    checks: { SHOP_KEY: 'curl shop > out' },
    leaks: () => ['out'],
  })
  const { shell, ofType } = open(means)
  expect(await shell.confirm('SHOP_KEY', never)).toMatchObject({ ok: true })
  expect(ofType('warning')).toMatchObject([
    { message: expect.stringMatching(/^The check of SHOP_KEY has left that secret in out\./) },
  ])
})
