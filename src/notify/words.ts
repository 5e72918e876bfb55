import { unreachable } from '../base/errors.ts'
import type { RoundOutcome, SessionOutcome } from '../session/outcome.ts'
import { formatCount } from '../ui/format-count.ts'
import { formatSpan } from '../ui/format-span.ts'
import { formatTokens } from '../ui/format-tokens.ts'
import { wordsForClass } from '../ui/words-for-cause.ts'
import { wordsForRemedy, wordsForStall } from '../ui/words-for-stall.ts'
import type { NotificationFacts } from './notification.ts'
import { plainLine } from './plain-line.ts'

/** What happened, in few words and in full sentences; not yet safe to be shown. */
export function inWords(facts: NotificationFacts, at: string): { title: string; message: string } {
  switch (facts.event) {
    case 'ended':
    case 'needs-person': {
      if ('about' in facts) return buildInWords(facts)
      const { title, message } = outcomeInWords(facts.outcome)
      const spent = `${formatCount(facts.rounds, 'round')}, ${formatSpan(facts.durationMs)}, ${formatTokens(facts.tokens)}.`
      return { title, message: `${message} ${spent}${questionsInWords(facts.questions)}` }
    }
    case 'waiting': {
      const until = Date.parse(facts.until)
      return {
        title: `waiting until ${timeOf(until)}`,
        message: `It goes on in ${formatSpan(until - Date.parse(at))} (${roundInWords(facts.cause)}).`,
      }
    }
    case 'stuck':
      return {
        title: 'stuck',
        message: `${sentence(wordsForStall(facts.why, facts.rounds))} The next round is ${wordsForRemedy(facts.remedy)}.`,
      }
    case 'round-ended': {
      const spent = [formatSpan(facts.durationMs), ...(facts.tokens === null ? [] : [formatTokens(facts.tokens)])].join(
        ', ',
      )
      return {
        title: `round ${facts.round} ended`,
        message: `${roundInWords(facts.roundOutcome)}; ${spent}, ${formatCount(facts.changedCount, 'file')} changed.`,
      }
    }
    case 'paused':
      return { title: 'paused', message: 'It goes on after `codemachine unpause`.' }
    case 'test':
      return { title: 'a test', message: 'Notifications arrive.' }
    default:
      return unreachable(facts)
  }
}

const REASON_CHARS = 500
const NAME_CHARS = 120

function buildInWords(facts: Extract<NotificationFacts, { about: string }>): { title: string; message: string } {
  switch (facts.about) {
    case 'plan':
      return {
        title: 'the plan waits for you',
        message: `It has ${formatCount(facts.tasks, 'task')}; \`codemachine unpause\` starts the build.`,
      }
    case 'task':
      return {
        title: `task ${plainLine(facts.task, NAME_CHARS)} is parked`,
        message: `${plainLine(facts.name, NAME_CHARS)}: ${plainLine(facts.reason, REASON_CHARS)} The rest goes on without it.`,
      }
    default:
      return unreachable(facts)
  }
}

function questionsInWords(questions: number): string {
  if (questions === 0) return ''
  return ` It asked ${formatCount(questions, 'question')}.`
}

function outcomeInWords(outcome: SessionOutcome): { title: string; message: string } {
  switch (outcome.kind) {
    case 'done':
      return outcome.verified
        ? { title: 'done', message: 'Done, and verified.' }
        : { title: 'done, unverified', message: 'Done; unverified, for no gate had to pass.' }
    case 'limit':
      return { title: 'limit reached', message: `The limit of ${outcome.limit} is reached.` }
    case 'needs-person': {
      const hint = outcome.hint === null ? '' : ` ${plainLine(outcome.hint, REASON_CHARS)}`
      return { title: 'needs a person', message: `${plainLine(outcome.reason, REASON_CHARS)}${hint}` }
    }
    case 'stalled':
      return { title: 'stalled', message: sentence(wordsForStall(outcome.why, outcome.rounds)) }
    case 'interrupted':
      return {
        title: 'interrupted',
        message:
          outcome.by === 'stop' || outcome.by === 'skip'
            ? `Ended by \`codemachine ${outcome.by}\`.`
            : `Ended by ${outcome.by}.`,
      }
    default:
      return unreachable(outcome)
  }
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
}

function roundInWords({ class: end, message }: RoundOutcome): string {
  const words = wordsForClass(end)
  return message === null ? words : `${words}: ${plainLine(message, REASON_CHARS)}`
}

/** `2026-11-21 05:02 UTC`: who is told may be in another time zone than the machine. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}
