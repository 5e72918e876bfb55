import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chordLabel, KEY_ACTIONS, type KeyAction, type KeyContext } from '../src/project/settings/keys.ts'

const PAGE = fileURLToPath(new URL('../docs/reference/keys.md', import.meta.url))

/** docs/reference/keys.md, made from the table of keys. */
export function keysPage(): string {
  return `${HEAD}${CONTEXTS.map(([context, isEdit, words]) => sectionOf(context, isEdit, words)).join('')}`
}

const HEAD = `# Keys

\`node scripts/keys-page.ts\` writes this page from the table in \`src/project/settings/keys.ts\`.
The overlay (\`?\` on an empty field), the palette (Ctrl+X) and the hints in the last line use the same table. A *fixed* key cannot be remapped.

## Remap

In your own \`config.toml\` (a project's file cannot set keys):

\`\`\`toml
[keys]
preset = "vim"                    # adds the vim keys below to pager, lists and changes
palette = "alt+x"                 # one key replaces those of the table
diff = ["alt+g", "ctrl+]"]        # or several
copy = []                         # or none
\`\`\`

Keys are written as \`ctrl+x\`, \`alt+up\`, \`shift+tab\`, \`pagedown\`, \`space\` or \`d\`. codemachine refuses an unknown action, an unknown key, and a key
that would mean two actions at the same time. It names the file and the line. Terminals send Ctrl+H, Ctrl+I, Ctrl+M and Ctrl+[ as Backspace, Tab, Enter and Esc.

While a session runs, the first Enter asks: tell the agent, or queue it? \`screen.enter\` keeps your answer. Tab does the other.
\`screen.mouse = false\` leaves wheel and clicks to the terminal in views that fill the screen. Elsewhere the terminal always has them.
`

const CONTEXTS: readonly [KeyContext, boolean, string][] = [
  ['field', false, '## In the field\n\nOn the screen of a session, and on the start screen.'],
  ['field', true, '## In the text of the field\n\nThe keys of readline; fixed.'],
  [
    'view',
    false,
    '## In everything that fills the screen\n\nThe log, the output of a command, lists, changes, and the overlay of keys.',
  ],
  ['pager', false, '## In the log and other texts'],
  ['list', false, '## In lists\n\nSessions and agents. The palette takes what you type as its search.'],
  ['review', false, '## In changes'],
  ['question', false, '## In a question'],
]

function sectionOf(context: KeyContext, isEdit: boolean, words: string): string {
  const actions = (KEY_ACTIONS as readonly KeyAction[]).filter(
    each => each.context === context && (each.isEdit === true) === isEdit,
  )
  const hasVim = actions.some(({ vim }) => vim !== undefined)
  const head = hasVim
    ? '| action | keys | vim | |\n| --- | --- | --- | --- |\n'
    : '| action | keys | |\n| --- | --- | --- |\n'
  const rows = actions.map(({ id, chords, vim = [], does, when, isFixed }) => {
    const fixed = isFixed === true && !isEdit ? ', fixed' : ''
    const where = when === 'empty' ? 'on an empty field: ' : when === 'text' ? 'with text: ' : ''
    const cells = [`\`${id}\`${fixed}`, keysOf(chords), ...(hasVim ? [keysOf(vim)] : []), where + does]
    return `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  })
  return `\n${words}\n\n${head}${rows.join('')}`
}

function keysOf(chords: readonly string[]): string {
  return chords.map(chord => (/^[\W]$/.test(chord) ? `\`${chord}\`` : chordLabel(chord))).join(', ')
}

if (import.meta.main) writeFileSync(PAGE, keysPage())
