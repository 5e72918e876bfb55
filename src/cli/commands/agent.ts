import { realpath } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { findAgent, loadAgents } from '../../agents/agent.ts'
import { type AgentReply, type AgentRequest, exitCodeOf } from '../../agents/inbox.ts'
import { UserError, unreachable } from '../../base/errors.ts'
import { isWithin } from '../../platform/path-within.ts'
import { problemOfTask } from '../../session/run-agent-tool.ts'
import { safeText } from '../../ui/safe-text.ts'
import { askSession, type Streamed } from '../ask-session.ts'
import type { CliContext } from '../context.ts'
import { directoryOf, type RunFlags } from '../flags.ts'
import { readText } from '../read-text.ts'
import { type SessionAround, sessionAround } from '../session-around.ts'

/** What is asked of an agent on the command line. */
export interface AskedAgent {
  agent: string
  /** As typed; `-` is standard input. */
  task: string
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
  const found = findAgent(loadAgents().sub, asked.agent)
  if ('problem' in found) throw new UserError(found.problem)
  const task = await readTask(context, asked.task)
  const folder = directoryOf(context, asked.flags)
  const alone = () => workAlone(context, { ...asked, task }, folder)
  const session = await sessionAround(context, folder)
  const typed = flagsOfRun(asked.flags)
  if (session === null || (typed !== '' && !session.isSure)) return await alone()
  const { directory } = session
  if (typed !== '') {
    throw new UserError(`A session runs in ${directory}, and its model and its sandbox count; leave ${typed} out.`)
  }
  const real = await realpath(folder)
  const paths = asked.paths.length === 0 ? null : asked.paths.map(path => pathIn(directory, resolve(real, path)))
  const thread = context.env.CODEX_THREAD_ID || null
  const request = { agent: found.agent.name, task, paths, thread, stream: asked.stream }
  return (await ask(context, session, request)) ?? (await alone())
}

async function workAlone(context: CliContext, asked: AskedAgent, folder: string): Promise<number> {
  if (asked.paths.length > 0) {
    throw new UserError(`--path keeps the agents of a running session apart, and none runs in ${folder}; leave it out.`)
  }
  const { agentAlone } = await import('./agent-alone.ts')
  return await agentAlone(context, asked)
}

/** Those that were typed of the flags that say how an agent works by itself. */
function flagsOfRun(flags: RunFlags): string {
  const { model, effort, sandbox, yolo, network, config, codexBin } = flags
  const typed = {
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
  if (problem !== null) throw new UserError(problem)
  return task
}

function pathIn(directory: string, path: string): string {
  if (!isWithin(directory, path)) throw new UserError(`${path} is not in ${directory}; name folders of the project.`)
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
        stderr.write('The lock of a session that has died is there, so the agent works by itself.\n')
        return null
      }
      throw new UserError(`No session in ${directory} takes the task; is codemachine still running there?`, {
        exitCode: 4,
      })
    case 'gone':
      throw new UserError(`The session in ${directory} has taken the task, and has gone; there is no result.`, {
        exitCode: 4,
      })
    default:
      return unreachable(asked)
  }
}

function show({ stdout, stderr }: CliContext, { state, text }: AgentReply, streamed: Streamed): number {
  const exitCode = exitCodeOf(state) ?? 4
  if (streamed !== 'nothing') stdout.write('\n')
  if (exitCode !== 0)
    stderr.write(`codemachine: ${safeText(text.trim()) || 'There is no result, and nobody has said why.'}\n`)
  else if (streamed !== 'whole') stdout.write(`${shownOn(stdout, text.trimEnd())}\n`)
  return exitCode
}

/** A program that reads it gets it as it is. */
function shownOn({ isTTY }: CliContext['stdout'], text: string): string {
  return isTTY ? safeText(text) : text
}
