import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ModelRequest,
  message,
  type Reply,
  type ReplyItem,
  reply,
  type Script,
  type ScriptStep,
  shell,
  turnsScript,
} from '../../src/demo/model/reply.ts'
import { estimatedUsage } from '../../src/demo/model/send-reply.ts'
import { makePlace, type TestPlace } from '../../tests/support/place.ts'
import { endProcessesOf } from '../../tests/support/processes.ts'
import { folder, writeTasks } from '../../tests/support/rounds.ts'
import { startScriptedModel } from '../../tests/support/scripted-model.ts'
import { type CommandResult, runAnyhow } from '../run-command.ts'
import { type Agent, type Contract, contractOf, LIARS } from './agent.ts'

/** An agent that is still refused then has not come through. */
export const MOST_ROUNDS = 4

/** The longest that one program may take, ms. */
const ENOUGH_MS = 180_000

/**
 * Who answers where a harness asks for a review, checks or wrong versions: what `careful` of the agent and of its contract says, or
 * always that it agrees, and checks of the first example alone.
 */
export type Reviewer = (typeof REVIEWERS)[number]

export const REVIEWERS = ['careful', 'agreeing'] as const

/** A runner of agents: a row of the table for each of its reviewers. */
export interface Harness {
  name: string
  /** What a claim is there: a line for a shell, what the agent says last, or a call. */
  claim: { shell: string } | { say: string } | { call: ReplyItem }
  /** Left out: it asks nobody but the agent. */
  reviewers?: readonly Reviewer[]
  /** Installs it into a folder, once; answers why it cannot be played, or null. Left out: it can. */
  install?(folder: string): Promise<string | null>
  /** Left out: done has no grades there. `requires`: the flag without which done is said of what is not proved, too. */
  requires?: string
  /** Has the agent work until it has ended; answers whether it says that the goal is reached. */
  run(stage: Stage): Promise<Said>
}

/** Whether a harness says that the goal is reached; `unproved`: it says so only if not all has to be proved. */
type Said = boolean | 'unproved'

/** What a harness plays an agent with. */
export interface Stage {
  agent: Agent
  place: TestPlace
  /** The native codex; its config leads to the scripted model. */
  codex: string
  /** Where `install` has installed. */
  installed: string
  /** Aborted when the agent is asked for more than `MOST_ROUNDS`. */
  overtime: AbortSignal
  /** Runs a program in the work directory to its end, at the latest until `overtime`. */
  run(program: string, args: readonly string[]): Promise<CommandResult>
}

/** What came of one agent on one harness. */
export interface Verdict {
  agent: Agent
  said: Said
  isTrue: boolean
  rounds: number
  tokens: number
  ms: number
}

/** Plays an agent on a harness, on a throw-away machine, and ends all that it has left running. */
export async function play(
  agent: Agent,
  harness: Harness,
  reviewer: Reviewer | null,
  { codex, installed }: Pick<Stage, 'codex' | 'installed'>,
): Promise<Verdict> {
  const overtime = new AbortController()
  const acting = act(agent, harness, reviewer, () => overtime.abort())
  await using model = await startScriptedModel({ keptRequests: 1, script: acting.script })
  await using place = await makePlace(model.codexConfig('scripted'), { git: false })
  const run = (program: string, args: readonly string[]) => {
    const signal = AbortSignal.any([overtime.signal, AbortSignal.timeout(ENOUGH_MS)])
    return runAnyhow(program, args, { cwd: place.directory, env: place.env, signal })
  }
  try {
    await layOut(agent, place)
    const from = performance.now()
    const said = await harness.run({ agent, place, codex, installed, overtime: overtime.signal, run })
    const ms = performance.now() - from
    if (said !== false) await sleep((agent.settle ?? 0) * 1000)
    return { agent, said, isTrue: await isTrue(place), rounds: acting.rounds(), tokens: acting.tokens(), ms }
  } finally {
    endProcessesOf(place)
  }
}

/** Fills a work directory with what the agent finds there, and commits it. */
export async function layOut({ files = {}, setup = 'true' }: Agent, { directory, env }: TestPlace): Promise<void> {
  cpSync(join(LIARS, 'project'), directory, { recursive: true })
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  const line = `git init -q && ${setup} && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm start`
  await runAnyhow('bash', ['-c', line], { cwd: directory, env })
}

/** Whether the goal is reached and nothing is lost, by `bench/liars/truth.mjs`. */
export async function isTrue({ directory, env }: TestPlace): Promise<boolean> {
  const { stdout } = await runAnyhow(process.execPath, [join(LIARS, 'truth.mjs'), directory], { cwd: directory, env })
  return stdout.trim() === 'true'
}

/** The agent as a script, and what it came to. */
function act(agent: Agent, { claim }: Harness, reviewer: Reviewer | null, onOvertime: () => void) {
  // A thread goes on with the round after the last one that has ended, and may play several.
  const firstOf = new Map<string, number>()
  let ended = 0
  let tokens = 0
  const stepOf = (thread: string, step: number): ScriptStep => {
    let round = firstOf.get(thread) ?? ended
    firstOf.set(thread, round)
    for (let left = step; ; round += 1) {
      const steps = stepsOf(agent.rounds[Math.min(round, agent.rounds.length - 1)] ?? [], claim)
      const found = steps[left]
      if (found === undefined) left -= steps.length
      else {
        if (round >= MOST_ROUNDS) onOvertime()
        if (left === steps.length - 1) ended = Math.max(ended, round + 1)
        return found
      }
    }
  }
  const play = turnsScript(request => aside(agent, reviewer, request) ?? stepOf(request.thread, request.step))
  const script: Script = async request => {
    const answer = await play(request)
    const usage = answer.kind === 'items' ? estimatedUsage(answer, request) : { input: 0, output: 0 }
    tokens += usage.input + usage.output
    return answer
  }
  return { script, rounds: () => ended, tokens: () => tokens }
}

/** The answer of those who are not the agent; null: the agent is asked. */
function aside(agent: Agent, reviewer: Reviewer | null, request: ModelRequest): Reply | null {
  if (shapeOf(request).includes('"verdict"')) return reviewOf(agent, reviewer)
  return proofAnswer(contractOf(agent)[reviewer ?? 'careful'], request)
}

/** The JSON Schema that an answer has to fit, as text. */
export const shapeOf = ({ body }: ModelRequest): string => JSON.stringify(body.text ?? '')

/** What an author, or a writer of wrong versions, is asked for; undefined: neither is asked. */
const askedOf = (request: ModelRequest) =>
  ['sentences', 'versions', 'checks'].find(key => shapeOf(request).includes(`"${key}"`))

export const isOfContract = (request: ModelRequest): boolean => askedOf(request) !== undefined

/** What an author, or a writer of wrong versions, answers; null: neither is asked. */
export function proofAnswer(sentences: Contract['careful'], request: ModelRequest): Reply | null {
  const asked = askedOf(request)
  if (asked === undefined) return null
  const input = request.userTexts.join('\n')
  // Each quote stands in the goal, and that of the sentence that is asked about once more.
  const times = ({ quote }: { quote: string }) => input.split(quote).length
  const about = sentences.toSorted((a, b) => times(b) - times(a))[0]
  const answer = {
    sentences: sentences.map(({ quote, kind, checks }, at) => {
      const isTrueAlready = input.includes(`- S${at + 1}: its checks already pass before`)
      return { quote, kind: isTrueAlready ? 'keep' : kind, reason: null, checks: checks.map(asAsked) }
    }),
    versions: about?.versions,
    checks: about?.checks.map(asAsked),
  }[asked]
  return reply(message(JSON.stringify({ [asked]: answer })))
}

function asAsked({ files, ...check }: Contract['careful'][number]['checks'][number]) {
  return { ...check, needs: null, files: Object.entries(files).map(([path, text]) => ({ path, text })) }
}

function reviewOf({ careful }: Agent, reviewer: Reviewer | null): Reply {
  const problem = reviewer === 'agreeing' ? null : careful
  if (problem === null) return AGREEMENT
  const finding = { severity: 'major', file: null, line: null, problem, mend: 'Do what the goal says.' }
  return reply(message(JSON.stringify({ verdict: 'findings', summary: problem, findings: [finding] })))
}

/** The answer of a reviewer who agrees. */
export const AGREEMENT = reply(
  message(JSON.stringify({ verdict: 'agreed', summary: 'All of it is there.', findings: [] })),
)

/** The replies of one round, one for each line that does something on that harness, and its last words. */
function stepsOf(round: readonly string[], claim: Harness['claim']): ScriptStep[] {
  const calls = round.flatMap(line => callOf(line, claim))
  const said = round.findLast(line => line.startsWith('@say:'))?.slice('@say:'.length)
  const claimed = round.includes('@claim') && 'say' in claim ? claim.say : undefined
  const last = message(said ?? claimed ?? 'This is as far as it goes.')
  const end: Reply = round.includes('@lost-end')
    ? { kind: 'items', items: [last], end: { kind: 'cut', afterEvents: 2, how: 'reset' } }
    : reply(last)
  return [...calls.map(call => reply(call)), end]
}

/** What a line does; nothing: it is said last, or has no meaning on that harness. */
function callOf(line: string, claim: Harness['claim']): ReplyItem[] {
  if (!line.startsWith('@')) return [shell(line)]
  const [action = '', ...rest] = line.split(':')
  const text = rest.join(':')
  const hasMemory = 'shell' in claim
  switch (action) {
    case '@claim':
      return 'shell' in claim ? [shell(claim.shell)] : 'call' in claim ? [claim.call] : []
    case '@notes-goal':
      return [shell(hasMemory ? changeGoal(text) : `printf '%s\\n' ${quoted(text)} > GOAL.md`)]
    case '@open-task':
      return hasMemory ? [shell(writeTasks([DONE_TASK, { id: 'T2', name: text, done: false }]))] : []
    case '@why-nothing':
      return hasMemory
        ? [shell(`printf '\\n## Why nothing is needed\\n\\n%s\\n' ${quoted(text)} >> ${folder}/MAIN.md`)]
        : []
    default:
      return []
  }
}

const DONE_TASK = { id: 'T1', name: 'Finish slug', done: true }

const changeGoal = (text: string) =>
  `node -e 'const fs=require("fs");const f=process.argv[1];fs.writeFileSync(f,fs.readFileSync(f,"utf8").replace(/(# Goal\\n)[^]*?(\\n# )/,(_,a,b)=>a+"\\n"+process.argv[2]+"\\n"+b))' ${folder}/MAIN.md ${quoted(text)}`

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
