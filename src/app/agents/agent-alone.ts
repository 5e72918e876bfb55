import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { findEnabledAgent, loadAgents } from '../../agents/agent.ts'
import { cleanResult, rememberResult } from '../../agents/agent-memory.ts'
import { agentInstructions, compositePrompt, USER_REQUEST } from '../../agents/prompts.ts'
import { UserError, unreachable } from '../../base/errors.ts'
import { problemOfPromptSize } from '../../base/text.ts'
import type { Agent, AgentRoster } from '../../core/contracts/agent.ts'
import { type ExecEnd, runExecAgent, waitingAgents } from '../../engines/codex/exec-agent.ts'
import { openRecords, type Records } from '../../records/records.ts'
import { SpokenText } from '../../run/delegation/agent-call.ts'
import { problemOfDepth } from '../../run/delegation/agent-request.ts'
import type { Settings } from '../../settings/schema.ts'
import { safeText } from '../../words/safe-text.ts'
import { agentsAtStart, type ChosenCodex, chooseCodex, codexOptionsOf, endWhatWasLeft } from '../engine-of-project.ts'
import { projectAround } from '../find.ts'
import type { RunOptions } from '../library.ts'
import { settingsOf } from '../open-run.ts'
import { directoryOf, type World } from '../world.ts'
import { type AgentRecord, beginAgentRecord, endAgentRecord, tidyAgentRecords } from './agent-records.ts'

/** One task for one agent, where no session runs. */
export interface AgentCall {
  /** Name of the agent. */
  agent: string
  /** Reads the task, once it is known that the agent can be given one. */
  readTask(): Promise<string>
  options: RunOptions
  /** Told what codex shows while it works, without secrets; null: only the result counts. */
  onText: ((text: string) => void) | null
  /** Told sentences for the person. */
  onRemark(remark: string): void
  /** Told each line for debugging, without secrets, where `logging.level` is `debug`. */
  onDebug?: ((line: string) => void) | undefined
}

/** How an agent ended that worked by itself. `problem`: why its memory does not have the result, a sentence; null: it has. */
export type AloneEnd = { kind: 'completed'; result: string; problem: string | null } | { kind: 'terminated' }

/**
 * Has one agent do one task through `codex exec`, in the project around the directory. Throws a `UserError` for what a
 * person has to mend (exit code 2) and for a task that codex did not get to its end (4).
 */
export async function runAgentAlone(world: World, call: AgentCall): Promise<AloneEnd> {
  const { name } = agentNamed(loadAgents(), call.agent)
  const problem = problemOfDepth(name, waitingAgents(world.env))
  if (problem !== null) throw new UserError(problem, { exitCode: 4 })
  const request = await call.readTask()
  const directory = await projectAround({ ...world, directory: directoryOf(world, call.options) })
  const records = await openRecords({ ...world, directory })
  const { settings, sources, lasting } = await settingsOf(world, directory, call.options)
  const codex = await chooseCodex(world, records, { settings, sources })
  const work: Work = { world, call, request, records, settings, codex }
  const { agents, profiles, offered, remarks } = await agentsAtStart(world, records, codex, {
    settings,
    inProfiles: lasting,
    overrides: call.options.config ?? [],
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
  for (const remark of [...remarks, ...(await endWhatWasLeft(world, records))]) call.onRemark(remark)
  const hasProfile = profiles.usable.has(agent.name)
  return await carryOut(work, { agent, hasProfile, shellPolicy: offered?.shellPolicy ?? null, prompt })
}

const LOG_IN = 'Log in: codemachine login'

/** What a call stands on. */
interface Work {
  world: World
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

function agentNamed({ sub }: AgentRoster, name: string): Agent {
  const found = findEnabledAgent(sub, name)
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

async function carryOut(work: Work, brief: Brief): Promise<AloneEnd> {
  const { world, call, request, records, settings, codex } = work
  const { redactor } = codex
  const folder = join(records.folder, 'agents')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await tidyAgentRecords(folder, { platform: world.platform, now: world.clock.now() })
  const options = await codexOptionsOf(world, records, codex, {
    settings,
    overrides: call.options.config ?? [],
    onDebug: call.onDebug,
  })
  const record = await beginAgentRecord(folder, world.clock.now(), {
    agent: brief.agent.name,
    ...options.owner,
    request: redactor.text(request),
  })
  const { onText } = call
  // A secret may have several lines.
  const spoken = new SpokenText(redactor, text => onText?.(text))
  const end = await runExecAgent({
    ...options,
    ...brief,
    directory: records.directory,
    // The repository's own files stay closed: nothing here would notice a hook or a filter that an agent plants.
    sandbox: { mode: settings.sandbox, network: settings.network, writable: [] },
    lastMessage: join(folder, `${record.instance}.last`),
    promptEnd: `${USER_REQUEST}\n${request}`,
    silenceMs: Math.max(settings.silenceMinutes, settings.commandMinutes) * 60_000,
    signal: world.signal,
    onLine: line => onText !== null && spoken.add(`${line}\n`),
  })
  spoken.end()
  return await conclude(
    work,
    folder,
    record,
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

async function conclude(work: Work, folder: string, record: AgentRecord, end: ExecEnd): Promise<AloneEnd> {
  const { world, records } = work
  const endedAt = new Date(world.clock.now()).toISOString()
  const { agent, instance, request } = record
  switch (end.kind) {
    case 'completed': {
      const { result } = end
      await endAgentRecord(folder, record, { state: 'completed', endedAt, exitCode: 0, result })
      const problem = await rememberResult(records.directory, agent, {
        instance,
        at: record.startedAt,
        request,
        result,
      })
      return { kind: 'completed', result, problem }
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
      const exitCode = world.signal.reason === 'SIGTERM' ? 143 : 130
      await endAgentRecord(folder, record, { state: 'terminated', endedAt, exitCode, result: null })
      return { kind: 'terminated' }
    }
    default:
      return unreachable(end)
  }
}
