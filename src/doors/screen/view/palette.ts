import { KEY_ACTIONS, type KeyAction, type KeyActionId } from '../../../project/settings/keys.ts'
import type { SlashCommand } from '../composer/completion.ts'
import type { ScreenModel } from '../screen/model.ts'
import type { Stage } from './full-view.ts'
import { ListView } from './list.ts'

/** What the palette does with what is chosen. */
interface PaletteActions {
  /** Does what a key does. */
  act(action: KeyActionId): void
  /** Runs a slash command. */
  command(name: string): void
}

/** One thing that is possible now. `key`: the key that does the same; empty: none. */
interface Possible {
  /** The id of an action of the table, or a command with its slash. */
  id: string
  name: string
  key: string
  does: string
  run(): void
}

/** The palette: everything that is possible now, with its key, found by typing. */
export function paletteOf(
  model: ScreenModel,
  commands: readonly SlashCommand[],
  { act, command }: PaletteActions,
): ListView<Possible> {
  const { theme } = model
  const { keymap } = model.options
  const keys = KEY_ACTIONS.filter(each => isPossible(each, model)).map(each => ({
    id: each.id,
    key: keymap.label(each.id),
    ...(CHOSEN[each.id] ?? { name: each.label, does: keymap.wordsOf(each).does.replaceAll('`', '') }),
    run: () => act(each.id),
  }))
  const typed = commands
    .filter(({ name }) => !KEYS_OF_COMMANDS.has(name) && NEEDS_OF_COMMANDS[name]?.(model) !== false)
    .map(({ name, description, note, takesText }) => ({
      id: `/${name}`,
      name: `/${name}`,
      key: '',
      does: note === null ? description : `${description} (${note})`,
      run: () => (takesText ? model.composer.setText(`/${name} `) : command(name)),
    }))
  const possible: readonly Possible[] = [...keys, ...typed]
  // What a slip would do comes first, and ends nothing.
  const rows = [...possible.filter(({ id }) => !ENDS.has(id)), ...possible.filter(({ id }) => ENDS.has(id))]
  return new ListView<Possible>({
    title: () => 'All commands',
    noun: 'action',
    theme,
    keymap,
    rows: () => rows,
    columns: [
      { head: 'Action', cell: ({ name }) => name, most: 26 },
      { head: 'Key', cell: ({ key }) => key, most: 8, role: () => 'accent' },
      { head: 'What it does', cell: ({ does }) => does, from: 60 },
    ],
    textOf: ({ id, name, key, does }) => `${name} ${key === '' ? does : key} ${WORDS[id] ?? ''}`.trimEnd(),
    idOf: ({ id }) => id,
    empty: 'No commands now.',
    open: (row, stage: Stage) => stage.leaveFor(() => row.run()),
    search: 'typed',
    hints: () => [],
  })
}

/** Whether an action of the field is one of the palette's at this moment. */
function isPossible({ id, context, isEdit }: KeyAction, model: ScreenModel): boolean {
  if (context !== 'field' || isEdit === true) return false
  const needs = NEEDS[id]
  return needs === undefined ? !NOT_OFFERED.has(id) : needs(model)
}

/** What a key does of several things, once it is chosen here. */
const CHOSEN: Readonly<Record<string, Pick<Possible, 'name' | 'does'>>> = {
  interrupt: { name: 'Interrupt the turn', does: 'asks then how to continue' },
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

const NEEDS: Readonly<Record<string, (model: ScreenModel) => boolean>> = {
  interrupt: ({ isRunning }) => isRunning,
  plan: ({ isRunning }) => isRunning,
  answer: ({ isRunning, asked, pane }) => isRunning && (asked.length > 0 || pane.state?.decision != null),
  log: ({ showsSession }) => showsSession,
  output: ({ pane }) => pane.lastCommand !== null,
  tasks: ({ showsSession }) => showsSession,
  agents: ({ isRunning }) => isRunning,
  diff: ({ showsSession }) => showsSession,
  copy: ({ pane }) => pane.lastAnswer !== null,
  take_back: ({ queued }) => queued > 0,
}

/** Commands that say something only at times. */
const NEEDS_OF_COMMANDS: Readonly<Record<string, (model: ScreenModel) => boolean>> = {
  diff: ({ showsSession }) => !showsSession,
  answer: ({ asked }) => asked.length > 0,
  decide: ({ pane }) => pane.state?.decision != null,
  skip: ({ isRunning, queued }) => isRunning && queued > 0,
  stop: ({ isRunning }) => isRunning,
  pause: ({ pane }) => pane.state?.pausedAt == null,
  unpause: ({ pane }) => pane.state?.pausedAt != null,
  retry: ({ pane }) => pane.state?.waiting != null,
  queue: ({ queued }) => queued > 0,
}

/** What the field itself does, and the palette. */
const NOT_OFFERED: ReadonlySet<string> = new Set(['submit', 'tell', 'palette'])
/** Commands that a key of the table does, too. */
const KEYS_OF_COMMANDS: ReadonlySet<string> = new Set(['help', 'palette', 'agents', 'copy'])
