import { findSession } from '../../app/find.ts'
import type { RunFlags } from '../../app/run-flags.ts'
import { reportCard } from '../../app/savepoints.ts'
import { resumableSessions } from '../../app/start/start-facts.ts'
import type { NewStart } from '../../app/work-through.ts'
import type { CliContext } from '../../app/world.ts'
import { packageRoot, version } from '../../base/package.ts'
import { chooseCodexHome, findCodex } from '../../engines/codex/find-codex.ts'
import { runWithExeca } from '../../platform/run-with-execa.ts'
import type { Records } from '../../records/records.ts'
import { askWhoRuns } from '../../records/run-lock.ts'
import { readReport } from '../../report/write.ts'
import type { Settings } from '../../settings/schema.ts'
import { oneLine } from '../../words/cells.ts'
import { formatCount } from '../../words/numbers.ts'
import { roleOf } from '../blocks/frame.ts'
import { type SlashCommandInfo, slashCommands } from '../composer/completion.ts'
import { type Ask, tell } from '../screen/controls.ts'
import { helpLines } from '../start.ts'
import { openTheme } from '../terminal/cells.ts'
import { askForMore, type MoreFlags, type PersonScreen, printerOn } from './person-screen.ts'
import { loginOnScreen, logoutOnScreen } from './slash-login.ts'

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
      const { doctor } = await import('../../cli/commands/doctor.ts')
      const inner = { ...context, stdout: printerOn(screen, 'plain'), stderr: printerOn(screen, 'warning') }
      await doctor(inner, { directory: place.records.directory })
      return
    }
    case 'start': {
      const { startSlash } = await import('./slash-start.ts')
      return await startSlash(place, rest)
    }
    case 'templates': {
      const { templatesSlash } = await import('./slash-start.ts')
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
  const listed = await runWithExeca(codex.path, ['mcp', 'list'], {
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

const GOAL_CHARS = 80

/** `/resume`: which session to go on with. */
async function chooseSession({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('A session that is only watched is resumed where it runs', 'warning')
  if (start.isRunning())
    return screen.notice('A session is at work; /stop ends it, and another one can be resumed then', 'warning')
  const goOn = async (session: string) => {
    const more = await askForMore(screen, records, session)
    if (more !== null) start.resume(session, more)
  }
  if (rest.trim() !== '') return await goOn(await findSession(records, rest.trim()))
  const sessions = await resumableSessions(records, context.platform)
  if (sessions.length === 0) return screen.notice('There is no session to go on with', 'warning')
  if (start.isRunning()) return
  const answer = await screen.choose({
    title: 'Which session goes on?',
    options: sessions.map(({ id, goal, rounds, stopped }) => ({
      id,
      label: oneLine(goal.trim(), GOAL_CHARS),
      hint: `${id}, ${stopped}, ${formatCount(rounds, 'round')}`,
    })),
  })
  if (answer.kind === 'chosen') await goOn(answer.id)
}

/** `/queue`: what waits, to be begun or taken out. */
async function chooseFromQueue({ person, start }: SlashPlace): Promise<void> {
  const { screen } = person
  const prompts = await person.queue.list()
  if (prompts.length === 0) return screen.notice('Nothing waits in the queue', 'warning')
  const canStart = start !== null && !start.isRunning()
  const answer = await screen.choose({
    title: `${formatCount(prompts.length, 'prompt')} waiting. Choose one to take it back into the composer.`,
    options: [
      ...(canStart ? [{ id: 'work', label: 'Work through the queue now' }] : []),
      ...prompts.map(({ id, prompt }) => ({
        id,
        label: oneLine(prompt.trim(), GOAL_CHARS),
      })),
    ],
  })
  if (answer.kind !== 'chosen') return
  if (answer.id === 'work') return start?.workThroughQueue()
  const prompt = prompts.find(({ id }) => id === answer.id)
  if (prompt === undefined) return
  const isTaken = await person.queue.takeBack(prompt, text => screen.model.addText(text))
  if (!isTaken) screen.notice('Its session has begun', 'warning')
}

const EFFORTS = ['minimal', 'low', 'medium', 'high', 'xhigh']

/** `/model`: with which model, and how hard it thinks. */
async function chooseModel({ person, start, settings }: SlashPlace): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('The model is chosen where the session is started', 'warning')
  const now = start.flags().model ?? settings.model
  const model = await screen.choose({
    title: 'Which model?',
    options: [
      { id: 'as-it-is', label: now === null ? "codex's own choice" : oneLine(now, GOAL_CHARS), hint: 'as it is' },
    ],
    freeText: 'The name of another …',
  })
  if (model.kind !== 'text' && model.kind !== 'chosen') return
  const effort = await screen.choose({
    title: 'How hard does it think?',
    options: [{ id: 'as-it-is', label: 'As it is' }, ...EFFORTS.map(id => ({ id, label: id }))],
    freeText: 'Another effort that the model knows …',
  })
  if (effort.kind !== 'text' && effort.kind !== 'chosen') return
  const chosen = effort.kind === 'text' ? effort.text.trim() : effort.id === 'as-it-is' ? null : effort.id
  start.choose({
    ...(model.kind === 'text' ? { model: model.text.trim() } : {}),
    ...(chosen === null ? {} : { effort: chosen }),
  })
  screen.notice('It counts from the next session on; -m and --effort say the same on the command line', 'good')
}

/** What a slash command may reach. */
export interface SlashPlace {
  context: CliContext
  records: Records
  settings: Settings
  person: PersonScreen
  /** What can be started here; null where a session is only watched. */
  start: SlashStart | null
}

/** What can be set going where nothing runs yet. */
interface SlashStart {
  isRunning(): boolean
  flags(): RunFlags
  /** Goes on with a session, which may take so much from now on. */
  resume(session: string, more: MoreFlags): void
  /** Works through what waits. */
  workThroughQueue(): void
  /** Begins a session from the specification. */
  begin(session: NewStart): void
  /** For the runs to come. */
  choose(flags: Pick<RunFlags, 'model' | 'effort'>): void
}

/** `/report`: what a session has done, the newest if none is named. */
async function showReport({ context, records, person }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const say = (problem: string) => screen.say(problem, 'warning')
  const runner = await askWhoRuns(records.lock, context.platform, say)
  const id = await findSession(records, rest.trim() || null, say)
  const data = await readReport(records.journal(id), id, runner)
  if (data === null) return screen.notice(`The journal of ${id} holds no session`, 'warning')
  const { columns } = screen.output
  const lines = await reportCard(data, { context, records, columns, named: null })
  screen.print(lines.map(({ text, tone }) => screen.model.theme.paint(roleOf(tone), text)))
}
