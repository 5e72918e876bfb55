import { writeFileSync } from 'node:fs'
import { commandTree, EXIT_CODES } from './command-tree.ts'
import { manPage } from './man-page.ts'

/** docs/reference/commands.md, made from the command line itself. */
export function commandsPage(): string {
  const { entries, options } = commandTree()
  const sections = entries.map(({ words, depth, usage, description, isRun, rows }) => {
    const table = rows.length === 0 ? '' : `${tableOf('| | |', rows)}\n`
    return `${'#'.repeat(depth + 1)} ${words}\n\n\`codemachine ${words} ${cell(usage)}\`

${description}${isRun ? ' Takes all [options of a run](#options-of-a-run), too.' : ''}

${table}`
  })
  return `${HEAD}${sections.join('')}${OPTIONS}${tableOf('| | |', options)}`
}

const HEAD = `# Commands

\`node scripts/commands-page.ts\` writes this page from the command line itself. \`codemachine help <command>\` shows the same, with examples.

## Exit codes

${tableOf('| code | meaning |', EXIT_CODES, text => text)}
\`codemachine [goal…]\` runs a session for the goal, then one for each queued prompt. \`-\` reads the goal from standard input. Without a goal it opens the
start screen; without a terminal it runs the queue. Its options are [at the end](#options-of-a-run).

`
const OPTIONS = `## Options of a run

All of these, and more, can stand in the [settings](settings.md).

`

function tableOf(
  head: string,
  rows: readonly (readonly [string, string])[],
  term = (text: string) => `\`${cell(text)}\``,
): string {
  return `${head}\n| --- | --- |\n${rows.map(([name, meaning]) => `| ${term(name)} | ${cell(meaning)} |\n`).join('')}`
}

function cell(text = ''): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ').trim()
}

if (import.meta.main) {
  const root = new URL('../', import.meta.url)
  writeFileSync(new URL('docs/reference/commands.md', root), commandsPage())
  writeFileSync(new URL('man/codemachine.1', root), manPage())
}
