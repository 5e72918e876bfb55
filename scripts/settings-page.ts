import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import * as v from 'valibot'
import { type Right, rightOf, settingInfos } from '../src/project/settings/schema.ts'

const DEFAULTS = fileURLToPath(new URL('../settings.js', import.meta.url))

/** docs/reference/settings.md, made from the schema of the settings, and from `settings.js`, which says what each is. */
export function settingsPage(): string {
  const { meanings, defaults } = readDefaults()
  const rows = settingInfos.map(({ key, toml, flag, schema }) => {
    const wanted = v.getDescription(schema as never) ?? ''
    const cells = [
      `\`${toml}\``,
      flag === null ? '' : `\`${flag}\``,
      `\`${defaults.get(key) ?? 'null'}\``,
      `${meanings.get(key) ?? ''}${wanted === '' ? '' : ` Use ${wanted}.`}`,
      PROJECT_RIGHTS[rightOf(schema) ?? 'none'],
    ]
    return `| ${cells.map(cell).join(' | ')} |\n`
  })
  return `${HEAD}${rows.join('')}${TAIL}`
}

/** What a project's own file may say of a setting. */
export const PROJECT_RIGHTS: Readonly<Record<Right, string>> = {
  free: 'anything',
  lower: 'only lower',
  'never-lower': 'only higher',
  'never-higher': 'only lower',
  'not-off': 'only on',
  yields: 'unless you set it',
  'not-looser': 'only stricter',
  'the-same': 'only your value',
  none: 'nothing',
}

/** Returns what the comments of `settings.js` say of each setting, and its default as it is written. */
export function readDefaults(): { meanings: Map<string, string>; defaults: Map<string, string> } {
  const text = readFileSync(DEFAULTS, 'utf8')
  const { program, comments } = parseSync('settings.js', text)
  const [meanings, defaults] = [new Map<string, string>(), new Map<string, string>()]
  const tables: { name: string; end: number }[] = []
  new Visitor({
    Property({ key, value, start, end }) {
      while (tables.length > 0 && start >= (tables.at(-1)?.end ?? 0)) tables.pop()
      if (key.type !== 'Identifier') return
      const name = [...tables.map(table => table.name), key.name].join('.')
      if (value.type === 'ObjectExpression') {
        tables.push({ name: key.name, end })
        return
      }
      const above = comments.findLast(comment => comment.end <= start && text.slice(comment.end, start).trim() === '')
      meanings.set(
        name,
        (above?.value ?? '')
          .replace(/^\*|\n\s*\*/g, ' ')
          .replace(/\s+/g, ' ')
          .trim(),
      )
      defaults.set(name, text.slice(value.start, value.end).replaceAll("'", '"'))
    },
  }).visit(program)
  return { meanings, defaults }
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

const HEAD = `# Settings

\`node scripts/settings-docs.ts\` writes this page from \`settings.js\` and the schema of the settings.

\`\`\`toml
# ~/.config/codemachine/config.toml
max_time = "9h"         # done, or stopped safely, when you are back
max_tokens = "20M"
max_usage = 90          # leave a tenth of the usage window for the day
max_wait = "6h"         # end and tell me, if a wait would take longer
command_minutes = 90    # the test suite is slow

[notify]
command = ["notify-send", "codemachine"]
webhook = "https://ntfy.example.org/my-builds"
events = ["ended", "needs-person", "waiting", "stuck"]
\`\`\`

Editors check and complete files by the schemas that \`codemachine settings schema\` lists; for Taplo, begin a file with \`#:schema\` and a path or address.

## Where to set them

A later place overrides an earlier one:

1. \`settings.js\` of the package: the defaults.
2. \`~/.config/codemachine/config.toml\` (or in \`$XDG_CONFIG_HOME\`): yours.
3. \`codemachine.toml\` in the work directory: the project's. Agents can write it, so it cannot set everything.
4. The environment, such as \`CODEMACHINE_MAX_TIME\` or \`CODEMACHINE_NOTIFY_WEBHOOK\`. A list is a JSON array. Two names differ: \`codex_bin\` is \`CODEX_BIN\`, and \`fleet.queue\` is \`CODEMACHINE_QUEUE\`.
5. The command line.

If there is a mistake, codemachine names the file, the line and the key, and starts nothing. It reads both files again before each round. New limits, \`notify\`, \`decide_after\` and prompts of your own agents then apply from that round on. During a run, a project's file can only lower limits.

\`CODEMACHINE_HOME\` moves the records. \`CODEMACHINE_BROWSER\` is the browser that \`report --png\` uses. \`OTEL_*\` export [traces and metrics](../guides/server.md#traces-and-metrics).

## All settings

The last column says what a project's own file may set. For \`true\` and \`false\`, *only lower* means \`false\`.

| setting | flag | default | meaning | project |
| --- | --- | --- | --- | --- |
`

const TAIL = `
- **Time** has a unit: \`"8h"\`, \`"90m"\`, \`"1h30m"\`, \`"2d"\`.
- **Tokens** are a number or a text: \`5000000\`, \`"500k"\`, \`"1.5M"\`.
- **Sizes** are bytes or a text: \`"2G"\`, \`"500M"\`.

## Tables

| table | | project |
| --- | --- | --- |
| \`[[gates]]\` | [gates](gates.md) | more of them, never in place of yours |
| \`[hooks.MOMENT]\` | [hooks](../guides/hooks.md) | more of them, in the sandbox |
| \`[agents.NAME]\` | [agents of your own](../guides/team-of-agents.md#agents-of-your-own) | more of them, never in place of yours or a shipped one |
| \`[providers.NAME]\` | [model servers](../guides/local-model.md#your-own-server) | nothing |
| \`[engines.NAME]\` | [other engines](../guides/engines.md#an-engine-of-your-own) | nothing |
| \`[prices."MODEL"]\` | [prices](../guides/cost.md#in-money) | nothing |
| \`[keys]\` | [keys](keys.md) | nothing |

## Sandboxes

| mode | an agent may write | network |
| --- | --- | --- |
| \`read-only\` | its memory, \`.codemachine/\` | no |
| \`workspace-write\` | the work directory, the repository's \`.git\`, temporary directories | with \`--network\` |
| \`danger-full-access\` | everything that you may | yes |

Without the network even loopback is closed. A test suite that opens a port needs \`--network\`. A Node program that reads the output of another Node program through a pipe gets nothing there.
`
