import { commandTree, EXIT_CODES } from './command-tree.ts'

/** man/codemachine.1, made from the command line itself. */
export function manPage(): string {
  const { entries, options, description } = commandTree()
  const commands = entries.map(
    ({ words, usage, description: what, isRun }) =>
      `.SS ${roff(`codemachine ${words} ${usage}`.trim())}\n${roff(what)}${isRun ? '\nIt takes all options of a run, too.' : ''}\n`,
  )
  return `.\\" node scripts/commands-page.ts writes this page from the command line itself.
.TH CODEMACHINE 1 "" codemachine "User Commands"
.SH NAME
codemachine \\- leave a coding agent to work overnight
.SH SYNOPSIS
.B codemachine
.RI [ options ]
.RI [ goal ...]
.br
.B codemachine
.I command
.RI [ options ]
.SH DESCRIPTION
${roff(description)}
.PP
With a goal it runs a session, then one for each queued prompt.
The goal \\(lq\\-\\(rq is read from standard input.
Without a goal it opens the start screen; without a terminal it runs the queue.
.PP
.B codemachine help
.I command
shows the options of a command, with examples.
.SH OPTIONS OF A RUN
${listOf(options)}.SH COMMANDS
${commands.join('')}.SH EXIT STATUS
${listOf(EXIT_CODES)}.SH FILES
.TP
.I codemachine.toml
Settings and gates of the project.
.TP
.I ~/.config/codemachine/config.toml
Your own settings, below $XDG_CONFIG_HOME if that is set.
.TP
.I ~/.codemachine
Records of all sessions; CODEMACHINE_HOME moves them.
.SH SEE ALSO
The folder docs of the package, and
.BR "codemachine help" .
`
}

function listOf(rows: readonly (readonly [term: string, meaning: string])[]): string {
  return rows.map(([term, meaning]) => `.TP\n.B ${roff(term)}\n${roff(meaning)}\n`).join('')
}

/** Returns a text of one line as roff shows it: no request, no escape, ASCII alone. */
function roff(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/`([^`]*)`|\*([^*]+)\*/g, (_, code = '', word = '') => code || word)
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/[^\x20-\x7e]/g, sign => `\\[u${sign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}]`)
    .replace(/^(?=[.'])/, '\\&')
}
