import { computed } from '@preact/signals'
import { useState } from 'preact/hooks'
import { PAGE_HINTS } from '../../../tell/words/names.ts'
import { formatCost, formatSpan, formatTokens } from '../../../tell/words/numbers.ts'
import { describeOutcome } from '../../../tell/words/outcome.ts'
import { titleLine } from '../../../tell/words/safe-text.ts'
import { cardInWords, type SessionReport } from '../../../tell/words/status.ts'
import { Inbox } from './inbox.tsx'
import { arrivedAt, type Card, cards, count, hasUnchecked, needsPerson } from './model.ts'
import { now } from './parts.tsx'
import { TEXTS } from './texts.ts'

const groups = computed(() => {
  const all = cards.value ?? []
  const needs = all.filter(needsPerson)
  const check = all.filter(each => !needsPerson(each) && hasUnchecked(each))
  const rest = all.filter(each => !needs.includes(each) && !check.includes(each))
  const isAtWork = ({ standing }: Card) => standing === 'running' || standing === 'unknown'
  return { needs, check, atWork: rest.filter(isAtWork), ended: rest.filter(each => !isAtWork(each)) }
})

/** All sessions: first what waits for a person. */
export function NowPage() {
  if (cards.value === null) return <p class="quiet">{TEXTS.reading}</p>
  if (cards.value.length === 0)
    return <p class="quiet">No sessions yet. Start one in a terminal with codemachine "…"; it appears here.</p>
  const { needs, check, atWork, ended } = groups.value
  const left = count.value - cards.value.length
  return (
    <>
      <h1 class="unseen">{TEXTS.now}</h1>
      <Group title="Needs you" of={needs} />
      <Group title="Check these" of={check} />
      <Group title="At work" of={atWork} />
      <Group title="Ended" of={ended} />
      {left > 0 && <p class="quiet">{`${left} older sessions are not shown. codemachine list --all lists them.`}</p>}
    </>
  )
}

/** So many cards are drawn at first, and more each time that a person asks for them. */
const CARDS = 48

function Group({ title, of }: { title: string; of: readonly Card[] }) {
  const [most, setMost] = useState(CARDS)
  if (of.length === 0) return null
  return (
    <section aria-label={title}>
      <h2>
        {title} <span class="count">{of.length}</span>
      </h2>
      <ul class="cards">
        {of.slice(0, most).map(card => (
          <li key={card.key}>
            <SessionCard card={card} />
          </li>
        ))}
      </ul>
      {of.length > most && (
        <button type="button" class="all-cards" onClick={() => setMost(before => before + CARDS)}>
          {`Show ${Math.min(CARDS, of.length - most)} more`}
        </button>
      )}
    </section>
  )
}

/** A report as it would be told now: while a round runs, its time and that of the session go on. */
function asOfNow(report: SessionReport, ageMs: number): SessionReport {
  const { round, elapsedMs, standing } = report
  if (round === null || standing !== 'running') return report
  const more = ageMs + Math.max(0, now.value - arrivedAt.value)
  return { ...report, elapsedMs: elapsedMs + more, round: { ...round, elapsedMs: round.elapsedMs + more } }
}

/** What a card says of its session: its state, facts and tone. */
export function wordsOf({ report, ageMs, outcome, standing, problem }: Card) {
  const words = report === null ? null : cardInWords(asOfNow(report, ageMs), now.value, PAGE_HINTS)
  const state = words?.state ?? problem ?? (outcome === null ? standing : describeOutcome(outcome).short)
  const running = standing === 'running' ? 'running' : 'plain'
  return { words, state, tone: outcome === null ? running : describeOutcome(outcome).tone }
}

function SessionCard({ card }: { card: Card }) {
  const { key, id, goal, directory, worktree, queued } = card
  const { words, state, tone } = wordsOf(card)
  const tasks = card.report?.tasks ?? null
  return (
    <article class={`card ${tone} ${needsPerson(card) ? 'asking' : ''}`}>
      <p class="state">{state}</p>
      <h3>
        <a href={`#/s/${key}`}>{titleLine(goal, 200)}</a>
      </h3>
      {tasks !== null && tasks.total > 0 && (
        <progress value={tasks.done} max={tasks.total} aria-label={`${tasks.done} / ${tasks.total}`} />
      )}
      {card.report !== null && <NearestLimit report={card.report} />}
      {words !== null && (
        <>
          <p class="facts">{words.facts.join(' · ')}</p>
          {words.wait !== '' && <p class="wait">{words.wait}</p>}
          {/* What it decides or came to is said above. */}
          {words.last !== '' && card.outcome === null && card.report?.decision == null && (
            <p class="last">{words.last}</p>
          )}
          {words.ahead !== '' && <p class="quiet">{words.ahead}</p>}
        </>
      )}
      <Inbox card={card} />
      <p class="quiet where">
        {worktree === null ? '' : `${worktree} · `}
        {directory} · {id}
        {queued > 0 ? ` · ${TEXTS.queued(queued)}` : ''}
      </p>
    </article>
  )
}

/** The limit of which most is used, from a half of it on. */
function NearestLimit({ report }: { report: SessionReport }) {
  const nearest = nearestLimit(report)
  if (nearest === null) return null
  const { share, words } = nearest
  return <p class={share >= 0.8 ? 'wait' : 'quiet'}>Nearest limit: {words}</p>
}

/** Null: none is near. */
function nearestLimit({ limits, roundsUsed, elapsedMs, tokens, cost, outcome }: SessionReport) {
  if (outcome !== null) return null
  const all = [
    limitUsed(roundsUsed, limits.rounds, TEXTS.roundsOf),
    limitUsed(elapsedMs, limits.timeMs, (used, most) => TEXTS.amountOf(formatSpan(used), formatSpan(most))),
    limitUsed(tokens, limits.tokens, (used, most) => TEXTS.amountOf(formatTokens(used), formatTokens(most))),
    limitUsed(cost?.amount ?? 0, limits.cost ?? null, (used, most) =>
      TEXTS.amountOf(formatCost(used), formatCost(most)),
    ),
  ]
  return all.reduce(
    (best, each) => (each.share >= 0.5 && each.share > (best?.share ?? 0) ? each : best),
    null as Used | null,
  )
}

interface Used {
  share: number
  words: string
}

function limitUsed(used: number, most: number | null, words: (used: number, most: number) => string): Used {
  return most === null || most <= 0 ? { share: 0, words: '' } : { share: used / most, words: words(used, most) }
}
