import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { EventOf, SessionEvent } from '../../../src/core/events/events.ts'
import type { Reply } from '../../../src/core/shapes/reply.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { DecisionPrompt } from '../../../src/doors/cli/decision-prompt.ts'
import { observerOn } from '../../../src/doors/cli/output.ts'
import { openSecrets } from '../../../src/secrets/store.ts'
import type { Command } from '../../../src/session/records/control.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { created, fold, recorded } from '../../support/session-events.ts'
import { sampleEvents } from '../screen/samples.ts'
import { withoutColours } from '../screen/without-colours.ts'

/** A person at a plain terminal, who is asked by a session that answers as it is told. */
async function sit(replies: Reply[], editor = 'false', more: Record<string, string> = {}) {
  const place = await makePlace('')
  let isRaw = false
  const setRawMode = (mode: boolean) => {
    isRaw = mode
  }
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
  const stderr = new PassThrough()
  let shown = ''
  stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  const { directory: cwd } = place
  const env = { ...place.env, EDITOR: editor, ...more }
  const signal = new AbortController().signal
  const context = cliContext(place, { env, cwd, stdin, stdout, stderr, clock: systemClock, signal })
  const prompt = new DecisionPrompt(context)
  const asked: Omit<Command, 'at'>[] = []
  const heard = Promise.withResolvers<void>()
  prompt.reach({
    attend: () => false,
    letGo: () => {},
    ask: async ({ at: _, ...command }) => {
      asked.push(command)
      const reply = replies.shift() ?? { code: 'done', message: 'done' }
      if (replies.length === 0) heard.resolve()
      return reply
    },
  })
  const happens = (...[first, ...events]: [EventOf<'session-created'>, ...SessionEvent[]]) => {
    let state = emptyState('20261120_1')
    for (const event of recorded([{ ...first, directory: cwd }, ...events])) {
      state = fold(state, event)
      prompt.event(event, state)
    }
  }
  return {
    happens,
    asked,
    context,
    directory: cwd,
    heard: heard.promise,
    types: (text: string) => void stdin.write(text),
    shown: () => shown,
    /** Whether the terminal shows nothing of what is typed. */
    isRaw: () => isRaw,
    /** Whether the terminal is still read. */
    isReading: () => stdin.listenerCount('data') + stdin.listenerCount('readable') > 0,
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  }
}

const wanted = sampleEvents['decision-asked']
const answer = { type: 'decide', session: '20261120_1', decision: 'database' }

test('a person at a plain terminal decides in a line, by number or name, and is asked again when it is not taken', async () => {
  const refused: Reply = { code: 'text-missing', message: '"other" needs a text: describe what you want.' }
  await using person = await sit([refused, { code: 'done', message: 'It goes on.' }])
  person.happens(created(), wanted)
  person.types('\n2\nother "PostgreSQL, please"\n')
  await person.heard
  await nextTick()
  expect(person.asked).toEqual([
    { ...answer, choice: 'other' },
    { ...answer, choice: 'other', text: 'PostgreSQL, please' },
  ])
  const prompt = 'Your choice (1 sqlite, 2 other …): '
  const [about, ...rest] = person.shown().split(/(?=Your choice)/)
  expect(about?.split('\n').slice(0, 4)).toEqual([
    'SQLite is there already.',
    '  See docs/database.md',
    '  sqlite: Keep SQLite',
    '  other: Another one (say which)',
  ])
  expect(rest.join('')).toBe(`${prompt}${prompt}${refused.message}\n${prompt}`)
})

promise('C80')
test('a person at a plain terminal reads a plan as it is drawn, with its diff in colours, and nothing of it steers the terminal', async () => {
  const body = `Limit **each** address \x1b[2J.\n\n- \`src/限流.ts\`\n\n\`\`\`diff\n-a bucket for all\n+a bucket for each\n\`\`\``
  await using person = await sit([], 'false', { TERM: 'xterm-256color', NO_COLOR: '' })
  person.happens(created(), { ...wanted, body })
  await vi.waitFor(() => expect(person.shown()).toContain('Your choice'), { timeout: 30_000 })
  expect(person.shown()).toContain('\x1b[32m+a bucket for each\x1b[39m')
  expect(withoutColours(person.shown())).toMatch(
    /^\nLimit each address ␛\[2J\.\n\n• src\/限流\.ts\n\n {2}diff\n {2}-a bucket for all\n {2}\+a bucket for each\n\n {2}See docs/,
  )
})

test('a choice that opens a file is taken once that was edited here, and not where it could not be', async () => {
  const edits = { ...wanted, choices: [{ id: 'edit', label: 'Edit it', opensFile: true as const }], default: null }
  await using person = await sit([{ code: 'done', message: 'It goes on.' }], `sh -c 'printf PostgreSQL > "$0"'`)
  await mkdir(join(person.directory, 'docs'))
  person.happens(created(), edits)
  person.types('1\n')
  await person.heard
  expect(person.asked).toEqual([{ ...answer, choice: 'edit' }])
  expect(await readFile(join(person.directory, 'docs/database.md'), 'utf8')).toBe('PostgreSQL')
  await using without = await sit([])
  without.happens(created(), edits)
  without.types('edit\n')
  await vi.waitFor(() => expect(without.shown()).toContain('docs is not there.\nYour choice'), { timeout: 30_000 })
  expect(without.asked).toEqual([])
})

test('what a person has edited that is decided meanwhile is not taken, and is said where it lies', async () => {
  const edits = { ...wanted, choices: [{ id: 'edit', label: 'Edit it', opensFile: true as const }], default: null }
  const pipes = await mkdtemp(join(tmpdir(), 'codemachine-editor-'))
  onTestFinished(async () => await rm(pipes, { recursive: true }))
  const [open, saved] = [join(pipes, 'open'), join(pipes, 'saved')]
  await using person = await sit([], `sh -c 'echo > ${open}; cat ${saved} > "$0"'`)
  await mkdir(join(person.directory, 'docs'))
  execFileSync('mkfifo', [open, saved])
  person.happens(created(), edits)
  person.types('1\n')
  await readFile(open)
  person.happens(created(), edits, { ...sampleEvents['decision-made'], choice: 'edit' })
  await writeFile(saved, 'PostgreSQL')
  const said = 'It was already decided. Your text is saved in docs/database.md.\n'
  await vi.waitFor(() => expect(person.shown()).toContain(said), { timeout: 30_000 })
  expect(person.asked).toEqual([])
  expect(await readFile(join(person.directory, 'docs/database.md'), 'utf8')).toBe('PostgreSQL')
})

const secret = {
  ...wanted,
  id: 'secret',
  title: 'The step needs SERVICE_API_KEY.',
  body: 'A key of the service, with the right to read.',
  choices: [
    { id: 'give', label: 'Give it' },
    { id: 'later', label: 'Later' },
  ],
  default: 'later',
  secret: { key: 'SERVICE_API_KEY' },
}
const VALUE = 'sk-live-0123456789abcdef'
const FIELD = 'Value of SERVICE_API_KEY (your typing is hidden; Ctrl+C cancels): '
const stored = async ({ context, directory }: Awaited<ReturnType<typeof sit>>) =>
  (await openSecrets((await openRecords({ ...context, directory })).secrets).get('SERVICE_API_KEY'))?.value ?? null

test('a secret that is asked for is typed where it is not shown, is stored, and is the answer without its value', async () => {
  await using person = await sit([{ code: 'done', message: 'It goes on.' }])
  person.happens(created(), secret)
  person.types('1\n')
  await vi.waitFor(() => expect(person.shown()).toContain(FIELD), { timeout: 30_000 })
  person.types(`${VALUE}\r`)
  await person.heard
  expect(person.asked).toEqual([{ ...answer, decision: 'secret', choice: 'give' }])
  expect(await stored(person)).toBe(VALUE)
  expect(person.shown()).not.toContain(VALUE)
  await vi.waitFor(() => expect(person.isReading()).toBe(false))
})

test('a secret that is left by Ctrl+C or Ctrl+D is asked for again, and nothing is stored', async () => {
  await using person = await sit([])
  person.happens(created(), secret)
  const fields = async (times: number) =>
    await vi.waitFor(() => expect(person.shown().split(FIELD)).toHaveLength(times + 1), { timeout: 30_000 })
  const choices = async (times: number) =>
    await vi.waitFor(() => expect(person.shown().split('Your choice')).toHaveLength(times + 1), { timeout: 30_000 })
  person.types('give\n')
  await fields(1)
  person.types(`${VALUE}\x03`)
  await choices(2)
  expect(person.shown()).toContain('Nothing is stored. Ctrl+C once more ends the run.\nYour choice')
  person.types('give\n')
  await fields(2)
  person.types(`${VALUE}\x04`)
  await choices(3)
  expect(person.shown()).toContain('Nothing is stored.\nYour choice')
  expect([person.asked, await stored(person)]).toEqual([[], null])
})

promise('T43', 'A value that is typed where it is shown, or as an argument, is handed to nobody and not repeated')
test('a value that is typed where it is shown is handed to nobody', async () => {
  await using person = await sit([])
  person.happens(created(), secret)
  person.types(`give ${VALUE}\n${VALUE}\n`)
  const said = '"give" takes no text: type the value at the hidden prompt.\nYour choice'
  await vi.waitFor(() => expect(person.shown()).toContain(said), { timeout: 30_000 })
  await vi.waitFor(() => expect(person.shown()).toContain('There is no such choice; use one of give, later.\n'))
  expect([person.asked, person.shown().includes(VALUE)]).toEqual([[], false])
})

test('the rest of a secret that is set from elsewhere while it is typed is neither shown, nor stored, nor the answer to what is asked next', async () => {
  await using person = await sit([])
  person.happens(created(), secret)
  person.types('1\n')
  await vi.waitFor(() => expect(person.shown()).toContain(FIELD), { timeout: 30_000 })
  person.types(VALUE)
  const decided = { ...sampleEvents['decision-made'], id: 'secret', choice: 'give' }
  person.happens(created(), secret, decided, wanted)
  const note = '\nThis question is closed, and your text was discarded. Press Enter.\n'
  await vi.waitFor(() => expect(person.shown()).toContain(note), { timeout: 30_000 })
  person.types('sqlite')
  for (let turn = 0; turn < 10; turn += 1) await nextTick()
  expect([person.isRaw(), person.shown().split(note)[1]]).toEqual([true, ''])
  person.types('\r')
  await vi.waitFor(() => expect(person.shown().split(note)[1]).toContain('Your choice (1 sqlite'), { timeout: 30_000 })
  expect([person.isRaw(), person.asked, await stored(person)]).toEqual([false, [], null])
})

test('a field for a secret into which nothing was typed lets go of the terminal at once when it was set from elsewhere', async () => {
  await using person = await sit([])
  person.happens(created(), secret)
  person.types('1\n')
  await vi.waitFor(() => expect(person.shown()).toContain(FIELD), { timeout: 30_000 })
  person.happens(created(), secret, { ...sampleEvents['decision-made'], id: 'secret', choice: 'give' })
  await vi.waitFor(() => expect(person.isReading()).toBe(false), { timeout: 30_000 })
  expect([person.isRaw(), person.asked, await stored(person)]).toEqual([false, [], null])
  expect(person.shown().split(FIELD)[1]).toBe('\n\x1b[?2004l')
})

test('the terminal is let go of when another door has answered, and not read where nobody is asked', async () => {
  await using person = await sit([])
  person.happens(created(), wanted, sampleEvents['decision-made'])
  person.types('1\n')
  for (let turn = 0; turn < 10; turn += 1) await nextTick()
  expect([person.asked, person.isReading(), person.shown()]).toEqual([[], false, ''])
  await using nobody = await sit([])
  nobody.happens(created(), { ...wanted, until: recorded([created(), wanted])[1]?.at ?? '' })
  nobody.types('1\n')
  for (let turn = 0; turn < 10; turn += 1) await nextTick()
  expect([nobody.asked, nobody.shown()]).toEqual([[], ''])
})

test('what is printed while a person is asked begins on a line of its own, and an answer of theirs is followed by no empty line', async () => {
  await using place = await makePlace('')
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 })
  let shown = ''
  stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
  })
  const { view, reach } = observerOn(cliContext(place, { env: { ...place.env, NO_COLOR: '1' }, stdin, stdout }), {})
  const heard = Promise.withResolvers<void>()
  reach?.({
    attend: () => false,
    letGo: () => {},
    ask: async () => {
      heard.resolve()
      return { code: 'done', message: 'It goes on.' }
    },
  })
  let state = emptyState('20261120_1')
  const happens = (...events: SessionEvent[]) => {
    for (const event of recorded(events)) {
      state = fold(state, event)
      view.event(event, state)
    }
  }
  const prompt = 'Your choice (1 sqlite, 2 other …): '
  const asked = (times: number) =>
    vi.waitFor(() => expect(shown.split(prompt)).toHaveLength(times + 1), { timeout: 30_000 })
  happens(created(), wanted)
  await asked(1)
  // From another terminal.
  happens(sampleEvents.warning, sampleEvents['decision-made'])
  expect(shown.split(prompt)[1]).toMatch(/^\n\d\d:\d\d:\d\d {2}\S/)
  expect(shown).not.toContain('\n\n')
  happens({ ...wanted, id: 'again' })
  await asked(2)
  // The terminal itself ends the line of what is typed.
  stdin.write('1\n')
  await heard.promise
  happens({ ...sampleEvents['decision-made'], id: 'again' })
  expect(shown.split(prompt)[2]).toMatch(/^\d\d:\d\d:\d\d {2}\S/)
})
