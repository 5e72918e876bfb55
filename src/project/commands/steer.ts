import { unreachable } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import type { Reply } from '../../core/shapes/reply.ts'
import { partOf, type SessionState } from '../../core/state/state.ts'
import { inTemplate } from '../../core/template.ts'
import type { AgentWorking } from '../../session/delegation/agent-request.ts'
import type { Session } from '../../session/session.ts'
import { agentOf, wordsForPart } from '../../tell/words/plan.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import {
  aboutToEnd,
  type CommandOf,
  done,
  LABEL_CHARS,
  NOBODY,
  type RunningSession,
  refused,
  TO_DECIDE,
} from './running-session.ts'

/** Passes a person's message to the running turn or the next round. The reply says who reads it, and when. */
export async function steer(text: string, session: RunningSession): Promise<Reply> {
  const readsNow = readNow(session)
  const taken = await session.runner.steer(text)
  switch (taken) {
    case 'delivered':
      return done(readsNow)
    case 'kept':
      return { code: 'kept', message: keptUntil(session) }
    case 'over':
      return isSummedUpOnly(session)
        ? refused(
            'ending',
            `${onlySummary(session)}. To continue from it: codemachine change --follow-up ${session.id} "…"`,
          )
        : NOBODY
    default:
      return unreachable(taken)
  }
}

/** Says who reads a message to the running turn, and when. Its agents do not read it, and it waits for them. */
function readNow(session: RunningSession): string {
  const { atWork } = session.runner.delegation.agents
  const [first] = atWork
  if (first === undefined) return `${readerNow(session)} reads it with its next step.`
  const when = 'with its next step, once the agents that it waits for have ended'
  const toTell = `To tell one of them: codemachine steer --agent ${shortName(first, atWork)} "…"`
  return `${readerNow(session)} reads it ${when}. They are not told: ${listed(atWork)}. ${toTell}`
}

function readerNow({ id, runner }: RunningSession): string {
  const { running, kind } = runner.state
  if (running === null) return `The agent at work in ${id}`
  if (running.replan !== null) return `The agent that changes the plan of ${id}`
  const { part, round } = running
  if (part === null) return `The agent of round ${round}`
  const words = wordsForPart({ kind }, part)
  return partOf(kind, part).free
    ? `The agent of the round that runs now (${words})`
    : `The agent of round ${round} (${words})`
}

/** Says who will read a message later, if nobody reads it now. */
function keptUntil(session: RunningSession): string {
  const { id, asked } = session
  if (isSummedUpOnly(session))
    return `${onlySummary(session)}; when it is resumed, the agent of its next round reads it first.`
  if (asked.endedBy !== null)
    return `${id} is about to end; when it is resumed, the agent of its next round reads it first.`
  return `The next round reads it first: ${whyNobody(session)}.`
}

function whyNobody({ id, runner, asked }: RunningSession): string {
  const { running, waiting, decision, checking } = runner.state
  if (running !== null) return `the turn of round ${running.round} accepts no text now`
  if (decision !== null) return `${id} waits for a decision of a person (${TO_DECIDE})`
  if (waiting !== null) return `${id} waits (codemachine retry ends that)`
  if (asked.isPaused) return `${id} is paused (codemachine unpause continues)`
  return checking === null ? `${id} is between two rounds` : `${id} runs a ${checking.kind}`
}

const MOST_LISTED = 6

/** `backend-dev (T1), frontend-dev (T2, T3)`. */
function listed(atWork: readonly AgentWorking[]): string {
  const names = atWork.slice(0, MOST_LISTED).map(each => {
    const name = oneLine(shortName(each, atWork), LABEL_CHARS)
    return each.tasks.length === 0 ? name : `${name} (${oneLine(each.tasks.join(', '), LABEL_CHARS)})`
  })
  const left = atWork.length - names.length
  return `${names.join(', ')}${left === 0 ? '' : ` and ${left} more`}`
}

/** Returns the name for an agent: its own name if only one instance works, else the instance's. */
function shortName({ agent, instance }: AgentWorking, atWork: readonly AgentWorking[]): string {
  return atWork.filter(each => each.agent === agent).length === 1 ? agent : instance
}

/** Passes a person's message to an agent at work in the round. */
export async function steerAgent(named: string, text: string, session: RunningSession): Promise<Reply> {
  const { runner } = session
  const agent = findAgent(named, session)
  if ('code' in agent) return agent
  const { instance } = agent
  const name = shortName(agent, runner.delegation.agents.atWork)
  const round = runner.state.running?.round ?? null
  if (!(await agent.steer(text))) {
    return agent.over.aborted
      ? refused('agent-ended', `${name} has just ended, and did not read the text.`)
      : refused('not-heard', `The turn of ${name} accepts no text now. Send it again in a moment.`)
  }
  runner.tell({ type: 'steered', round, text, delivered: true, agent: instance })
  return done(`${name} reads it with its next step; ${callerOf(agent, session)} is not told.`)
}

/** Names the caller of an agent, for the middle of a sentence. */
function callerOf({ parent }: AgentWorking, { runner }: RunningSession): string {
  if (parent !== null) return shortName(parent, runner.delegation.agents.atWork)
  const { running } = runner.state
  return running === null ? 'who gave it its work' : `the agent of round ${running.round}`
}

/** Ends the turn of an agent at work in the round. */
export function stopAgent(named: string, session: RunningSession): Reply {
  const { runner } = session
  const agent = findAgent(named, session)
  if ('code' in agent) return agent
  const name = shortName(agent, runner.delegation.agents.atWork)
  if (!runner.tell({ type: 'stop-asked', now: true, agent: agent.instance })) return NOBODY
  agent.stop()
  return done(`${name} is stopped now; ${callerOf(agent, session)} is told that a person did it, and continues.`)
}

/** Returns the agent at work that a person names, by instance, or by agent if it has only one instance. Else a refusal. */
function findAgent(named: string, { id, runner }: RunningSession): AgentWorking | Reply {
  const { atWork, ended } = runner.delegation.agents
  const exact = atWork.find(({ instance }) => instance === named)
  if (exact !== undefined) return exact
  const [one, ...others] = atWork.filter(({ agent }) => agent === named)
  if (one !== undefined && others.length === 0) return one
  if (one !== undefined) {
    return refused(
      'unknown-agent',
      `More than one ${named} is at work in ${id}; name one of these: ${listed([one, ...others])}.`,
    )
  }
  const who = atWork.length === 0 ? 'no other agent is at work now' : `at work: ${listed(atWork)}`
  const last = ended.findLast(instance => instance === named || agentOf(instance) === named)
  if (last !== undefined) {
    const alike = [...ended, ...atWork.map(({ instance }) => instance)].filter(each => agentOf(each) === agentOf(last))
    return refused('agent-ended', `${alike.length === 1 ? agentOf(last) : last} has ended already; ${who}.`)
  }
  if (atWork.length === 0) return refused('unknown-agent', `Only the agent of the round is at work in ${id} now.`)
  const known = atWork.flatMap(each => [shortName(each, atWork), each.instance])
  const nearest = nearestName(named, known)
  const instead = nearest === null ? who : `did you mean "${nearest}"? At work: ${listed(atWork)}`
  return refused('unknown-agent', `There is no agent "${oneLine(named, LABEL_CHARS)}" at work in ${id}; ${instead}.`)
}

/** Passes a person's answer to the running turn, and to the agent that asked. */
export async function takeAnswer(
  { session: of, question, agent: asker, text }: CommandOf<'answer'>,
  session: RunningSession,
): Promise<Reply> {
  const { id, runner, asked } = session
  if (of !== id) return refused('other-session', `${id} runs, and not ${of}.`)
  if (runner.isEnding) return NOBODY
  if (asked.endedBy !== null || isSummedUpOnly(session)) return aboutToEnd(id)
  const [readsNow, round] = [readNow(session), runner.state.running?.round ?? null]
  const { atWork } = runner.delegation.agents
  const agent = atWork.find(({ instance }) => instance === asker)
  const name = agent === undefined ? '' : shortName(agent, atWork)
  const isHeard = agent !== undefined && (await agent.steer(text))
  if (isHeard) runner.tell({ type: 'steered', round, text, delivered: true, agent: agent.instance, answers: question })
  const too = isHeard ? ` So does ${name}, which asked.` : ''
  const taken = await tellRound(text, question, session)
  if (taken === 'over') return NOBODY
  if (taken === 'delivered') return done(`${readsNow}${too}`)
  return { code: 'kept', message: `${keptUntil(session)}${too}` }
}

/** An answer changes the work, so a round that only looks does not get it: the next one does. */
async function tellRound(text: string, question: string, { runner }: RunningSession): ReturnType<Session['steer']> {
  const { running, kind } = runner.state
  if (running?.part == null || !partOf(kind, running.part).free) return await runner.steer(text, question)
  const isTold = runner.tell({ type: 'steered', round: running.round, text, delivered: false, answers: question })
  return isTold ? 'kept' : 'over'
}

/** Returns whether only the session's summary is left to write, though nobody asked it to end. */
function isSummedUpOnly({ runner, asked }: RunningSession): boolean {
  return !runner.isEnding && asked.endedBy === null && onlySumsUp(runner.state)
}

function onlySummary({ id }: RunningSession): string {
  return `Only the summary of ${id} follows, so no agent would read this`
}

function onlySumsUp(state: SessionState): boolean {
  const { kind, work, template } = state
  return inTemplate(template, 'isSummedUp', () => kind?.isSummedUp?.(work, state) ?? false)
}
