import { unreachable } from '../../base/errors.ts'
import { type DecisionAnswer, GIVE_SECRET, refusalOf } from '../../core/rules/decision.ts'
import type { Reply } from '../../core/shapes/reply.ts'
import { PLAN_CHOICES, PLAN_DECISION } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { inTemplate } from '../../core/template.ts'
import { type Command, problemOfCommand, sendCommand } from '../../session/records/control.ts'
import type { Records } from '../../session/records/records.ts'
import { readRunLock, unreadableLock } from '../../session/records/run-lock.ts'
import { termsInWords } from '../../tell/words/commands.ts'
import { workOf } from '../../tell/words/event.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { plansOf } from '../../tell/words/work.ts'
import type { Ask } from '../library.ts'
import type { World } from '../world.ts'
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
import { steer, steerAgent, stopAgent, takeAnswer } from './steer.ts'

/**
 * Carries out a person's command on the running session, from its own screen or another terminal, and returns the reply.
 * `session` null: none runs now.
 * @param watched receives a watcher, between two sessions too
 */
export async function handleCommand(
  command: Command,
  session: RunningSession | null,
  watched: (watcher: { pid?: number; startTime?: string | null }) => void,
): Promise<Reply> {
  if (command.type === 'watch') {
    watched(command)
    return done('The page shows its current work for a minute.')
  }
  if (session === null) return NOBODY
  const problem = problemOfCommand(command)
  if (problem !== null) return refused('bad-text', problem)
  switch (command.type) {
    case 'steer':
      return await steer(command.text, session)
    case 'steer-agent':
      return await steerAgent(command.agent, command.text, session)
    case 'stop-agent':
      return stopAgent(command.agent, session)
    case 'answer':
      return await takeAnswer(command, session)
    case 'stop':
      return stop(command.now, session)
    case 'pause':
      return pause(session)
    case 'unpause':
      return unpause(session)
    case 'retry':
      return retry(session)
    case 'interrupt':
      return interrupt(session)
    case 'skip':
      return await skip(session)
    case 'replan':
      return replan(command, session)
    case 'put-plan-back':
      return await putPlanBack(session)
    case 'decide':
      return decide(command, session)
    case 'secret':
      return secretSet(command.key, session)
    case 'limits':
      return raise(command, session)
    default:
      return unreachable(command)
  }
}

function retry({ id, runner, asked }: RunningSession): Reply {
  const { waiting, offlineSince, roundsUsed, replan } = runner.state
  if (offlineSince !== null)
    return refused('waits-for-network', 'Codex waits for the network by itself, and tries again every minute.')
  if (!asked.retry()) return refused('not-waiting', `${id} is not waiting for anything now.`)
  const goesOn = asked.isPaused ? `${id} is still paused` : `round ${roundsUsed + 1} of ${id} starts`
  const next = replan === null ? goesOn : `the agent that changes the plan of ${id} is asked now`
  const waived =
    waiting?.reason === 'max-usage'
      ? ` --max-usage has no effect until ${new Date(waiting.until).toLocaleTimeString('sv-SE').slice(0, 5)}.`
      : ''
  return done(`The wait is over; ${next}.${waived}`)
}

function raise({ type: _, at: __, ...wanted }: CommandOf<'limits'>, session: RunningSession): Reply {
  const { id, runner, asked } = session
  if (runner.isEnding) return NOBODY
  if (asked.endedBy !== null) return aboutToEnd(id)
  if (session.limit === null)
    return refused('refused', `${id} only replays its workflow; its limits cannot be changed.`)
  const words = termsInWords({ limits: wanted })
  if (words === '') return refused('bad-text', 'Name the limit to change: rounds, time, tokens or cost.')
  const { prices, cost } = runner.state
  if (wanted.cost !== undefined && (prices.length === 0 || cost.unpriced > 0))
    return refused('refused', `What ${id} costs is not known: your config.toml has no prices for its models.`)
  session.limit(wanted)
  return done(`${id} may take ${words} in total, from the next round on.`)
}

function stop(now: boolean, { id, runner, asked }: RunningSession): Reply {
  const { running, checking, step } = runner.state
  if (!runner.tell({ type: 'stop-asked', now })) return NOBODY
  if (now) asked.endNow('stop')
  else asked.stopAfterRound()
  const work = checking?.kind ?? (step === null ? null : 'step')
  if (work !== null && !now) {
    return done(`${id} stops when this ${work} has ended (--now does not wait); codemachine resume continues.`)
  }
  return done(
    running === null || now
      ? `${id} stops now; codemachine resume continues.`
      : `${id} stops when round ${running.round} has ended${runner.state.offlineSince === null ? '' : ', which waits for the network (--now does not wait)'}; codemachine resume continues.`,
  )
}

function pause({ id, runner, asked }: RunningSession): Reply {
  const { running, decision } = runner.state
  if (asked.endedBy !== null) return aboutToEnd(id)
  if (asked.isPaused) {
    // After an interruption the run starts the next session; after a pause it must not.
    asked.pause()
    return alreadyPaused(id)
  }
  if (!runner.tell({ type: 'paused' })) return NOBODY
  asked.pause()
  if (decision !== null)
    return done(`${id} pauses after the decision it is waiting for; codemachine unpause continues.`)
  const work = workOf(runner.state)
  const when = running === null ? `after this ${work}` : `when round ${running.round} has ended`
  return done(`${id} ${work === null ? 'is paused' : `pauses ${when}`}; codemachine unpause continues.`)
}

/** Ends a pause, and accepts no plan: another terminal may have ended the pause, and the person may not have seen the plan. */
function unpause({ id, runner, asked }: RunningSession): Reply {
  const decision = runner.state.decision === null ? '' : `; it asks a person to decide (${TO_DECIDE})`
  if (!asked.isPaused) return refused('not-paused', `${id} is not paused${decision}.`)
  if (!runner.tell({ type: 'unpaused' })) return NOBODY
  asked.unpause()
  if (decision !== '') return done(`${id} is no longer paused${decision}.`)
  return done(runner.state.replan === null ? `${id} continues.` : `${id} continues after its plan is changed.`)
}

function interrupt({ id, runner, asked }: RunningSession): Reply {
  const { running, waiting, replan, decision } = runner.state
  if (runner.isEnding) return NOBODY
  if (running === null && asked.endedBy !== null) return aboutToEnd(id)
  if (decision !== null) return refused('already-paused', `${id} waits for a decision of a person: ${TO_DECIDE}.`)
  if (running === null && asked.isPaused) return nothingRuns(id, runner.state)
  if (!runner.tell({ type: 'interrupt-asked' })) return NOBODY
  asked.hold()
  runner.interrupt()
  if (running !== null && asked.endedBy !== null)
    return done(`Round ${running.round} of ${id} is interrupted, and ${id} ends; codemachine resume continues.`)
  const after = replan === null ? 'its wait is over' : 'its wait is over and its plan is changed'
  const holds = waiting === null ? `${id} holds` : `${id} holds once ${after}`
  const what = running === null ? holds : `Round ${running.round} of ${id} is interrupted, and the session pauses`
  return done(`${what}; codemachine unpause continues.`)
}

function nothingRuns(id: string, { waiting, replan }: SessionState): Reply {
  if (replan === null) return alreadyPaused(id)
  return refused(
    'changing-plan',
    waiting === null
      ? `${id} changes its plan next, then pauses.`
      : `${id} waits to change its plan, then pauses; codemachine retry ends the wait.`,
  )
}

function alreadyPaused(id: string): Reply {
  return refused('already-paused', `${id} is paused already; codemachine unpause continues.`)
}

/** Handles a newly stored secret: it answers an open question for its value. */
function secretSet(key: string, session: RunningSession): Reply {
  const { id, runner } = session
  const { decision } = runner.state
  if (decision?.secret?.key === key && decision.choices.some(choice => choice.id === GIVE_SECRET))
    return decide({ choice: GIVE_SECRET, decision: decision.id }, session)
  if (!runner.tell({ type: 'secret-set', key })) return NOBODY
  return done(`${id} knows of ${key}.`)
}

async function skip({ id, runner, asked, waiting }: RunningSession): Promise<Reply> {
  const endsTheRun = asked.endedBy !== null && asked.endedBy !== 'skip'
  if (!runner.tell({ type: 'skip-asked' })) return NOBODY
  asked.skip()
  const left = await waiting().catch(() => null)
  const follows = left === 0 ? 'the queue is empty' : 'the next in the queue starts'
  const next = endsTheRun ? 'the run with it' : follows
  return done(`${id} ends now, and ${next}; codemachine resume ${id} continues it.`)
}

function replan({ text, go = false }: { text: string; go?: boolean }, session: RunningSession): Reply {
  const { id, runner, asked } = session
  const { running, waiting, windingDown } = runner.state
  if (runner.isEnding) return NOBODY
  if (asked.endedBy !== null)
    return refused('ending', `${id} is about to end; its plan can be changed once it is resumed.`)
  const limit = runner.limitOfPlan
  if (limit !== null)
    return refused(
      'limit-reached',
      `The limit of ${limit} of ${id} is reached, so its plan can be changed once it is resumed with more.`,
    )
  if (runner.state.kind?.replansItself) {
    const why = refusalOfReplan(runner.state)
    return why === null ? tellTemplate({ text, go }, session) : refused('limit-reached', why)
  }
  // Once a plan is accepted, no question is open until the plan changes.
  const isAnswer = asksAboutPlan(session) && !go
  const isTaken = isAnswer ? runner.decide(PLAN_CHOICES.change, text) : tellReplan({ text, go }, session)
  if (!isTaken) return NOBODY
  const first = running === null ? '' : `Round ${running.round} is interrupted. `
  const soon = windingDown === 'usage' ? 'once the usage limit is renewed' : 'now'
  const when = waiting === null ? soon : 'once its wait is over'
  const held = isAnswer ? 'Then it asks about the plan again.' : 'Then it pauses; codemachine unpause continues.'
  const then = go ? 'Then it continues without a person.' : held
  return done(
    `${first}The agent that changes the plan of ${id} is asked ${when}; codemachine logs shows the result. ${then}`,
  )
}

/** Restores the plan from before its last change, only while nothing runs that reads or writes it. */
async function putPlanBack({ id, runner, asked }: RunningSession): Promise<Reply> {
  const { running, replan, pausedAt } = runner.state
  if (runner.isEnding) return NOBODY
  if (asked.endedBy !== null) return aboutToEnd(id)
  if (running !== null || replan !== null || pausedAt === null)
    return refused('not-paused', `${id} is at work; its plan can be restored while it is paused after the change.`)
  const problem = await runner.planChange.putBack()
  return problem === null
    ? done(`The plan of ${id} is as it was before its last change; codemachine unpause continues.`)
    : refused('refused', problem)
}

function refusalOfReplan(state: SessionState): string | null {
  const { kind, work, template } = state
  return inTemplate(template, 'refusesReplan', () => kind?.refusesReplan?.(work, state) ?? null)
}

/** Asks the session's template to change its plan. Nothing runs before the new plan is accepted, so no pause is needed. */
function tellTemplate({ text, go }: { text: string; go: boolean }, session: RunningSession): Reply {
  const { id, runner } = session
  const { running, waiting } = runner.state
  if (!tellReplan({ text, go, holds: false }, session)) return NOBODY
  const first = running === null ? '' : `Round ${running.round} is interrupted. `
  const when = waiting === null ? 'now' : 'once its wait is over'
  const then = go
    ? 'it is carried out without being shown again'
    : 'unless plans are accepted automatically, you see it before anything is carried out'
  return done(`${first}The plan of ${id} is changed ${when}; ${then}.`)
}

/** Journals the request and interrupts the running work. Returns false if the session is over. */
function tellReplan(
  { text, go, holds = !go }: { text: string; go: boolean; holds?: boolean },
  { runner, asked }: RunningSession,
): boolean {
  if (!runner.tell({ type: 'replan-asked', text, ...(go ? { goesOn: true } : {}) })) return false
  if (holds) asked.hold()
  else if (asked.isPaused && runner.tell({ type: 'unpaused' })) asked.unpause()
  runner.interrupt()
  return true
}

/** Returns whether the session asks if its plan may run. */
function asksAboutPlan({ runner }: RunningSession): boolean {
  const { decision, ended } = runner.state
  return decision?.id === PLAN_DECISION && ended === null
}

/** Answers the session's open question; the first answer counts. It also ends a pause. */
function decide(answer: DecisionAnswer, session: RunningSession): Reply {
  const { id, runner, asked } = session
  const refusal = refusalOf(answer, runner.state) ?? refusalOfVersion(answer, session)
  if (refusal !== null) return refusal
  if (runner.isEnding) return NOBODY
  if (asked.endedBy !== null) return aboutToEnd(id)
  const { choice } = answer
  const text = answer.text === undefined || answer.text.trim() === '' ? null : answer.text
  const isPlan = asksAboutPlan(session)
  const isChange = isPlan && choice === PLAN_CHOICES.change && !runner.state.kind?.replansItself
  if (isChange && text !== null) return replan({ text }, session)
  const { label = choice, opensFile = false } = runner.state.decision?.choices.find(each => each.id === choice) ?? {}
  if (!runner.decide(choice, text)) return NOBODY
  if (asked.isPaused && runner.tell({ type: 'unpaused' })) asked.unpause()
  if (isPlan && opensFile) return done(`${id} reads the file now; codemachine plan shows the result.`)
  if (isPlan && choice === PLAN_CHOICES.stop) return done(`${id} stops now; codemachine resume continues.`)
  if (isPlan && choice === PLAN_CHOICES.change) return done(`The plan of ${id} is changed now, and shown again.`)
  return done(isPlan ? `${id} continues.` : `${id} continues with: ${oneLine(label, LABEL_CHARS)}`)
}

/** Refuses an answer to another version of the plan: the person has not seen the open one. Null: the version is right. */
function refusalOfVersion({ version }: DecisionAnswer, session: RunningSession): Reply | null {
  if (version === undefined) return null
  const { id, runner } = session
  const waits = asksAboutPlan(session) ? plansOf(runner.state).at(-1)?.version : undefined
  if (waits === version) return null
  const message =
    waits === undefined
      ? `What ${id} asks about has no versions; leave the version out.`
      : `Version ${waits} of the plan of ${id} waits, and not version ${version}.`
  return refused('other-version', message)
}

/** How long a run in another process may take to answer, in ms. */
const REPLY_MS = 10_000

/**
 * Sends a command to the codemachine that runs in the work directory, in any process. Returns its reply; null if none runs
 * there. Throws a `UserError` if that is unknown, or there is no reply within 10 s.
 */
export async function askRun(
  { clock, platform }: Pick<World, 'clock' | 'platform'>,
  records: Records,
  ask: Ask | Omit<CommandOf<'answer'>, 'at'>,
): Promise<Reply | null> {
  const lock = await readRunLock(records.lock, platform)
  if (lock.state === 'unreadable') throw unreadableLock(lock)
  if (lock.state === 'free' || lock.state === 'stale') return null
  const command = { ...ask, at: new Date(clock.now()).toISOString() }
  return await sendCommand(records.control, command, { clock, timeoutMs: REPLY_MS })
}
