import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import type { SettingsFile } from './settings-file.ts'

/**
 * Where keys count. `field`: the screen with its field, a session's or the start screen's; `view`: everything that fills
 * the screen (pager, lists, review); the others are kinds of views, whose keys count beside those of `view`, those of
 * `question` before them.
 */
export type KeyContext = 'field' | 'view' | 'pager' | 'list' | 'review' | 'question'

/** One action of a key: its id in `[keys]`, its effect, and its keys. */
export interface KeyAction {
  id: string
  context: KeyContext
  /** Keys as `chordOf` names them: `ctrl+x`, `alt+up`, `escape`, `d`; a space is `space`. */
  chords: readonly string[]
  /** Keys that `preset = "vim"` adds. */
  vim?: readonly string[]
  /** In the field: whether it applies only if the field is empty, or only if not. Left out: both. */
  when?: 'empty' | 'text'
  /** Short name for the palette and hints. */
  label: string
  /** Its effect: a clause for the overlay and docs/reference/keys.md. */
  does: string
  /** Both texts for `screen.enter = "queue"`; left out: the same. */
  withQueue?: { label: string; does: string }
  /** Whether it cannot be remapped: keys that edit text or end things stay as in every terminal. */
  isFixed?: true
  /** Whether it edits the text of the field. */
  isEdit?: true
}

/** All keys of the screen in overlay order: docs/reference/keys.md, `?` and the hints come from this. */
export const KEY_ACTIONS = [
  action('field', 'submit', ['return'], 'Start, or tell the agent', {
    does: 'on the start screen starts a session; while one runs tells the agent of this round, or the next; asks the first time (`screen.enter = "queue"` swaps this with Tab)',
    withQueue: {
      label: 'Start, or queue as the next',
      does: 'on the start screen starts a session; while one runs queues the text as the next session',
    },
    when: 'text',
    isFixed: true,
  }),
  action('field', 'tell', ['tab'], 'Queue as the next', {
    does: 'queues the text as the next session',
    withQueue: { label: 'Tell the agent', does: 'tells the agent of this round, or the next' },
    when: 'text',
  }),
  action('field', 'answer', ['tab'], 'Answer what is asked', {
    does: 'moves into the question above the field; there a digit or Enter chooses, Esc leaves',
    when: 'empty',
  }),
  action('field', 'interrupt', ['escape'], 'Interrupt, or close', {
    does: 'closes what is open; else interrupts the turn and asks how to continue',
    isFixed: true,
  }),
  action('field', 'plan', ['ctrl+c'], 'Clear, else change the plan', {
    does: 'with text: clears the field (↑ restores it); without text: asks how to change the plan; a second time: leaves',
    isFixed: true,
  }),
  action('field', 'leave', ['ctrl+d'], 'Leave', {
    does: 'leaves; `codemachine resume` continues',
    when: 'empty',
    isFixed: true,
  }),
  action('field', 'palette', ['ctrl+x'], 'Everything possible now', {
    does: 'all commands that are possible now, with their keys; type to search',
  }),
  action('field', 'help', ['?'], 'Keys', { does: 'these keys', when: 'empty' }),
  action('field', 'log', ['ctrl+e'], 'Log', { does: 'the whole log of the session', when: 'empty' }),
  action('field', 'output', ['ctrl+o'], 'Output of the last command', { does: 'the whole output of the last command' }),
  action('field', 'tasks', ['ctrl+t'], 'Tasks', { does: 'shows the tasks, or hides them' }),
  action('field', 'agents', ['alt+a'], 'Agents at work', { does: 'shows the agents at work; Enter opens one' }),
  action('field', 'diff', ['alt+g'], 'Changes', { does: 'what changed since the start of the session, file by file' }),
  action('field', 'copy', ['alt+c'], 'Copy the last answer', {
    does: 'copies the last words of the agent to the clipboard',
  }),
  action('field', 'take_back', ['alt+up'], 'Take the last prompt back', {
    does: 'takes the last queued prompt back into the field',
  }),
  action('field', 'editor', ['ctrl+g'], 'Write in the editor', { does: 'opens the text in `$VISUAL` or `$EDITOR`' }),
  action('field', 'search', ['ctrl+r'], 'Search the prompts', { does: 'searches earlier prompts' }),
  action('field', 'redraw', ['ctrl+l'], 'Redraw', { does: 'draws the screen again' }),
  action('field', 'suspend', ['ctrl+z'], 'Suspend', {
    does: 'suspends codemachine; `fg` returns; the agent keeps working',
  }),
  edit('new_line', ['shift+return', 'alt+return', 'ctrl+return', 'ctrl+j'], 'a new line; so does `\\` before Enter'),
  edit('history', ['up', 'down', 'ctrl+p', 'ctrl+n'], 'a row up or down; beyond the text: earlier prompts'),
  edit('characters', ['left', 'right', 'ctrl+b', 'ctrl+f'], 'a character back or forward'),
  edit('words', ['alt+b', 'alt+f', 'ctrl+left', 'ctrl+right', 'alt+left', 'alt+right'], 'a word back or forward'),
  edit('line_start', ['ctrl+a', 'home'], 'the start of the line'),
  edit('line_end', ['ctrl+e', 'end'], 'the end of the line', 'text'),
  edit('erase', ['backspace', 'ctrl+h', 'delete', 'ctrl+d'], 'erases a character', 'text'),
  edit('kill_line', ['ctrl+k', 'ctrl+u'], 'deletes to the end or to the start of the line'),
  edit(
    'kill_word',
    ['ctrl+w', 'alt+backspace', 'ctrl+backspace', 'alt+d', 'alt+delete', 'ctrl+delete'],
    'deletes a word',
  ),
  edit('yank', ['ctrl+y', 'alt+y'], 'inserts the last deleted text; the one before it'),
  edit('undo', ['ctrl+_', 'ctrl+-', 'ctrl+/'], 'undo'),
  action('view', 'close', ['q', 'escape', 'ctrl+c'], 'Back', { does: 'goes back' }),
  action('view', 'up', ['up', 'ctrl+p'], 'Up', { does: 'a row up', vim: ['k'] }),
  action('view', 'down', ['down', 'ctrl+n'], 'Down', { does: 'a row down', vim: ['j'] }),
  action('view', 'page_up', ['pageup', 'b'], 'Page up', { does: 'a page up', vim: ['ctrl+b'] }),
  action('view', 'page_down', ['pagedown', 'space'], 'Page down', { does: 'a page down', vim: ['ctrl+f'] }),
  action('view', 'half_up', ['ctrl+u'], 'Half a page up', { does: 'half a page up' }),
  action('view', 'half_down', ['ctrl+d'], 'Half a page down', { does: 'half a page down' }),
  action('view', 'start', ['home', 'g', '<'], 'Start', { does: 'the start' }),
  action('view', 'end', ['end', 'G', '>'], 'End', { does: 'the end; there the view follows a growing log' }),
  action('view', 'find', ['/'], 'Find', { does: 'searches; in a list: shows only rows with the text' }),
  action('view', 'diff_here', ['d'], 'Changes', {
    does: 'shows the changes of the selected round, session or file',
  }),
  action('view', 'copy_here', ['y'], 'Copy', { does: 'copies the selected line, id or name' }),
  action('view', 'keys_here', ['h', '?'], 'Keys', { does: 'these keys' }),
  action('pager', 'line_up', ['k'], 'Up', { does: 'a row up', vim: ['ctrl+y'] }),
  action('pager', 'line_down', ['j', 'return'], 'Down', { does: 'a row down', vim: ['ctrl+e'] }),
  action('pager', 'close_log', ['ctrl+e', 'ctrl+o'], 'Back', { does: 'goes back' }),
  action('pager', 'find_back', [], 'Find backwards', { does: 'searches backwards; has no key unless you give it one' }),
  action('pager', 'next_hit', ['n'], 'Next', { does: 'the next hit' }),
  action('pager', 'previous_hit', ['N'], 'Previous', { does: 'the hit before' }),
  action('list', 'row_up', ['k'], 'Up', { does: 'a row up' }),
  action('list', 'row_down', ['j'], 'Down', { does: 'a row down' }),
  action('list', 'open', ['return', 'right'], 'Open', { does: 'opens the selected row', vim: ['l'] }),
  action('list', 'back', ['left'], 'Back', { does: 'goes back' }),
  action('list', 'all', ['a'], 'All or fewer', { does: 'shows all, or only those of this directory' }),
  action('list', 'tell_here', ['t'], 'Tell it', { does: 'sends a text to the selected agent' }),
  action('list', 'stop_here', ['s'], 'Stop it', { does: 'stops the selected agent, after you confirm' }),
  action('review', 'next_file', ['right', 'tab'], 'Next file', { does: 'the next file', vim: ['}'] }),
  action('review', 'previous_file', ['left', 'shift+tab'], 'File before', { does: 'the file before', vim: ['{'] }),
  action('review', 'next_hunk', ['n'], 'Next change', { does: 'the next change', vim: [']'] }),
  action('review', 'previous_hunk', ['p'], 'Change before', { does: 'the change before', vim: ['['] }),
  action('review', 'side_by_side', ['v'], 'Side by side', { does: 'side by side, or one below the other' }),
  action('review', 'edit_file', ['e'], 'Open in the editor', { does: 'opens the file in `$VISUAL` or `$EDITOR`' }),
  action('review', 'put_back', ['x'], 'Restore this file', {
    does: 'restores the file, after you confirm',
  }),
  action('review', 'undo_put_back', ['u'], 'Undo', { does: 'undoes the last restore' }),
  action('question', 'remove', ['d', 'delete'], 'Remove', {
    does: 'removes the selected prompt from the queue',
    isFixed: true,
  }),
  action('question', 'yes', ['y'], 'Yes', { does: 'answers yes', isFixed: true }),
  action('question', 'no', ['n'], 'No', { does: 'answers no', isFixed: true }),
] as const satisfies readonly KeyAction[]

/** Name of an action in `[keys]`. */
export type KeyActionId = (typeof KEY_ACTIONS)[number]['id']

interface ActionMore extends Pick<KeyAction, 'does' | 'withQueue' | 'vim' | 'when' | 'isFixed' | 'isEdit'> {}

function action<const Id extends string>(
  context: KeyContext,
  id: Id,
  chords: readonly string[],
  label: string,
  more: ActionMore,
): KeyAction & { id: Id } {
  return { context, id, chords, label, ...more }
}

/** Returns a key that edits the text of the field. */
function edit<const Id extends string>(id: Id, chords: readonly string[], does: string, when?: 'text') {
  return action('field', id, chords, '', { does, isFixed: true, isEdit: true, ...(when === undefined ? {} : { when }) })
}

/** Checked `[keys]` of a person's file. */
export interface KeySettings {
  preset: 'vim' | null
  /** Keys of each remapped action, as `chordOf` names them; empty: none. */
  remapped: ReadonlyMap<KeyActionId, readonly string[]>
}

/** The default keys. */
const DEFAULT_KEYS: KeySettings = { preset: null, remapped: new Map() }

/** Actions of the keys, after presets and remaps. */
export class Keymap {
  readonly #settings: KeySettings
  /** What Enter does with a text while a session runs; Tab does the other. Null: the person has yet to say. */
  enter: 'tell' | 'queue' | null
  readonly #byContext = new Map<KeyContext, Map<string, KeyAction[]>>()

  constructor(settings: KeySettings = DEFAULT_KEYS, enter: Keymap['enter'] = null) {
    this.#settings = settings
    this.enter = enter
    for (const each of KEY_ACTIONS) {
      const chords = this.#byContext.get(each.context) ?? new Map<string, KeyAction[]>()
      this.#byContext.set(each.context, chords)
      for (const chord of this.chordsOf(each.id)) chords.set(chord, [...(chords.get(chord) ?? []), each])
    }
  }

  /** Returns the action of a key in the field; null for a key of the text. */
  inField(chord: string, isEmpty: boolean): KeyActionId | null {
    const found = this.#byContext
      .get('field')
      ?.get(chord)
      ?.find(each => counts(each, isEmpty))
    return found === undefined ? null : (found.id as KeyActionId)
  }

  /** Returns the action of a key in a kind of view, whose own keys win over those of all views; null for any other key. */
  inView(kind: Exclude<KeyContext, 'field' | 'view'>, chord: string): KeyActionId | null {
    const found = this.#byContext.get(kind)?.get(chord)?.[0] ?? this.#byContext.get('view')?.get(chord)?.[0]
    return found === undefined ? null : (found.id as KeyActionId)
  }

  /** Returns the keys of an action, the main one first; empty if it has none. */
  chordsOf(id: KeyActionId): readonly string[] {
    const remapped = this.#settings.remapped.get(id)
    if (remapped !== undefined) return remapped
    const known: KeyAction | undefined = KEY_ACTIONS.find(each => each.id === id)
    if (known === undefined) return []
    if (this.#settings.preset === null) return known.chords
    const taken = KEY_ACTIONS.flatMap((each: KeyAction) =>
      each.context === known.context && each.id !== id ? (each.vim ?? []) : [],
    )
    return [...known.chords.filter(chord => !taken.includes(chord)), ...(known.vim ?? [])]
  }

  /** Returns name and effect of an action, by the setting of Enter. */
  wordsOf(action: KeyAction): { label: string; does: string } {
    return this.enter === 'queue' ? (action.withQueue ?? action) : action
  }

  /** Returns the main key of an action for a person: `Ctrl+X`; empty if it has none. */
  label(id: KeyActionId): string {
    const [chord] = this.chordsOf(id)
    return chord === undefined ? '' : chordLabel(chord)
  }
}

/** Returns whether an action applies in an empty, or not empty, field. */
function counts({ when }: KeyAction, isEmpty: boolean): boolean {
  return when === undefined || (when === 'empty') === isEmpty
}

/** Formats a key for a person: `ctrl+x` as `Ctrl+X`, `up` as `↑`. */
export function chordLabel(chord: string): string {
  const plus = chord.lastIndexOf('+', chord.length - 2)
  const [held, name] = plus < 0 ? ['', chord] : [chord.slice(0, plus), chord.slice(plus + 1)]
  const words = held === '' ? [] : held.split('+').map(capital)
  const shown = KEY_LABELS[name] ?? (name.length === 1 ? (held === '' ? name : name.toUpperCase()) : capital(name))
  return [...words, shown].join('+')
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1)
}

const KEY_LABELS: Readonly<Record<string, string>> = {
  return: 'Enter',
  escape: 'Esc',
  up: '↑',
  down: '↓',
  left: '←',
  right: '→',
  pageup: 'PgUp',
  pagedown: 'PgDn',
}

/**
 * Parses `[keys]` of the person's file. Throws a `UserError` of one sentence, with file and line, for an unknown action or
 * key, and for two actions of one key.
 */
export function keySettings({ value, placeOf }: Pick<SettingsFile, 'value' | 'placeOf'>): KeySettings {
  const { preset = null, ...written } = value.keys ?? {}
  const remapped = new Map<KeyActionId, readonly string[]>()
  for (const [name, chords] of Object.entries(written)) {
    const place = placeOf('keys', name)
    const subject = `${place}: keys.${name}`
    remapped.set(
      actionNamed(name, place),
      [chords].flat().map(each => chordWritten(each, subject)),
    )
  }
  for (const id of remapped.keys()) checkFree(id, { preset, remapped }, placeOf('keys', id))
  return { preset, remapped }
}

function actionNamed(name: string, place: string): KeyActionId {
  const free = KEY_ACTIONS.filter((each: KeyAction) => each.isFixed !== true).map(({ id }) => id)
  const known = KEY_ACTIONS.find(({ id }) => id === name)
  if (known !== undefined && free.includes(known.id)) return known.id
  if (known !== undefined) {
    throw new UserError(
      'CM0204',
      `${place}: keys.${name} cannot be changed; its key is always ${known.chords.map(chordLabel).join(', ')}.`,
    )
  }
  const near = nearestName(name, [...free, 'preset'])
  const mend = near === null ? `the known ones are preset, ${free.join(', ')}.` : `did you mean "${near}"?`
  throw new UserError('CM0204', `${place}: keys has no action "${short(name)}"; ${mend}`)
}

/** Converts a written key to the form of `chordOf`. */
function chordWritten(text: string, subject: string): string {
  if ([...text].length === 1 && text.trim() !== '') return text
  const pieces = text === '+' ? ['+'] : text.toLowerCase().replace(/\+\+$/, '+plus').split('+')
  const last = pieces.at(-1) === 'plus' ? '+' : (pieces.at(-1) ?? '')
  const held = pieces.slice(0, -1)
  for (const each of held) if (!MODIFIERS.includes(each)) refuseKey(text, subject, nearest(each, MODIFIERS, held, last))
  const name = ALIASES[last] ?? last
  if (![...NAMED, 'space'].includes(name) && [...name].length !== 1)
    refuseKey(text, subject, nearest(last, [...NAMED, ...Object.keys(ALIASES), 'space'], held, null))
  if (held.includes('shift') && name !== 'return' && name !== 'tab') {
    throw new UserError(
      'CM0204',
      `${subject} is ${quoted(text)}, but terminals notice Shift only with Enter and Tab; use another key.`,
    )
  }
  const sent = held.join() === 'ctrl' ? SENT_AS[name] : undefined
  if (sent !== undefined)
    throw new UserError(
      'CM0204',
      `${subject} is ${quoted(text)}, but a terminal sends it as ${chordLabel(sent)}; use another key.`,
    )
  return [...MODIFIERS.filter(each => held.includes(each)), name].join('+')
}

const MODIFIERS = ['ctrl', 'alt', 'shift']
const ALIASES: Readonly<Record<string, string>> = {
  enter: 'return',
  esc: 'escape',
  pgup: 'pageup',
  pgdn: 'pagedown',
  del: 'delete',
}
const NAMED = [
  'up',
  'down',
  'left',
  'right',
  'home',
  'end',
  'return',
  'tab',
  'backspace',
  'delete',
  'escape',
  'pageup',
  'pagedown',
]
const SENT_AS: Readonly<Record<string, string>> = { h: 'backspace', i: 'tab', m: 'return', '[': 'escape' }

function nearest(typed: string, names: readonly string[], held: readonly string[], last: string | null): string | null {
  const near = nearestName(typed, names) ?? names.find(name => lettersOf(name) === lettersOf(typed)) ?? null
  if (near === null) return null
  return last === null
    ? [...held, near].join('+')
    : [...held.map(each => (each === typed ? near : each)), last].join('+')
}

/** Swapped letters are the most common typo. */
function lettersOf(name: string): string {
  return [...name].sort().join('')
}

function refuseKey(text: string, subject: string, near: string | null): never {
  const mend = near === null ? 'keys are written as "ctrl+x", "alt+up", "pagedown" or "d".' : `did you mean "${near}"?`
  throw new UserError('CM0204', `${subject} is ${quoted(text)}, which is not a key; ${mend}`)
}

/** Throws if a key of this action has another one too, or would type into the field. */
function checkFree(id: KeyActionId, settings: KeySettings, place: string): void {
  const keymap = new Keymap(settings)
  const own: KeyAction | undefined = KEY_ACTIONS.find(each => each.id === id)
  if (own === undefined) return
  for (const chord of keymap.chordsOf(id)) {
    if (own.context === 'field' && own.when !== 'empty' && (chord === 'space' || [...chord].length === 1)) {
      throw new UserError(
        'CM0204',
        `${place}: keys.${id} is "${chord}", but this key types a character into the field; use a key with ctrl or alt.`,
      )
    }
    const other = KEY_ACTIONS.find(
      (each: KeyAction) =>
        each.id !== id && areTogether(each, own) && keymap.chordsOf(each.id as KeyActionId).includes(chord),
    )
    if (other !== undefined) {
      throw new UserError(
        'CM0204',
        `${place}: keys.${id} is "${chord}", but "${other.id}" has the same key; change one of the two.`,
      )
    }
  }
}

/** Returns whether two actions can apply to the same key at the same time. */
function areTogether(a: KeyAction, b: KeyAction): boolean {
  if (a.when !== undefined && b.when !== undefined && a.when !== b.when) return false
  if (a.context === b.context) return true
  if (a.context === 'question' || b.context === 'question') return false
  return [a.context, b.context].includes('view') && a.context !== 'field' && b.context !== 'field'
}

function quoted(value: unknown): string {
  return short(JSON.stringify(value) ?? String(value))
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
