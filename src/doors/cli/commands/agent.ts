import { realpath } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { findAnyAgent, findEnabledAgent } from '../../../agents/agent.ts'
import { type AgentReply, type AgentRequest, replyExitCode } from '../../../agents/inbox.ts'
import { agentInstructions, findAgentProblems, readAgentPrompt, readUsualPrompt } from '../../../agents/prompts.ts'
import { readRoster } from '../../../agents/roster.ts'
import { nullIfUserError, UserError, unreachable } from '../../../base/errors.ts'
import type { Agent, AgentRoster } from '../../../core/shapes/agent.ts'
import { problemOfTask } from '../../../core/shapes/tools.ts'
import { NO_KEPT_TEXTS, type TemplateKinds } from '../../../core/template.ts'
import { isWithin, realWorkDirectory } from '../../../platform/files.ts'
import { askSession, type Streamed } from '../../../project/agent-door/ask-session.ts'
import { projectAround, type SessionAround, sessionAround } from '../../../project/find.ts'
import { settingsOf } from '../../../project/open-run.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import { scopeFolder, sessionFolder } from '../../../workspace/memory/memory-paths.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type DirectoryFlags, directoryOf, type LookFlags, printDone, type RunFlags, readText } from '../flags.ts'
import { inColumns } from '../output.ts'
import { listenersOn, runOptionsOf } from '../run-options.ts'
import { warnOn } from '../warn-on.ts'

/** What is asked of an agent on the command line. */
export interface AskedAgent {
  agent: string
  /** As typed; `-` is standard input. */
  task: string
  /** Whether what codex shows is shown while it works, in the place of the result alone. */
  stream: boolean
  /** What it is to write, as typed; none: anything. */
  paths: readonly string[]
  flags: RunFlags
}

/**
 * `codemachine --agent NAME "task"`: has the session that runs here do it, from inside its sandbox too; where none runs,
 * codex by itself. Prints the result, and resolves with the exit code: 4 if there is none.
 */
export async function agent(context: CliContext, asked: AskedAgent): Promise<number> {
  const folder = directoryOf(context, asked.flags)
  const session = await sessionAround(context, folder)
  const around = session?.directory ?? (await projectAround({ ...context, directory: folder }).catch(nullIfUserError))
  const { agentTables } = await settingsOf(context, around ?? folder, {})
  const { roster } = await readRoster(around, agentTables)
  const found = findEnabledAgent(roster.sub, asked.agent)
  if ('problem' in found) throw new UserError('CM1009', found.problem)
  const task = await readTask(context, asked.task)
  const alone = () => workAlone(context, { ...asked, task }, folder)
  const typed = flagsOfRun(asked.flags)
  if (session === null || (typed !== '' && !session.isSure)) return await alone()
  const { directory } = session
  if (typed !== '') {
    throw new UserError(
      'CM0102',
      `A session runs in ${directory}, and its model and sandbox apply; leave ${typed} out.`,
    )
  }
  const real = await realpath(folder)
  const paths = asked.paths.length === 0 ? null : asked.paths.map(path => pathIn(directory, resolve(real, path)))
  const thread = context.env.CODEX_THREAD_ID || null
  const request = { agent: found.agent.name, task, paths, thread, stream: asked.stream }
  return (await ask(context, session, request)) ?? (await alone())
}

async function workAlone(context: CliContext, asked: AskedAgent, folder: string): Promise<number> {
  if (asked.paths.length > 0) {
    throw new UserError(
      'CM0102',
      `--path is for agents of a running session, but no session runs in ${folder}; leave it out.`,
    )
  }
  return await agentAlone(context, asked)
}

/**
 * `codemachine --agent NAME "task"` where no session runs: one task of one agent, as a session of one round, in the
 * project around the directory. Resolves with 0, 130 or 143; throws a `UserError` for what a person has to mend (2) and for a task
 * that codex did not get to its end (4).
 */
export async function agentAlone(context: CliContext, call: Omit<AskedAgent, 'paths'>): Promise<number> {
  const { stdout, stderr, signal } = context
  let isShown = false
  const show = (text: string) => {
    isShown = true
    stdout.write(safeText(text))
  }
  // Where a session runs it is not wanted.
  const { runAgentAlone } = await import('../../../modes/agent/start/agent-alone.ts')
  const end = await runAgentAlone(context, {
    agent: call.agent,
    readTask: () => readText(context, call.task),
    options: runOptionsOf(call.flags),
    onText: call.stream ? show : null,
    onRemark: remark => void stderr.write(`${safeText(remark)}\n`),
    onDebug: listenersOn(context, call.flags).onDebug,
  })
  if (end.kind === 'terminated') return signal.reason === 'SIGTERM' ? 143 : 130
  if (!isShown) stdout.write(`${stdout.isTTY ? safeText(end.result) : end.result}\n`)
  if (end.problem !== null) stderr.write(`${safeText(end.problem)}\n`)
  return 0
}

/** Those that were typed of the flags that say how an agent works by itself. */
function flagsOfRun(flags: RunFlags): string {
  const { provider, model, effort, sandbox, yolo, network, config, codexBin } = flags
  const typed = {
    '--provider': provider,
    '--model': model,
    '--effort': effort,
    '--sandbox': sandbox,
    '--yolo': yolo,
    '--network': network,
    '-c': config,
    '--codex-bin': codexBin,
  }
  return Object.entries(typed)
    .flatMap(([name, value]) => (value === undefined ? [] : [name]))
    .join(', ')
}

async function readTask(context: CliContext, typed: string): Promise<string> {
  // JSON has it, but no argument of a program.
  const task = (await readText(context, typed)).replaceAll('\0', '\uFFFD')
  const problem = problemOfTask(task)
  if (problem !== null) throw new UserError('CM0107', problem)
  return task
}

function pathIn(directory: string, path: string): string {
  if (!isWithin(directory, path))
    throw new UserError('CM1009', `${path} is not in ${directory}; name folders of the project.`)
  return relative(directory, path) || '.'
}

/** Null where no session takes it, and it was not sure that there is one. */
async function ask(context: CliContext, session: SessionAround, request: AgentRequest): Promise<number | null> {
  const { clock, signal, stdout, stderr } = context
  const { directory, records } = session
  const asked = await askSession(request, {
    directory,
    records,
    clock,
    signal,
    ...(session.isGone && { isGone: session.isGone }),
    onWaiting: sentence => stderr.write(`${safeText(sentence)}\n`),
    onStarted: instance => {
      if (stderr.isTTY) stderr.write(`${safeText(instance)} has started.\n`)
    },
    onText: text => {
      if (text !== '') stdout.write(shownOn(stdout, text))
    },
  })
  switch (asked.kind) {
    case 'answered':
      return show(context, asked.reply, asked.streamed)
    case 'not-taken':
      if (!session.isSure) {
        stderr.write('A session that died has left its lock, so the agent works by itself.\n')
        return null
      }
      throw new UserError(
        'CM1014',
        `No session in ${directory} accepted the task; check with codemachine status that one is running there.`,
        {
          exitCode: 4,
        },
      )
    case 'gone':
      throw new UserError('CM1014', `The session in ${directory} accepted the task, but ended without a result.`, {
        exitCode: 4,
      })
    default:
      return unreachable(asked)
  }
}

function show({ stdout, stderr }: CliContext, { state, text }: AgentReply, streamed: Streamed): number {
  const exitCode = replyExitCode(state) ?? 4
  if (streamed !== 'nothing') stdout.write('\n')
  if (exitCode !== 0)
    stderr.write(`codemachine: ${safeText(text.trim()) || 'There is no result, and no reason is known.'}\n`)
  else if (streamed !== 'whole') stdout.write(`${shownOn(stdout, text.trimEnd())}\n`)
  return exitCode
}

/** A program that reads it gets it as it is. */
function shownOn({ isTTY }: CliContext['stdout'], text: string): string {
  return isTTY ? safeText(text) : text
}

/** An agent as `agents list --json` shows it. */
interface ListedAgent extends Pick<Agent, 'name' | 'displayName' | 'description' | 'enabled'> {
  /** `main`: runs builds; `sub`: is given tasks. */
  kind: 'main' | 'sub'
  /** What the settings say, or else `config/*.agents.js`, whether codex offers it or not; null: codex's own choice. */
  model: string | null
  effort: string | null
  /** Whose prompt counts; null: there is none that can be used. */
  prompt: 'person' | 'project' | 'shipped' | null
  /** Why there is none. */
  problem: string | null
}

/** `codemachine agents list`: the agents, as they would work in a directory. */
export async function agentsList(context: CliContext, flags: LookFlags): Promise<number> {
  const listed = await listAgents(context, await realWorkDirectory(directoryOf(context, flags)))
  context.stdout.write(flags.json ? `${JSON.stringify(listed)}\n` : tables(listed))
  return 0
}

/** `codemachine agents show`: the prompt of an agent, as it would get it in a directory. */
export async function agentsShow(context: CliContext, name: string, flags: DirectoryFlags): Promise<number> {
  const directory = await realWorkDirectory(directoryOf(context, flags))
  const { roster: agents } = await rosterHere(context, directory)
  // How a disabled one would work is looked at before it is enabled.
  const found = findAnyAgent([...agents.main, ...agents.sub], name)
  if ('problem' in found)
    throw new UserError('CM1009', found.problem, { hint: 'codemachine agents list shows all of them.' })
  const prompt = await instructionsOf(found.agent, agents, directory, context.templates)
  if ('problem' in prompt) throw new UserError('CM0206', prompt.problem)
  const { stdout } = context
  stdout.write(`${(stdout.isTTY ? safeText(prompt.text) : prompt.text).trimEnd()}\n`)
  return 0
}

/** `codemachine agents validate`: what is wrong with the agents and their prompts; exit code 2 if anything is. */
export async function agentsValidate(context: CliContext, flags: LookFlags): Promise<number> {
  const directory = await realWorkDirectory(directoryOf(context, flags))
  const problems = await findAgentProblems(directory, () => rosterHere(context, directory))
  for (const problem of problems) warnOn(context)(problem)
  if (problems.length > 0) return 2
  const { main, sub } = (await rosterHere(context, directory)).roster
  const agents = main.length + sub.length
  return printDone(context, flags, `${formatCount(agents, 'agent')}, and nothing is wrong with them.`, { agents })
}

/** The agents of a directory, and what is to be said of them. */
async function rosterHere(context: CliContext, directory: string): ReturnType<typeof readRoster> {
  const { agentTables } = await settingsOf(context, directory, {})
  return await readRoster(directory, agentTables)
}

async function listAgents(context: CliContext, directory: string): Promise<ListedAgent[]> {
  const { settings, agentTables } = await settingsOf(context, directory, {})
  const { roster, remarks } = await readRoster(directory, agentTables)
  for (const remark of remarks) warnOn(context)(remark)
  const { main, sub } = roster
  const listed = async (agent: Agent, kind: 'main' | 'sub'): Promise<ListedAgent> => {
    const prompt = kind === 'main' ? await readUsualPrompt(agent) : await readAgentPrompt(agent, directory)
    const { name, displayName, description, enabled } = agent
    return {
      name,
      kind,
      displayName,
      description,
      model: settings.model ?? agent.model,
      effort: settings.effort ?? agent.modelReasoningEffort,
      enabled,
      prompt: 'problem' in prompt ? null : prompt.from,
      problem: 'problem' in prompt ? prompt.problem : null,
    }
  }
  return await Promise.all([...main.map(each => listed(each, 'main')), ...sub.map(each => listed(each, 'sub'))])
}

function tables(listed: readonly ListedAgent[]): string {
  const [headings, ...rows] = inColumns([HEADINGS, ...listed.map(rowOf)]).map(line => `  ${line}`)
  const of = (kind: ListedAgent['kind']) => [headings ?? '', ...rows.filter((_, index) => listed[index]?.kind === kind)]
  const lines = ['They run a build:', ...of('main'), '', 'They are given tasks:', ...of('sub')]
  return `${lines.map(safeText).join('\n')}\n`
}

/** Which models codex offers is not asked here, and a profile may name another one. */
const HEADINGS: readonly string[] = ['agent', 'model wanted', 'effort', 'prompt']

function rowOf({ name, model, effort, enabled, prompt }: ListedAgent): string[] {
  const words = { person: 'your own prompt', project: "the project's own prompt", shipped: 'the shipped prompt' }
  const how = prompt === null ? 'no usable prompt: codemachine agents validate says why' : words[prompt]
  return [name, model ?? "codex's model", effort ?? "the model's effort", enabled ? how : `disabled, ${how}`]
}

async function instructionsOf(
  agent: Agent,
  agents: AgentRoster,
  directory: string,
  templates: TemplateKinds,
): Promise<{ text: string } | { problem: string }> {
  for (const template of templates.values()) {
    const memory = sessionFolder({ directory, id: '<session>', records: '<session>', memory: template.memory })
    const scopes = { scopeFolder: (name: string) => scopeFolder(memory, name) }
    const setup = { directory, memory, ...scopes, agents, isPlanReady: false, tell: () => {}, kept: NO_KEPT_TEXTS }
    if (template.isCall || !agents.main.includes(agent) || Object.keys(template.parts).length === 0) continue
    const found = (await template.open(setup)).threads.find(
      ({ part, thread }) => part !== null && thread.agent === agent.name,
    )
    if (found !== undefined) return { text: found.thread.developerInstructions }
  }
  return await agentInstructions(agent, directory)
}
