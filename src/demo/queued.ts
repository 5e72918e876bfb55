import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { claimDone, conclude, findSessionPaths, patch, type SessionPaths, say, shell } from './actions.ts'
import { type AgentPart, agentsScript } from './agents-script.ts'
import { type ModelRequest, type ReplyItem, reply, type Script, type ScriptStep } from './model/reply.ts'

/** The steps of a round. */
export type RoundSteps = readonly ScriptStep[]

/**
 * The part of an agent in all sessions of a demo. The first one plays `first`. Each other one is a prompt that a person
 * queued: a script cannot do what it asks, so it says this, and notes the prompt.
 * @param first null: the demo's own session has other agents
 */
export function goalsInTurn(first: readonly RoundSteps[] | null, deltaMs: number): AgentPart {
  const sessions = new Map<string, AgentPart>()
  return (nth, request) => {
    const { main } = sessionOf(request)
    const isFirst = first !== null && sessions.size === 0
    const known = sessions.get(main) ?? roundsInTurn(isFirst ? first : notingRounds(goalOf(request), deltaMs))
    sessions.set(main, known)
    return known(nth, request)
  }
}

/** Plays one round after another. After an interruption, a round begins with its first look, and repeats the interrupted step. */
function roundsInTurn(rounds: readonly RoundSteps[]): AgentPart {
  let next = { round: 0, step: 0 }
  const begun = new Map<number, typeof next>()
  return (nth, { step }) => {
    const from = begun.get(nth) ?? next
    begun.set(nth, from)
    const steps = rounds[from.round] ?? []
    const skipped = Math.max(from.step - 1, 0)
    const at = step === 0 ? from.step : step + skipped
    if (from.round === next.round)
      next = at < steps.length - 1 ? { round: from.round, step: at } : { round: from.round + 1, step: 0 }
    return steps.toSpliced(1, skipped)
  }
}

/**
 * The script of a fleet's sessions. The files say which round is next: another worker may continue it.
 * @param holdUp returns what the last round waits for in a work directory; null: nothing
 */
export function fleetScript(deltaMs: number, holdUp: (directory: string) => Promise<unknown> | null): Script {
  const begun = new Map<number, RoundSteps>()
  const goal: AgentPart = (_, request) => {
    const known = begun.get(request.conversation)
    if (known !== undefined) return known
    const directory = /<cwd>([^<]+)<\/cwd>/.exec(request.userTexts.join('\n'))?.[1] ?? ''
    const [first = [], last = []] = notingRounds(goalOf(request), deltaMs)
    const held: ScriptStep = () => {
      const until = holdUp(directory)
      return { ...reply(...(until === null ? [] : [{ kind: 'hold' as const, until }]), shell('cat NOTES.md')), deltaMs }
    }
    const steps = existsSync(join(directory, 'NOTES.md')) ? [held, ...last] : first
    begun.set(request.conversation, steps)
    return steps
  }
  return agentsScript({ goal })
}

/** One round notes the prompt, and one that changes nothing claims it. */
function notingRounds(prompt: string, deltaMs: number): RoundSteps[] {
  const step =
    (items: (session: SessionPaths) => readonly ReplyItem[]): ScriptStep =>
    request => ({ ...reply(...items(sessionOf(request))), deltaMs })
  const quoted = prompt.replace(/^/gm, '> ')
  const task = { id: 'T1', name: 'Note the prompt', details: '', acceptanceCriteria: 'NOTES.md contains it.' }
  const plan = { tasks: [{ ...task, phase: 'Building', done: true, subtasks: [] }] }
  return [
    [
      step(({ main, tasks }) => [say(NO_MODEL), shell(`cat ${main} ${tasks}`)]),
      step(() => [
        shell(`cat >> NOTES.md <<'EOF'\n${quoted}\n\nEOF\ngit add NOTES.md && git commit -qm "Note a prompt"`),
      ]),
      step(({ tasks }) => [shell(`cat > ${tasks} <<'EOF'\n${JSON.stringify(plan, null, 2)}\nEOF`)]),
      step(() => [conclude('I noted your prompt in NOTES.md. A later round looks at it, as this one changed a file.')]),
    ],
    [
      step(() => [shell('cat NOTES.md; git status --short')]),
      step(session => [patch(claimDone(session))]),
      step(() => [conclude('Your prompt is in NOTES.md. In your own project, a real model works on it.')]),
    ],
  ]
}

const NO_MODEL =
  'This is a demo: a script plays my part, and no model reads your prompt. I can only note it in NOTES.md.'

/** The folder of the session of a request. */
export function sessionOf({ developerTexts }: ModelRequest): SessionPaths {
  const session = findSessionPaths(developerTexts)
  if (session === null) throw new Error('the developer instructions name no .codemachine/projects/<id>/MAIN.md')
  return session
}

/** The goal of a request: the first text between marks. */
export function goalOf({ userTexts }: ModelRequest): string {
  return /\[begin (\w+)\]\n([\s\S]*?)\n\[end \1\]/.exec(userTexts.join('\n'))?.[2] ?? ''
}
