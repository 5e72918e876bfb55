import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { buildProgram } from '../src/doors/cli/program.ts'

const PAGE = fileURLToPath(new URL('../docs/reference/commands.md', import.meta.url))

/** docs/reference/commands.md, made from the command line itself. */
export function commandsPage(): string {
  const context = { program: 'codemachine', stdout: SILENT, stderr: SILENT, own: { detached: null } }
  const program = buildProgram(context as never, () => {})
  return `${HEAD}${program.commands.flatMap(each => sectionsOf(each, '##')).join('')}${optionsOf(program)}`
}

const SILENT = { write: () => true }

const HEAD = `# Commands

\`node scripts/commands-page.ts\` writes this page from the command line itself. \`codemachine help <command>\` shows the same, with examples.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | done. Without gates that means *not verified*. Of \`--agent\`: answered. Of a replay: replayed |
| 1 | a bug in codemachine; the journal is whole |
| 2 | wrong usage or settings; one sentence says what to fix, and nothing was started |
| 3 | a limit was reached: rounds, time, tokens or cost |
| 4 | needs a person: login, credit, a decision, a full or failing disk. Of \`review\` and \`verify\`: not agreed, or not proved. Of \`land\`: a conflict, or not proved. Of a workflow: a step failed |
| 5 | stalled: several rounds changed nothing, in spite of another approach and more effort |
| 6 | another codemachine runs here |
| 130, 143 | interrupted; \`codemachine resume\` continues |

\`codemachine [goal…]\` runs a session for the goal, then one for each queued prompt. \`-\` reads the goal from standard input. Without a goal it opens the
start screen; without a terminal it runs the queue. Its options are [at the end](#options-of-a-run).

`

/** A section for a command, and one for each command below it. The options that every run has stand at the end of the page alone. */
function sectionsOf(command: Command, level: string): string[] {
  const helper = command.createHelp()
  const isRun = command.options.some(({ long }) => long === '--max-tokens')
  const runOptions = new Set(isRun ? rootOf(command).options.map(({ long }) => long) : [])
  const rows = [
    ...command.registeredArguments.map(each => [helper.argumentTerm(each), helper.argumentDescription(each)]),
    ...helper
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help' && !runOptions.has(long))
      .map(each => [helper.optionTerm(each), helper.optionDescription(each)]),
  ]
  const table = rows.map(([term, words]) => `| \`${cell(term)}\` | ${cell(words)} |\n`).join('')
  const words = nameOf(command)
  const own = `${level} ${words}\n\n\`codemachine ${words} ${cell(
    helper
      .commandUsage(command)
      .split(' ')
      .slice(words.split(' ').length + 1)
      .join(' '),
  )}\`

${sentence(command.description())}${isRun ? ' Takes all [options of a run](#options-of-a-run), too.' : ''}

${table === '' ? '' : `| | |\n| --- | --- |\n${table}\n`}`
  return [own, ...command.commands.flatMap(each => sectionsOf(each, `${level}#`))]
}

function optionsOf(program: Command): string {
  const helper = program.createHelp()
  const rows = helper
    .visibleOptions(program)
    .map(each => `| \`${cell(helper.optionTerm(each))}\` | ${cell(helper.optionDescription(each))} |\n`)
  return `## Options of a run\n\nAll of these, and more, can stand in the [settings](settings.md).\n\n| | |\n| --- | --- |\n${rows.join('')}`
}

const rootOf = (command: Command): Command => (command.parent === null ? command : rootOf(command.parent))
const nameOf = (command: Command): string =>
  command.parent?.parent == null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
const cell = (text = '') => text.replaceAll('|', '\\|').replaceAll('\n', ' ').trim()
const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, commandsPage())
