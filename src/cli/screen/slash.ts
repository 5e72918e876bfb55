import { packageRoot } from '../../base/package-root.ts'
import { version } from '../../base/version.ts'
import { chooseCodexHome } from '../../codex/codex-home.ts'
import { findCodex } from '../../codex/find-codex.ts'
import { runProcess } from '../../platform/run-process.ts'
import { openTheme } from '../../ui/open-theme.ts'
import type { Ask } from '../../ui/screen/host.ts'
import { tell } from '../../ui/screen/tell.ts'
import { helpLines } from '../../ui/start/help-lines.ts'
import { type SlashCommandInfo, slashCommands } from '../../ui/start/slash-commands.ts'
import { printerOn } from './printer.ts'
import { chooseFromQueue, chooseModel, chooseSession } from './slash-choices.ts'
import { loginOnScreen, logoutOnScreen } from './slash-login.ts'
import type { SlashPlace } from './slash-place.ts'
import { showReport } from './slash-report.ts'

/** The commands as they are now. */
export function commandsOf({ person }: SlashPlace): SlashCommandInfo[] {
  const { facts, showsSession } = person.screen.model
  const always = slashCommands({ login: facts?.login ?? null })
  return showsSession ? [...OF_SESSION, ...always] : always
}

const OF_SESSION: readonly (SlashCommandInfo & { ask: Ask })[] = [
  { name: 'pause', description: 'Start no further round', note: null, ask: { type: 'pause' } },
  { name: 'unpause', description: 'Go on after a pause', note: null, ask: { type: 'unpause' } },
  { name: 'stop', description: 'Stop after this round', note: null, ask: { type: 'stop', now: false } },
  {
    name: 'skip',
    description: 'End this session, and go on with the next in the queue',
    note: null,
    ask: { type: 'skip' },
  },
  { name: 'retry', description: 'Do not wait any longer', note: null, ask: { type: 'retry' } },
]

/** Does what a slash command says. */
export async function runSlashCommand(place: SlashPlace, name: string, rest: string): Promise<void> {
  const { person, context } = place
  const { screen } = person
  const ofSession = OF_SESSION.find(command => command.name === name)
  if (ofSession) {
    await tell({ model: screen.model, host: person, clock: context.clock }, ofSession.ask)
    return
  }
  switch (name) {
    case 'exit':
      return person.leave()
    case 'help':
      return screen.print(
        helpLines({ columns: screen.output.columns, theme: screen.model.theme, commands: commandsOf(place) }),
      )
    case 'version':
      return screen.say(`codemachine ${version}, ${await codexVersion(place)}`)
    case 'mcp':
      return await listServers(place)
    case 'doctor': {
      const { doctor } = await import('../commands/doctor.ts')
      const inner = { ...context, stdout: printerOn(screen, 'plain'), stderr: printerOn(screen, 'warning') }
      await doctor(inner, { directory: place.records.directory })
      return
    }
    case 'start': {
      const { startSlash } = await import('../start/start-slash.ts')
      return await startSlash(place, rest)
    }
    case 'templates': {
      const { templatesSlash } = await import('../start/templates-slash.ts')
      return await templatesSlash(place, rest)
    }
    case 'login':
      return await loginOnScreen(place, await codexOf(place), rest)
    case 'logout':
      return await logoutOnScreen(place, await codexOf(place))
    case 'theme':
      return await chooseTheme(place, rest)
    case 'model':
      return await chooseModel(place)
    case 'resume':
      return await chooseSession(place, rest)
    case 'report':
      return await showReport(place, rest)
    case 'queue':
      return await chooseFromQueue(place)
    default:
      return screen.say(`/${name}: there is no such command`, 'warning')
  }
}

async function codexOf({ context, settings }: SlashPlace): ReturnType<typeof findCodex> {
  const { env, platform, arch } = context
  return await findCodex({ flag: settings.codexBin, env, platform, arch, packageRoot })
}

async function codexVersion(place: SlashPlace): Promise<string> {
  return await codexOf(place).then(
    codex => `codex ${codex.version}`,
    () => 'no codex',
  )
}

const LIST_MS = 20_000
const LIST_BYTES = 256 * 1024

/** As codex itself lists them. */
async function listServers(place: SlashPlace): Promise<void> {
  const { context, records, settings, person } = place
  const { env, home } = context
  const codex = await codexOf(place)
  const codexHome = await chooseCodexHome({ setting: settings.codexHome, env, home, codemachineHome: records.root })
  const listed = await runProcess(codex.path, ['mcp', 'list'], {
    directory: records.root,
    env: { ...env, ...codexHome.env },
    encoding: 'utf8',
    outputLimit: LIST_BYTES,
    timeoutMs: LIST_MS,
  })
  const said = `${listed.stdout}${listed.stderr}`.trim()
  person.screen.say(
    said === '' ? 'codex says nothing of its MCP servers.' : said,
    listed.exitCode === 0 ? 'plain' : 'warning',
  )
}

const THEMES = ['auto', 'dark', 'light', 'plain'] as const

async function chooseTheme({ context, person }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const typed = rest.trim()
  const answer =
    typed === ''
      ? await screen.choose({
          title: 'Which colours?',
          options: [
            { id: 'auto', label: 'auto', hint: "your terminal's own" },
            { id: 'dark', label: 'dark', hint: 'tuned for a dark background' },
            { id: 'light', label: 'light', hint: 'tuned for a light background' },
            { id: 'plain', label: 'plain', hint: 'none' },
          ],
        })
      : { kind: 'chosen' as const, id: typed }
  if (answer.kind !== 'chosen') return
  const theme = THEMES.find(each => each === answer.id)
  if (theme === undefined) return screen.notice(`There is no theme ${typed}; use ${THEMES.join(', ')}`, 'warning')
  screen.setTheme(openTheme({ theme, env: context.env, reader: person.isForReader }))
  screen.say(
    `The colours are ${theme} on this screen. To keep them, put screen.theme = "${theme}" into your config.toml.`,
  )
}
