import { UserError } from '../../../base/errors.ts'
import { version } from '../../../base/package.ts'
import type { QueuedPrompt } from '../../../core/shapes/queue.ts'
import { findSession } from '../../../project/find.ts'
import type { Ask } from '../../../project/library.ts'
import { checkPrompt } from '../../../project/open-project.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { findUnfinished } from '../../../project/resume.ts'
import { describeSpecification, goalOf, IS_IT_COMPLETE, specificationHere } from '../../../project/start/dry-run.ts'
import { resumableSessions } from '../../../project/start/start-facts.ts'
import { chooseTemplate, startableTemplates, templateNamed } from '../../../project/start/templates.ts'
import { termsInWords } from '../../../tell/words/commands.ts'
import type { LoginState } from '../../../tell/words/login.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { oneLine, titleLine } from '../../../tell/words/safe-text.ts'
import type { SlashCommand } from '../composer/completion.ts'
import { answerCommand } from '../screen/asked.ts'
import { answerDecision, askAndNotify, reachAgent } from '../screen/dialogs.ts'
import { askToLeave, askToSkip } from '../screen/how-it-goes-on.ts'
import type { SlashPlace } from './person-screen.ts'
import { goOnWith, openSessions, whyNoResume } from './sessions-screen.ts'
import { changeSlash, followSlash, planSlash, teamSlash } from './slash-change.ts'
import { loginOnScreen, logoutOnScreen } from './slash-login.ts'
import {
  chooseTheme,
  codexVersion,
  copySlash,
  showDoctor,
  showKeys,
  showPage,
  showReport,
  showServers,
  showStatus,
  typedOrChosen,
} from './slash-look.ts'

/** The commands as they are now. */
export function commandsOf({ person }: Pick<SlashPlace, 'person'>): readonly SlashCommand[] {
  const { facts, options, showsSession } = person.screen.model
  const [login, hasOwnLogin] = [facts?.login ?? null, facts?.hasOwnLogin ?? null]
  return slashCommands({ login, hasOwnLogin, showsSession, isDemo: options.isDemo === true })
}

/**
 * The commands in the order of the popup; of `/login` and `/logout` the one that applies: a login of codemachine's own can be
 * taken away, whatever the provider of the rounds needs. Null while unknown.
 */
export function slashCommands({
  login,
  hasOwnLogin = null,
  showsSession = false,
  isDemo = false,
}: {
  login: LoginState | null
  hasOwnLogin?: boolean | null
  showsSession?: boolean
  isDemo?: boolean
}): readonly Command[] {
  const isIn = login?.kind === 'in' || hasOwnLogin === true
  const note = login?.kind === 'in' ? `rounds use ${login.by}` : null
  const all = (showsSession ? [...OF_SESSION, ...ALWAYS] : ALWAYS)
    .filter(({ name }) => name !== (isIn ? 'login' : 'logout'))
    // Its scripted model ends with its screen.
    .filter(({ name }) => !(isDemo && name === 'detach'))
    .map(each => (each.name === 'logout' ? { ...each, note } : each))
  return inOrderOfUse(all, showsSession ? USED_IN_SESSION : USED_AT_START)
}

/** Does what a slash command says. */
export async function runSlashCommand(place: SlashPlace, name: string, rest: string): Promise<void> {
  const found = [...OF_SESSION, ...ALWAYS].find(each => each.name === name)
  if (found === undefined) return place.person.screen.say(`/${name}: there is no such command`, 'warning')
  await found.run(place, rest)
}

/** What a person reaches for first, while a session is shown and before. */
const USED_IN_SESSION = [
  'steer',
  'answer',
  'decide',
  'pause',
  'unpause',
  'stop',
  'diff',
  'agents',
  'report',
  'queue',
  'plan',
  'status',
  'skip',
  'retry',
]
const USED_AT_START = [
  'start',
  'change',
  'resume',
  'sessions',
  'templates',
  'queue',
  'report',
  'diff',
  'status',
  'model',
  'login',
  'logout',
  'doctor',
  'theme',
]
/** What is rarely looked for. */
const USED_LAST = ['version', 'help', 'exit']

/** Commands with those that are used most first. */
function inOrderOfUse(commands: readonly Command[], first: readonly string[]): Command[] {
  const rank = ({ name }: SlashCommand) => {
    const at = first.indexOf(name)
    return at >= 0 ? at : USED_LAST.includes(name) ? 2 * commands.length : commands.length
  }
  return commands.toSorted((a, b) => rank(a) - rank(b))
}

/** A command, and what does it. */
interface Command extends SlashCommand {
  run(place: SlashPlace, rest: string): unknown
}

function command(
  name: string,
  description: string,
  run: Command['run'],
  more?: Pick<SlashCommand, 'takesText'>,
): Command {
  return { name, description, note: null, run, ...more }
}

/** While a session is shown. */
const OF_SESSION: readonly Command[] = [
  command('pause', 'Pause after this round', asks({ type: 'pause' })),
  command('unpause', 'Continue after a pause', asks({ type: 'unpause' })),
  command('stop', 'Stop after this round', (place, rest) =>
    rest.trim() === ''
      ? asks({ type: 'stop', now: false })(place)
      : place.person.screen.notice(STOP_TAKES_NOTHING, 'warning'),
  ),
  command('skip', 'End this session and start the next in the queue', place =>
    place.person.screen.model.isRunning ? askToSkip(askingAt(place)) : asks({ type: 'skip' })(place),
  ),
  command('retry', 'Retry now', asks({ type: 'retry' })),
  command(
    'answer',
    'Answer a question: /answer 1 2 picks choice 2 of Q1, /answer 1 … answers in words',
    (place, rest) => answerCommand(askingAt(place), rest),
  ),
  command('decide', 'Make the decision that is waiting', async (place, rest) => {
    if (!(await answerDecision(askingAt(place), rest))) place.person.screen.notice('No decision is waiting', 'warning')
  }),
  command('agents', 'Show the agents at work; open one', ({ person }) => person.openAgents()),
  command('steer', 'Tell an agent at work something: /steer NAME text', (place, rest) =>
    reachAgent(askingAt(place), 'steer', rest),
  ),
  command('stop-agent', 'End one agent; the round continues', (place, rest) =>
    reachAgent(askingAt(place), 'stop-agent', rest),
  ),
  command('detach', 'Leave the session running; codemachine attach shows it again', ({ letGo }) => letGo()),
  command('copy', 'Copy the last answer; /copy command copies the last command', copySlash),
]

const STOP_TAKES_NOTHING =
  '/stop ends the session after this round and accepts no text; /stop-agent NAME ends one agent'

const ALWAYS: readonly Command[] = [
  command('start', 'Build from the specification', startSlash),
  command('change', 'Plan a change, make it, and prove it', changeSlash, { takesText: true }),
  command('follow', 'Continue from the newest change', followSlash, { takesText: true }),
  command('team', 'Have a team build a new project', teamSlash, { takesText: true }),
  command('flow', 'Run a workflow of this project: /flow NAME, or choose one', flowSlash),
  command('plan', 'Show the plan, or accept, reject or edit it', planSlash),
  command('templates', 'Choose what /start starts', templatesSlash),
  command('login', "Log in to codex for codemachine's rounds", loginOnScreen),
  command('logout', "Remove codemachine's own login", logoutOnScreen),
  command('version', 'Show the versions of codemachine and codex', async place =>
    place.person.screen.say(`codemachine ${version}, ${await codexVersion(place)}`),
  ),
  // The keys of the screen open it.
  command('palette', 'Show all commands', () => {}),
  command('help', 'Show keys and commands', place => showKeys(place, commandsOf(place))),
  command('web', 'Show a link to the web page, for this machine or a phone', showPage),
  command('mcp', 'Show the MCP servers of codex; to use codemachine as one: codemachine mcp', showServers),
  command('sessions', 'All sessions in a table: find, watch, report, resume', openSessions),
  command('resume', 'Resume a session', chooseSession),
  command('queue', 'List the queue; /queue edit 1, /queue rm 1', queueSlash),
  command('status', 'Show the status, with all warnings', showStatus),
  command('report', 'Show the report of a session', showReport),
  command('diff', 'Show what changed: since the start, in a round (/diff 3), since a savepoint', (place, rest) =>
    place.person.openDiff(rest),
  ),
  command('doctor', 'Check the setup and show fixes', showDoctor),
  command('model', 'Choose the model and the effort', chooseModel),
  command('theme', 'Choose the colors', chooseTheme),
  command('exit', 'Leave; a session can be resumed', place =>
    place.person.screen.model.isRunning && place.start !== null ? askToLeave(askingAt(place)) : place.person.leave(),
  ),
]

function asks(ask: Ask): (place: SlashPlace) => Promise<boolean> {
  return place => askAndNotify(askingAt(place), ask)
}

function askingAt({ person, context }: SlashPlace) {
  return { model: person.screen.model, host: person, clock: context.clock }
}

const GOAL_CHARS = 80

/** `/resume`: which session to go on with. */
async function chooseSession(place: SlashPlace, rest: string): Promise<void> {
  const { context, records, person } = place
  const { screen } = person
  const busy = whyNoResume(place)
  if (busy !== null) return screen.notice(busy, 'warning')
  if (rest.trim() !== '') return await goOnWith(place, await findSession(records, rest.trim()))
  const sessions = await resumableSessions(records, context.platform)
  if (sessions.length === 0) return screen.notice('No session to resume', 'warning')
  if (whyNoResume(place) !== null) return
  const answer = await screen.choose({
    title: 'Resume which session?',
    options: sessions.map(({ id, goal, rounds, stopped }) => ({
      id,
      label: titleLine(goal, GOAL_CHARS),
      hint: `${id}, ${stopped}, ${formatCount(rounds, 'round')}`,
    })),
  })
  if (answer.kind === 'chosen') await goOnWith(place, answer.id)
}

/** `/queue`: the prompts in the queue, to be begun or edited; `/queue edit 1` takes one into the field, `/queue rm 1` removes it. */
async function queueSlash(place: SlashPlace, rest: string): Promise<void> {
  const { screen, queue } = place.person
  const prompts = await queue.list()
  if (prompts.length === 0) return screen.notice('The queue is empty', 'warning')
  if (rest.trim() === '') return await chooseFromQueue(place, prompts)
  const [, verb, number] = /^(rm|edit)\s+(\d{1,6})$/.exec(rest.trim()) ?? []
  const prompt = prompts[Number(number) - 1]
  if (verb === undefined) return screen.notice('/queue accepts rm 1 and edit 1, with the number of a prompt', 'warning')
  if (prompt === undefined)
    return screen.notice(`The queue has no prompt ${number}; it has ${prompts.length}`, 'warning')
  await (verb === 'edit' ? editQueued : removeQueued)(place, prompt)
}

const BEGUN = 'Its session has begun'

async function chooseFromQueue(place: SlashPlace, prompts: readonly QueuedPrompt[], at = 0): Promise<void> {
  const { person, start } = place
  const { screen } = person
  const canStart = start !== null && !start.isRunning()
  const answer = await screen.choose({
    title: `${formatCount(prompts.length, 'prompt')} waiting. Pick one to edit.`,
    at,
    options: [
      ...(canStart ? [{ id: 'work', label: 'Run the queue now' }] : []),
      ...prompts.map(({ id, prompt, ...terms }) => {
        const hint = termsInWords(terms)
        return { id, label: titleLine(prompt, GOAL_CHARS), removes: true as const, ...(hint === '' ? {} : { hint }) }
      }),
    ],
  })
  if (answer.kind !== 'chosen' && answer.kind !== 'removed') return
  if (answer.id === 'work') return start?.wish({ kind: 'run', goal: null })
  const index = prompts.findIndex(({ id }) => id === answer.id)
  const prompt = prompts[index]
  if (prompt === undefined) return
  if (answer.kind === 'chosen') return await editQueued(place, prompt)
  await removeQueued(place, prompt)
  const left = await person.queue.list()
  if (left.length > 0) await chooseFromQueue(place, left, Math.min(index, left.length - 1) + (canStart ? 1 : 0))
}

async function editQueued({ person: { screen, queue } }: SlashPlace, prompt: QueuedPrompt): Promise<void> {
  if (!(await queue.edit(prompt))) screen.notice(BEGUN, 'warning')
}

async function removeQueued({ person: { screen, queue } }: SlashPlace, prompt: QueuedPrompt): Promise<void> {
  const isRemoved = await queue.takeBack(prompt, () => {})
  if (isRemoved) screen.notice(`Removed from the queue: ${titleLine(prompt.prompt, GOAL_CHARS)}`, 'good')
  else screen.notice(BEGUN, 'warning')
}

/** `/flow [NAME]`: queues a workflow of the project; the queue begins at once, if nothing else is in it and no session runs. */
async function flowSlash({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen, queue } = person
  const name = rest.trim() === '' ? await chooseWorkflow({ context, records, person }) : rest.trim()
  if (name === null) return
  const terms = { template: 'flow' }
  await checkPrompt(records, context, name, terms)
  const isFirst = (await queue.list()).length === 0
  screen.notice(await queue.add(name, terms), 'good')
  if (isFirst && start !== null && !start.isRunning()) start.wish({ kind: 'run', goal: null })
}

async function chooseWorkflow({
  context,
  records,
  person: { screen },
}: Pick<SlashPlace, 'context' | 'records' | 'person'>): Promise<string | null> {
  const { runnableWorkflows } = await import('../../../modes/flow/start/run.ts')
  const flows = await runnableWorkflows(context, records)
  if (flows.length === 0) {
    screen.notice(
      'No workflow here can run; codemachine flow list shows why, codemachine flow init makes one',
      'warning',
    )
    return null
  }
  const options = flows.map(({ name, description, steps }) => {
    const hint = [formatCount(steps.length, 'step'), ...(description === null ? [] : [description])].join(', ')
    return { id: name, label: titleLine(name, GOAL_CHARS), hint: titleLine(hint, GOAL_CHARS) }
  })
  const answer = await screen.choose({ title: 'Run which workflow?', options })
  return answer.kind === 'chosen' ? answer.id : null
}

const EFFORTS = ['minimal', 'low', 'medium', 'high', 'xhigh']

/** `/model`: with which model, and how hard it thinks. */
async function chooseModel({ person, start, settings }: SlashPlace): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('Choose the model where the session was started', 'warning')
  const now = start.options().model ?? settings.model
  const model = await screen.choose({
    title: 'Which model?',
    options: [
      { id: 'as-it-is', label: now === null ? "codex's own choice" : oneLine(now, GOAL_CHARS), hint: 'as it is' },
    ],
    freeText: 'The name of another …',
  })
  if (model.kind !== 'text' && model.kind !== 'chosen') return
  const effort = await screen.choose({
    title: 'How much reasoning effort?',
    options: [{ id: 'as-it-is', label: 'As it is' }, ...EFFORTS.map(id => ({ id, label: id }))],
    freeText: 'Another effort of this model …',
  })
  if (effort.kind !== 'text' && effort.kind !== 'chosen') return
  const chosen = effort.kind === 'text' ? effort.text.trim() : effort.id === 'as-it-is' ? null : effort.id
  start.choose({
    ...(model.kind === 'text' ? { model: model.text.trim() } : {}),
    ...(chosen === null ? {} : { effort: chosen }),
  })
  screen.notice('Applies from the next session. On the command line: -m and --effort', 'good')
}

/**
 * `/start [build|goal] [--yes]`: builds what the specification asks for, once a person says that it is complete; while a
 * session runs, as the next one. Throws a `UserError` if it cannot be built by.
 */
async function startSlash({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  if (start === null) return screen.notice('This screen only watches; start a session in another terminal', 'warning')
  const words = rest.split(/\s+/).filter(word => word !== '')
  const [typed, more] = words.filter(word => !YES.includes(word))
  if (more !== undefined) {
    const names = startableTemplates(context.templates).map(({ name }) => `/start ${name}`)
    throw new UserError('CM0101', `/start does not accept "${more}"; type /start, or ${names.join(' or ')}.`)
  }
  const { settings, agentTables } = await settingsOf(context, records.directory, start.options())
  const kind = templateNamed(context.templates, typed ?? settings.mode, 'start')
  const template = kind.name
  const specification = await specificationHere(records.directory, kind, { agentTables })
  const text = goalOf(specification)
  const begin = async (asksPlan: boolean) => {
    if (!start.isRunning()) return start.wish({ kind: 'start', session: { text, template, asksPlan } })
    screen.notice(await person.queue.add(text, { template }))
  }
  if (words.some(word => YES.includes(word))) return await begin(false)
  const left = start.isRunning()
    ? null
    : await findUnfinished(context, records, problem => screen.say(`codemachine: ${problem}`, 'warning'))
  const answer = await screen.choose({
    title: IS_IT_COMPLETE,
    body: [
      ...describeSpecification(specification),
      ...(left === null ? [] : [`${left.what}: ${left.about}. This starts a new session; /resume continues that one.`]),
    ],
    options: [
      {
        id: 'start',
        label: start.isRunning() ? 'Yes, start it next' : 'Yes, start',
        hint: `${template}: ${kind.description}`,
      },
      { id: 'not-yet', label: 'Not yet', hint: 'nothing starts' },
    ],
  })
  if (answer.kind === 'chosen' && answer.id === 'start') return await begin(true)
  screen.say(`Nothing starts. Add the missing parts to ${specification.path}, and type /start again.`)
}

const YES = ['--yes', '-y']

/** `/templates [name]`: what `/start` starts in this project. A `UserError` if it cannot be chosen. */
async function templatesSlash({ context, records, person, start }: SlashPlace, rest: string): Promise<void> {
  const { screen } = person
  const options = start?.options() ?? {}
  const typed = rest.trim().replace(/^(?:list|select)\b\s*/, '')
  const { settings } = await settingsOf(context, records.directory, options)
  const chosen = await typedOrChosen(screen, typed, {
    title: 'What does /start start in this project?',
    options: startableTemplates(context.templates).map(({ name, description }) => ({
      id: name,
      label: name,
      hint: name === settings.mode ? `${description} (chosen)` : description,
    })),
  })
  if (chosen === null) return
  screen.say(
    await chooseTemplate(context, records.directory, templateNamed(context.templates, chosen, 'start').name, options),
  )
  const { mode } = (await settingsOf(context, records.directory, options)).settings
  if (screen.model.facts !== null) screen.model.facts = { ...screen.model.facts, mode }
  screen.changed()
}
