import { hostname } from 'node:os'
import { findSession } from '../../../project/find.ts'
import { codexInUse, listServers } from '../../../project/start/start-facts.ts'
import { wrapLine } from '../../../tell/words/cells.ts'
import { type Check, conclusionOf, type Finding, lineOfWaiting, linesOfFinding } from '../../../tell/words/doctor.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { statusLines } from '../../../tell/words/status.ts'
import type { SlashCommand } from '../composer/completion.ts'
import { helpLines } from '../start.ts'
import { openTheme } from '../terminal/theme.ts'
import { KeyOverlay } from '../view/key-overlay.ts'
import type { PersonScreen, SlashPlace } from './person-screen.ts'
import { reportLines } from './sessions-screen.ts'

/** `/help`: what there is of keys and commands. */
export async function showKeys(place: SlashPlace, commands: readonly SlashCommand[]): Promise<void> {
  const { screen } = place.person
  const { theme, options } = screen.model
  const shown = { theme, keymap: options.keymap, commands }
  if (theme.symbols) await screen.open(new KeyOverlay(shown))
  else screen.print(helpLines({ ...shown, columns: screen.output.columns }))
}

/** `/copy [command]`: has the terminal copy the last words of the agent, or the last command. */
export function copySlash({ person }: SlashPlace, rest: string): void {
  const { screen } = person
  const what = rest.trim()
  const { lastAnswer, lastCommand } = screen.model.pane
  const text = what === '' ? lastAnswer : what === 'command' ? (lastCommand?.command ?? null) : undefined
  if (text === undefined) screen.notice('/copy copies the last answer, /copy command the last command', 'warning')
  else if (text === null) screen.notice(what === '' ? 'No answer yet' : 'No command has run yet', 'warning')
  else if (screen.output.copy(text)) screen.notice(`Copied: ${formatCount(text.length, 'character')}`, 'good')
  else screen.notice('Too long to copy from here; open the log', 'warning')
}

export async function codexVersion({ context, records, settings }: SlashPlace): Promise<string> {
  return await codexInUse(context, records, settings).then(
    codex => `codex ${codex.version}`,
    () => 'no codex',
  )
}

/** As codex itself lists them. */
export async function showServers({ context, records, settings, person }: SlashPlace): Promise<void> {
  const { text, isFine } = await listServers(context, records, settings)
  person.screen.say(text === '' ? 'codex did not list its MCP servers.' : text, isFine ? 'plain' : 'warning')
}

/** `/web`: a link to the page, which is served if it is not, and its QR code. */
export async function showPage({ context, person }: SlashPlace): Promise<void> {
  const { screen } = person
  const [page, { linesOfQr }] = await Promise.all([
    import('../../../project/page/served.ts'),
    import('../blocks/qr.ts'),
  ])
  const served = await page.havePageServed(context)
  const { access } = await page.placeOfPage(context)
  const link = await page.linkToPage(access, served, 'steer')
  screen.say('Link to the page (works once, within an hour):')
  screen.print([link])
  if (!page.isReachedFromElsewhere(served)) screen.say(page.ONLY_HERE)
  else if (screen.model.theme.symbols) screen.print(['', ...linesOfQr(link)])
}

/** `/doctor`: looks whether all that a run needs is there. */
export async function showDoctor({ context, records, person }: SlashPlace): Promise<void> {
  const { screen } = person
  const { examine } = await import('../../../project/doctor/doctor.ts')
  const findings: Finding[] = []
  const onLate = (check: Check, ms: number) => screen.say(`${lineOfWaiting(check, ms)}\n`, 'plain')
  for await (const found of examine(context, { directory: records.directory, codexBin: null, onLate })) {
    findings.push(...found)
    for (const line of found.flatMap(finding => linesOfFinding(finding))) screen.say(`${line}\n`, 'plain')
  }
  if (!context.signal.aborted) screen.say(`\n${conclusionOf(findings)}\n`, 'plain')
}

/** `/status`: what `codemachine status` says, with all warnings in full. */
export async function showStatus({ context, records, person }: SlashPlace): Promise<void> {
  const { screen } = person
  const { columns } = screen.output
  const { theme } = screen.model
  const { readStatus } = await import('../../../project/watch/status.ts')
  const say = (problem: string) => screen.say(problem, 'warning')
  const report = await readStatus(context, [{ records, worktree: null }], say)
  const lines = statusLines(report, context.clock.now()).flatMap(line => {
    const [, label = '', text = line] = /^( {2}[a-z]+(?: [a-z]+)* +)(.*)$/.exec(line) ?? []
    const rows = wrapLine(text, Math.max(1, columns - label.length))
    const role = label.trim() === 'warned' ? 'warning' : 'plain'
    return rows.map(
      (row, at) => `${at === 0 ? theme.paint('dim', label) : ' '.repeat(label.length)}${theme.paint(role, row)}`,
    )
  })
  screen.print(['', ...lines])
}

const THEMES = {
  auto: "your terminal's own",
  dark: 'tuned for a dark background',
  light: 'tuned for a light background',
  plain: 'none',
}

const THEME_NAMES = Object.keys(THEMES) as (keyof typeof THEMES)[]

/** What each colour is used for, drawn in the theme that the choice is on. */
const THEME_SAMPLE = [
  '**Agents** say `this`, and link [that](https://example.org).',
  '```diff\n-const answer = 41\n+const answer = 42\n```',
  '```ts\nexport const name = "codemachine" // a comment\n```',
].join('\n\n')

export async function chooseTheme({ context, person }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const before = screen.model.theme
  const show = (name: string) => {
    const theme = THEME_NAMES.find(each => each === name)
    if (theme === undefined) return null
    screen.setTheme(openTheme({ theme, env: context.env, reader: person.isForReader, host: hostname() }))
    return theme
  }
  const typed = rest.trim()
  const options = THEME_NAMES.map(name => ({ id: name, label: name, hint: THEMES[name] }))
  const question = { title: 'Choose the colors. ↑ ↓ preview each.', markdown: THEME_SAMPLE, options, onMove: show }
  const chosen = await typedOrChosen(screen, typed, question)
  if (chosen === null) return screen.setTheme(before)
  const theme = show(chosen)
  if (theme === null) return screen.notice(`There is no theme ${typed}; use ${THEME_NAMES.join(', ')}`, 'warning')
  screen.say(
    `This screen now uses the theme ${theme}. To keep it, put screen.theme = "${theme}" into your config.toml.`,
  )
}

/** What was typed behind a command, or else is chosen; null: nothing is. */
export async function typedOrChosen(
  screen: PersonScreen['screen'],
  typed: string,
  question: Parameters<PersonScreen['screen']['choose']>[0],
): Promise<string | null> {
  if (typed !== '') return typed
  const answer = await screen.choose(question)
  return answer.kind === 'chosen' ? answer.id : null
}

/** `/report`: what a session has done, the newest if none is named. */
export async function showReport({ context, records, person }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const say = (problem: string) => screen.say(problem, 'warning')
  const id = await findSession(records, rest.trim() || null, say)
  const onWarning = (warning: string) => screen.say(`codemachine: ${oneLine(warning, 2_000)}`, 'warning')
  const place = { columns: screen.output.columns, theme: screen.model.theme, named: null, onWarning }
  const lines = await reportLines(context, { records, id }, place)
  if (lines === null) return screen.notice(`The journal of ${id} is empty or damaged`, 'warning')
  screen.print(lines)
}
