import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Agent, type Agents, findAgent, loadAgents } from '../../agents/agent.ts'
import { cleanResult, rememberResult } from '../../agents/memory.ts'
import { agentInstructions, compositePrompt, USER_REQUEST } from '../../agents/prompts.ts'
import { type AgentRecord, beginAgentRecord, endAgentRecord, tidyAgentRecords } from '../../app/agents/agent-records.ts'
import {
  agentsAtStart,
  type ChosenCodex,
  chooseCodex,
  codexOptionsOf,
  endWhatWasLeft,
} from '../../app/engine-of-project.ts'
import { projectAround } from '../../app/find.ts'
import { settingsOf } from '../../app/project.ts'
import { directoryOf, type RunFlags } from '../../app/run-flags.ts'
import type { CliContext } from '../../app/world.ts'
import { UserError, unreachable } from '../../base/errors.ts'
import { problemOfPromptSize } from '../../base/text.ts'
import { type ExecEnd, runExecAgent, waitingAgents } from '../../engines/codex/exec-agent.ts'
import { openRecords, type Records } from '../../records/records.ts'
import { SpokenText } from '../../run/instance.ts'
import { problemOfDepth } from '../../run/request.ts'
import type { Settings } from '../../settings/schema.ts'
import { safeText } from '../../words/cells.ts'
import { readText } from '../flags.ts'

export interface AgentCall {
  /** Name of the agent. */
  agent: string
  /** As typed; `-` stands for standard input. */
  task: string
  /** Whether what codex shows is shown while it works, in the place of the result alone. */
  stream: boolean
  flags: RunFlags
}

/**
 * `codemachine --agent NAME "task"` where no session runs: one task of one agent, through `codex exec`, in the project
 * around the directory. Resolves with 0, 130 or 143; throws a `UserError` for what a person has to mend (2) and for a task
 * that codex did not get to its end (4).
 */
export async function agentAlone(context: CliContext, call: AgentCall): Promise<number> {
  const { name } = agentNamed(loadAgents(), call.agent)
  const problem = problemOfDepth(name, waitingAgents(context.env))
  if (problem !== null) throw new UserError(problem, { exitCode: 4 })
  const request = await readText(context, call.task)
  const directory = await projectAround({ ...context, directory: directoryOf(context, call.flags) })
  const records = await openRecords({ ...context, directory })
  const { settings, sources, lasting } = await settingsOf(context, directory, call.flags)
  const codex = await chooseCodex(context, records, { settings, sources })
  const work: Work = { context, call, request, records, settings, codex }
  const { agents, profiles, offered, remarks } = await agentsAtStart(context, records, codex, {
    settings,
    inProfiles: lasting,
    overrides: call.flags.config ?? [],
    asks: true,
  })
  // Only `codex exec` takes a key from there, so the app-server knows nothing of it.
  if (offered?.isLoggedIn === false && !codex.home.env.CODEX_API_KEY)
    throw new UserError('Codex is not logged in, so no agent can work.', { exitCode: 4, hint: LOG_IN })
  const unreadable = profiles.unreadable.get(name)
  if (unreadable !== undefined) throw unreadable
  // With the model that it has here.
  const agent = agentNamed(agents, call.agent)
  const prompt = await promptOf(agent, directory, request)
  for (const remark of [...remarks, ...(await endWhatWasLeft(context, records))])
    context.stderr.write(`${safeText(remark)}\n`)
  const hasProfile = profiles.usable.has(agent.name)
  return await carryOut(work, { agent, hasProfile, shellPolicy: offered?.shellPolicy ?? null, prompt })
}

const LOG_IN = 'Log in: codemachine login'

/** What a call stands on. */
interface Work {
  context: CliContext
  call: AgentCall
  request: string
  records: Records
  settings: Settings
  codex: ChosenCodex
}

interface Brief {
  agent: Agent
  hasProfile: boolean
  shellPolicy: unknown
  prompt: string
}

function agentNamed({ sub }: Agents, name: string): Agent {
  const found = findAgent(sub, name)
  if ('problem' in found) throw new UserError(found.problem)
  return found.agent
}

async function promptOf(agent: Agent, directory: string, request: string): Promise<string> {
  const instructions = await agentInstructions(agent, directory)
  if ('problem' in instructions) throw new UserError(instructions.problem)
  const prompt = compositePrompt(instructions.text, request)
  const problem = problemOfPromptSize(prompt)
  if (problem !== null) throw new UserError(`With the instructions of ${agent.name}: ${problem}`)
  return prompt
}

async function carryOut(work: Work, brief: Brief): Promise<number> {
  const { context, call, request, records, settings, codex } = work
  const { redactor } = codex
  const folder = join(records.folder, 'agents')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await tidyAgentRecords(folder, { platform: context.platform, now: context.clock.now() })
  const options = await codexOptionsOf(context, records, codex, settings, call.flags.config ?? [])
  const record = await beginAgentRecord(folder, context.clock.now(), {
    agent: brief.agent.name,
    ...options.owner,
    request: redactor.text(request),
  })
  let isShown = false
  // A secret may have several lines.
  const spoken = new SpokenText(redactor, text => {
    isShown = true
    context.stdout.write(safeText(text))
  })
  const end = await runExecAgent({
    ...options,
    ...brief,
    directory: records.directory,
    // The repository's own files stay closed: nothing here would notice a hook or a filter that an agent plants.
    sandbox: { mode: settings.sandbox, network: settings.network, writable: [] },
    lastMessage: join(folder, `${record.instance}.last`),
    promptEnd: `${USER_REQUEST}\n${request}`,
    silenceMs: Math.max(settings.silenceMinutes, settings.commandMinutes) * 60_000,
    signal: context.signal,
    onLine: line => call.stream && spoken.add(`${line}\n`),
  })
  spoken.end()
  return await conclude(
    work,
    folder,
    { record, isShown },
    redactedEnd(end, text => redactor.text(text)),
  )
}

function redactedEnd(end: ExecEnd, redact: (text: string) => string): ExecEnd {
  switch (end.kind) {
    case 'completed':
      return { ...end, result: redact(cleanResult(end.result)) }
    case 'failed':
      return { ...end, reason: redact(end.reason) }
    case 'terminated':
      return end
    default:
      return unreachable(end)
  }
}

/** `isShown`: whether what the agent did was shown while it worked. */
async function conclude(
  work: Work,
  folder: string,
  { record, isShown }: { record: AgentRecord; isShown: boolean },
  end: ExecEnd,
): Promise<number> {
  const { context, records } = work
  const endedAt = new Date(context.clock.now()).toISOString()
  const { agent, instance, request } = record
  switch (end.kind) {
    case 'completed': {
      const { result } = end
      await endAgentRecord(folder, record, { state: 'completed', endedAt, exitCode: 0, result })
      if (!isShown) context.stdout.write(`${context.stdout.isTTY ? safeText(result) : result}\n`)
      const problem = await rememberResult(records.directory, agent, {
        instance,
        at: record.startedAt,
        request,
        result,
      })
      if (problem !== null) context.stderr.write(`${safeText(problem)}\n`)
      return 0
    }
    case 'failed': {
      const { reason, exitCode } = end
      await endAgentRecord(folder, record, { state: 'error', endedAt, exitCode, result: reason })
      throw new UserError(`${agent} did not get its task done: ${safeText(reason).replace(/\.$/, '')}.`, {
        exitCode: 4,
        ...(/\bstatus:? 401\b/.test(reason) ? { hint: LOG_IN } : {}),
      })
    }
    case 'terminated': {
      const exitCode = context.signal.reason === 'SIGTERM' ? 143 : 130
      await endAgentRecord(folder, record, { state: 'terminated', endedAt, exitCode, result: null })
      return exitCode
    }
    default:
      return unreachable(end)
  }
}
