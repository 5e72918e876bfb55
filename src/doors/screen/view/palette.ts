import { KEY_ACTIONS, type KeyAction, type KeyActionId } from '../../../project/settings/keys.ts'
import type { SlashCommand } from '../composer/completion.ts'
import type { ScreenModel } from '../screen/model.ts'
import type { Role } from '../terminal/theme.ts'
import type { Stage } from './full-view.ts'
import { ListView } from './list.ts'

/** What the palette does with what is chosen. */
interface PaletteActions {
  /** Does what a key does. */
  act(action: KeyActionId): void
  /** Runs a slash command. */
  command(name: string): void
}

/** One thing that can be done. `key`: the key that does the same; empty: none. */
interface Possible {
  /** The id of an action of the table, or a command with its slash. */
  id: string
  name: string
  key: string
  does: string
  /** Why it cannot be done now; null: it can. */
  problem: string | null
  run(): void
}

/** The palette: everything that is possible now, with its key, found by typing. A search finds what is not possible now, with the reason. */
export function paletteOf(
  model: ScreenModel,
  commands: readonly SlashCommand[],
  { act, command }: PaletteActions,
): ListView<Possible> {
  const { theme } = model
  const { keymap } = model.options
  const keys = KEY_ACTIONS.filter(isOffered).map(each => ({
    id: each.id,
    key: keymap.label(each.id),
    ...(CHOSEN[each.id] ?? { name: each.label, does: keymap.wordsOf(each).does.replaceAll('`', '') }),
    needs: NEEDS[each.id],
    run: () => act(each.id),
  }))
  const typed = commands
    .filter(({ name }) => !KEYS_OF_COMMANDS.has(name))
    .map(({ name, description, note, takesText }) => ({
      id: `/${name}`,
      name: `/${name}`,
      key: '',
      does: note === null ? description : `${description} (${note})`,
      needs: NEEDS_OF_COMMANDS[name],
      run: () => (takesText ? model.composer.setText(`/${name} `) : command(name)),
    }))
  const all = [...keys, ...typed].map(({ needs, ...each }) => ({ ...each, ...problemOf(needs, model) }))
  const possible: readonly Possible[] = all.filter(({ problem }) => problem === null)
  const impossible = all
    .filter(({ problem }) => problem !== null && problem !== '')
    .map(each => ({
      ...each,
      does: `not now: ${each.problem}`,
      run: () => model.notice(`Not now: ${each.problem}`, 'warning'),
    }))
  // What a slip would do comes first, and ends nothing.
  const rows = [...possible.filter(({ id }) => !ENDS.has(id)), ...possible.filter(({ id }) => ENDS.has(id))]
  return new ListView<Possible>({
    title: () => 'All commands',
    noun: 'action',
    theme,
    keymap,
    rows: () => rows,
    alsoFound: impossible,
    columns: [
      { head: 'Action', cell: ({ name }) => name, most: 26, role: roleIn('plain') },
      { head: 'Key', cell: ({ key }) => key, most: 8, role: roleIn('accent') },
      { head: 'What it does', cell: ({ does }) => does, from: 60, role: roleIn('plain') },
    ],
    textOf: ({ id, name, key, does }) => `${name} ${key === '' ? does : key} ${WORDS[id] ?? ''}`.trimEnd(),
    idOf: ({ id }) => id,
    empty: 'No commands now.',
    open: (row, stage: Stage) => stage.leaveFor(() => row.run()),
    search: 'typed',
    hints: () => [],
  })
}

/** How a cell is painted: that of what is not possible now is grey. */
function roleIn(role: Role): (row: Possible) => Role {
  return ({ problem }) => (problem === null ? role : 'dim')
}

/** Whether an action of the field is one of the palette's. */
function isOffered({ id, context, isEdit }: KeyAction): boolean {
  return context === 'field' && isEdit !== true && !NOT_OFFERED.has(id)
}

/** What something needs, and why it is not possible without; empty: another row does the same then. */
type Needs = readonly [isMet: (model: ScreenModel) => boolean, problem: string]

function problemOf(needs: Needs | undefined, model: ScreenModel): { problem: string | null } {
  return { problem: needs === undefined || needs[0](model) ? null : needs[1] }
}

/** What a key does of several things, once it is chosen here. */
const CHOSEN: Readonly<Record<string, Pick<Possible, 'name' | 'does'>>> = {
  interrupt: { name: 'Interrupt the round', does: 'then asks how to continue' },
  plan: { name: 'Change the plan', does: 'asks what should change' },
  diff: { name: 'Changes; restore a file', does: 'what changed since the start of the session, file by file' },
}

/** Other words that things are looked for by. */
const WORDS: Readonly<Record<string, string>> = {
  help: 'shortcuts bindings',
  log: 'transcript history scrollback',
  output: 'transcript',
  tasks: 'todo checklist',
  agents: 'subagents',
  diff: 'diff review undo revert rewind restore',
  copy: 'clipboard yank',
  take_back: 'undo cancel unqueue queue edit',
  search: 'history find',
  plan: 'edit replan',
  interrupt: 'cancel stop abort',
  leave: 'quit exit close',
  suspend: 'background',
  '/sessions': 'history search',
  '/diff': 'review undo revert rewind restore put a file back',
  '/theme': 'colors dark light',
  '/stop': 'cancel quit end abort',
  '/exit': 'quit close',
  '/detach': 'leave background quit',
  '/pause': 'hold wait',
  '/unpause': 'continue',
  '/status': 'usage tokens cost warnings',
}

/** What ends or leaves something. */
const ENDS: ReadonlySet<string> = new Set([
  'suspend',
  '/stop-agent',
  '/skip',
  '/logout',
  '/detach',
  '/stop',
  '/exit',
  'leave',
  'interrupt',
])

const NO_SESSION = 'no session is running'
const NONE_SHOWN = 'there is no session yet'
const EMPTY_QUEUE = 'the queue is empty'

const NEEDS: Readonly<Record<string, Needs>> = {
  interrupt: [({ isRunning }) => isRunning, NO_SESSION],
  plan: [({ isRunning }) => isRunning, NO_SESSION],
  answer: [({ isRunning, asked, pane }) => isRunning && (asked.length > 0 || pane.state?.decision != null), ''],
  log: [({ showsSession }) => showsSession, NONE_SHOWN],
  output: [({ pane }) => pane.lastCommand !== null, 'no command has run'],
  tasks: [({ showsSession }) => showsSession, NONE_SHOWN],
  agents: [({ isRunning }) => isRunning, NO_SESSION],
  diff: [({ showsSession }) => showsSession, ''],
  copy: [({ pane }) => pane.lastAnswer !== null, 'no agent has said anything'],
  take_back: [({ queued }) => queued > 0, EMPTY_QUEUE],
}

/** Commands that say something only at times. */
const NEEDS_OF_COMMANDS: Readonly<Record<string, Needs>> = {
  diff: [({ showsSession }) => !showsSession, ''],
  answer: [({ asked }) => asked.length > 0, 'no question is open'],
  decide: [({ pane }) => pane.state?.decision != null, 'no decision is open'],
  skip: [({ isRunning, queued }) => isRunning && queued > 0, EMPTY_QUEUE],
  stop: [({ isRunning }) => isRunning, NO_SESSION],
  pause: [({ pane }) => pane.state?.pausedAt == null, 'the session is paused'],
  unpause: [({ pane }) => pane.state?.pausedAt != null, 'the session is not paused'],
  retry: [({ pane }) => pane.state?.waiting != null, 'the session waits for nothing'],
  queue: [({ queued }) => queued > 0, EMPTY_QUEUE],
}

/** What the field itself does, and the palette. */
const NOT_OFFERED: ReadonlySet<string> = new Set(['submit', 'tell', 'palette'])
/** Commands that a key of the table does, too. */
const KEYS_OF_COMMANDS: ReadonlySet<string> = new Set(['help', 'palette', 'agents', 'copy'])
