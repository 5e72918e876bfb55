import { expect, test } from 'vitest'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import { KEY_ACTIONS, type KeyAction, type KeyActionId } from '../../../src/settings/keys.ts'
import { type Emulator, startInEmulator } from '../../support/emulator.ts'
import type { Key } from '../../support/emulator-keys.ts'
import { held, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

const never = new Promise<never>(() => {})
const DRAFT = 'mydraft'

/** What is seen after a key, and how one comes back from there; a function does what is more than that. */
interface Effect {
  shows: string | RegExp
  back?: readonly Key[]
  /** Whether the draft is in the field afterwards; left out: as before. */
  draft?: string
}

/** The last line of a pager. */
const PAGER = /\d+–\d+ of \d+ · /
const OVERLAY: Effect = { shows: 'In the field', back: ['esc'] }

/** On an empty field, while a round is at work that has said something and run a command. */
const WITHOUT: Partial<Record<KeyActionId, Effect>> = {
  answer: { shows: '›' },
  interrupt: { shows: 'Interrupted. How does it go on?', back: ['esc'] },
  plan: { shows: 'Do you want to modify the plan?', back: ['esc'] },
  palette: { shows: 'What is possible now', back: ['esc'] },
  help: OVERLAY,
  log: { shows: PAGER, back: ['esc'] },
  output: { shows: PAGER, back: ['esc'] },
  tasks: { shows: 'Esc closes the tasks', back: ['esc'] },
  agents: { shows: /^Agents · 1/m, back: ['esc'] },
  diff: { shows: /hang|change|differ/i, back: [] },
  copy: { shows: /^Copied: /m },
  take_back: { shows: 'Nothing waits in the queue' },
  search: { shows: '(search)', back: ['esc'] },
  redraw: { shows: '›' },
}

/** With a text in the field. */
const WITH: Partial<Record<KeyActionId, Effect>> = {
  ...WITHOUT,
  submit: { shows: 'It waits as the next session', draft: '' },
  tell: { shows: /person/, draft: '' },
  plan: { shows: 'Cleared; ↑ brings it back', draft: '' },
  take_back: { shows: new RegExp(`› ${DRAFT}`) },
}

/** Held by tests of their own: they end the program, hand the terminal on, or edit. */
const ELSEWHERE: ReadonlySet<KeyActionId> = new Set(['leave', 'suspend', 'editor'])

test.each([
  [80, 24],
  [120, 40],
  [40, 10],
])('every key of the field does what the table says, with a draft and without one, on %ix%i', async (columns, rows) => {
  await using scene = await openScene([
    [says('I look.'), reply(shell('echo looked')), held(never)],
    [held(never)],
    [held(never)],
    [held(never)],
  ])
  await using terminal = startInEmulator(scene.place, ['build X'], { columns, rows })
  await terminal.untilInAll('looked')
  await terminal.until('Working.')
  const actions: readonly KeyAction[] = KEY_ACTIONS.filter(({ context }) => context === 'field')
  const tried: string[] = []
  for (const [when, effects] of [
    ['empty', WITHOUT],
    ['text', WITH],
  ] as const) {
    for (const { id, chords, isEdit, when: only } of actions) {
      if (isEdit === true || ELSEWHERE.has(id as KeyActionId) || (only !== undefined && only !== when)) continue
      const effect = effects[id as KeyActionId]
      if (effect === undefined) throw new Error(`${id} ${when} has no row here: say what is seen.`)
      if (when === 'text') await writeDraft(terminal)
      terminal.press(keyOf(chords[0] ?? ''))
      await seen(terminal, effect.shows, `${id} ${when}`)
      for (const key of effect.back ?? []) terminal.press(key)
      await fieldIs(terminal, when === 'text' ? (effect.draft ?? DRAFT) : '', `${id} ${when}`)
      if (when === 'text' && effect.draft === undefined) await clear(terminal)
      tried.push(`${id} ${when}`)
    }
  }
  expect(tried.length).toBeGreaterThan(25)
  terminal.press('ctrl+d')
  expect((await terminal.ended).exitCode).toBe(130)
})

/** A key of the table as the emulator names it. */
function keyOf(chord: string): Key {
  const name = chord.replace('return', 'enter').replace('escape', 'esc')
  return name === '?' ? { text: '?' } : (name as Key)
}

async function seen(terminal: Emulator, what: string | RegExp, of: string): Promise<void> {
  try {
    await terminal.until(what)
  } catch (error) {
    throw new Error(`${of}: ${String(error)}`)
  }
}

async function writeDraft(terminal: Emulator): Promise<void> {
  terminal.type(DRAFT)
  await terminal.until(`› ${DRAFT}`)
}

async function fieldIs(terminal: Emulator, text: string, of: string): Promise<void> {
  await seen(terminal, text === '' ? /^›$/m : `› ${text}`, of)
}

async function clear(terminal: Emulator): Promise<void> {
  terminal.press('ctrl+u')
  await terminal.until(/^›$/m)
}
