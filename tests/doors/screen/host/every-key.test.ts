import { expect, test } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { KEY_ACTIONS, type KeyAction, type KeyActionId } from '../../../../src/project/settings/keys.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import type { Drawn } from '../../../support/emulator.ts'
import type { Key } from '../../../support/emulator-keys.ts'
import { held } from '../../../support/rounds.ts'
import { openScene } from '../../../support/scene.ts'

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
  interrupt: { shows: 'Interrupted. What next?', back: [{ text: '1' }] },
  plan: { shows: 'Do you want to modify the plan?', back: ['esc'] },
  palette: { shows: 'All commands', back: ['esc'] },
  help: OVERLAY,
  log: { shows: PAGER, back: ['esc'] },
  output: { shows: PAGER, back: ['esc'] },
  tasks: { shows: 'No tasks yet', back: ['esc'] },
  agents: { shows: /^Agents · 1/m, back: ['esc'] },
  diff: { shows: 'Nothing differs', back: ['esc'] },
  copy: { shows: /^Copied: /m },
  take_back: { shows: 'The queue is empty' },
  search: { shows: '(search)', back: ['esc'] },
  redraw: { shows: '›' },
}

/** With a text in the field. */
const WITH: Partial<Record<KeyActionId, Effect>> = {
  ...WITHOUT,
  submit: { shows: 'Tell the agent, or queue it?', back: ['esc'] },
  tell: { shows: 'Queued as the next session', draft: '' },
  plan: { shows: 'Cleared; ↑ brings it back', draft: '' },
  // What was queued comes behind the text that is there.
  take_back: { shows: /Removed from the queue/ },
}

/** Held by tests of their own: they end the program, hand the terminal on, or edit. */
const ELSEWHERE: ReadonlySet<KeyActionId> = new Set(['leave', 'suspend', 'editor'])

test.each([
  [80, 24],
  [120, 40],
  [40, 10],
])('every key of the field does what the table says, with a draft and without one, on %ix%i', async (columns, rows) => {
  await using scene = await openScene([
    [reply(message('I look.'), shell('echo looked')), held(never)],
    [held(never)],
    [held(never)],
    [held(never)],
  ])
  await using terminal = drawHere(scene, ['build X'], { columns, rows })
  await terminal.untilInAll('looked')
  await terminal.until('Working.')
  const tried: string[] = []
  for (const when of ['empty', 'text'] as const) {
    for (const action of triedWith(when)) {
      await tryKey(terminal, action, when)
      tried.push(`${action.id} ${when}`)
    }
  }
  expect(tried.length).toBeGreaterThan(20)
  terminal.press('ctrl+x')
  await terminal.until('All commands')
  terminal.type('log')
  await terminal.until('/log')
  terminal.press('enter')
  await seen(terminal, PAGER, 'the log from the palette')
  terminal.press('esc')
  await terminal.until(rows => !isSeen(rows, PAGER))
  terminal.press('ctrl+d')
  await terminal.until('Leave now')
})

/** The actions of the field that are tried here with a text, or without one. */
function triedWith(when: 'empty' | 'text'): readonly KeyAction[] {
  return (KEY_ACTIONS as readonly KeyAction[]).filter(
    ({ id, context, isEdit, when: only }) =>
      context === 'field' && isEdit !== true && !ELSEWHERE.has(id as KeyActionId) && (only ?? when) === when,
  )
}

async function tryKey(terminal: Drawn, { id, chords }: KeyAction, when: 'empty' | 'text'): Promise<void> {
  const effect = (when === 'empty' ? WITHOUT : WITH)[id as KeyActionId]
  if (effect === undefined) throw new Error(`${id} ${when} has no row here: say what is seen.`)
  if (when === 'text') await writeDraft(terminal)
  terminal.press(keyOf(chords[0] ?? ''))
  await seen(terminal, effect.shows, `${id} ${when}`)
  if (effect.back !== undefined) {
    terminal.press(...effect.back)
    // Another key that comes with Esc would be one with Alt.
    await terminal.until(rows => !isSeen(rows, effect.shows))
  }
  await fieldIs(terminal, when === 'text' ? (effect.draft ?? DRAFT) : '', `${id} ${when}`)
  if (when === 'text' && effect.draft === undefined) await clear(terminal, id)
}

/** A key of the table as the emulator names it. */
function keyOf(chord: string): Key {
  const name = chord.replace('return', 'enter').replace('escape', 'esc')
  return name === '?' ? { text: '?' } : (name as Key)
}

async function seen(terminal: Drawn, what: string | RegExp, of: string): Promise<void> {
  try {
    await terminal.until(what)
  } catch (error) {
    throw new Error(`${of}: ${String(error)}`)
  }
}

function isSeen(rows: readonly string[], what: string | RegExp): boolean {
  const screen = rows.join('\n')
  return typeof what === 'string' ? screen.includes(what) : what.test(screen)
}

async function writeDraft(terminal: Drawn): Promise<void> {
  terminal.type(DRAFT)
  await terminal.until(`› ${DRAFT}`)
}

async function fieldIs(terminal: Drawn, text: string, of: string): Promise<void> {
  await seen(terminal, text === '' ? /^›$/m : `› ${text}`, of)
}

async function clear(terminal: Drawn, of: string): Promise<void> {
  // It may have several lines by now.
  terminal.press('ctrl+c')
  await seen(terminal, /^›$/m, `${of} cleared`)
}
