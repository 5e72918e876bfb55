import { computed, signal } from '@preact/signals'
import type { AskedQuestion } from '../../records/answers.ts'
import { describeOutcome } from '../../words/outcome.ts'
import { titleLine } from '../../words/safe-text.ts'
import { cardInWords, type SessionReport } from '../../words/status.ts'
import { follow, post, Refused, type Told } from './client.ts'
import { TEXTS } from './texts.ts'

/** A session as the server tells it. */
export interface Card {
  key: string
  id: string
  goal: string
  directory: string
  worktree: string | null
  standing: SessionReport['standing'] | 'broken'
  outcome: SessionReport['outcome']
  problem: string | null
  report: SessionReport | null
  questions: readonly AskedQuestion[]
  queued: number
}

/** All sessions, the newest first; null: none have come yet. */
export const cards = signal<readonly Card[] | null>(null)
/** The time, by the second; Unix time, ms. */
export const now = signal(Date.now())

/** Follows the sessions until the signal aborts. */
export async function followCards(over: AbortSignal): Promise<void> {
  const tick = setInterval(() => {
    now.value = Date.now()
  }, 1000)
  const onTold = ({ data }: Told<{ cards: readonly Card[]; isWhole: boolean }>) => {
    if (data.isWhole || data.cards.length > 0) cards.value = data.cards
  }
  await follow(() => 'now', onTold, over)
  clearInterval(tick)
}

const groups = computed(() => {
  const all = cards.value ?? []
  const needs = all.filter(needsPerson)
  const rest = all.filter(each => !needs.includes(each))
  return {
    needs,
    atWork: rest.filter(({ standing }) => standing === 'running' || standing === 'unknown'),
    ended: rest.filter(({ standing }) => standing !== 'running' && standing !== 'unknown'),
  }
})

function needsPerson({ questions, report, outcome }: Card): boolean {
  return questions.length > 0 || report?.decision != null || outcome?.kind === 'needs-person'
}

/** All sessions: first what waits for a person. */
export function NowPage() {
  if (cards.value === null) return <p class="quiet">{TEXTS.reading}</p>
  if (cards.value.length === 0) return <p class="quiet">{TEXTS.nothingYet}</p>
  const { needs, atWork, ended } = groups.value
  return (
    <>
      <Group title={TEXTS.needsYou} of={needs} />
      <Group title={TEXTS.atWork} of={atWork} />
      <Group title={TEXTS.ended} of={ended} />
    </>
  )
}

function Group({ title, of }: { title: string; of: readonly Card[] }) {
  if (of.length === 0) return null
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul class="cards">
        {of.map(card => (
          <li key={card.key}>
            <SessionCard card={card} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function SessionCard({ card }: { card: Card }) {
  const { key, id, goal, report, outcome, directory, worktree, queued, questions, problem } = card
  const words = report === null ? null : cardInWords(report, now.value)
  const state = words?.state ?? problem ?? (outcome === null ? card.standing : describeOutcome(outcome).short)
  const tone = outcome === null ? 'plain' : describeOutcome(outcome).tone
  return (
    <article class={`card ${tone}`}>
      <h3>
        <a href={`#/s/${key}`}>{titleLine(goal, 200)}</a>
      </h3>
      <p class="state">{state}</p>
      {words !== null && (
        <>
          <p class="facts">{words.facts.join(' · ')}</p>
          {words.wait !== '' && <p class="wait">{words.wait}</p>}
          {words.last !== '' && <p class="last">{words.last}</p>}
          {words.ahead !== '' && <p class="quiet">{words.ahead}</p>}
        </>
      )}
      {questions.map(question => (
        <Question key={question.question} card={card} question={question} />
      ))}
      <p class="quiet where">
        {worktree === null ? '' : `${worktree} · `}
        {directory} · {id}
        {queued > 0 ? ` · ${TEXTS.queued(queued)}` : ''}
      </p>
    </article>
  )
}

/** A question of an agent, with its choices: one tap answers. */
export function Question({ card, question: asked }: { card: Card; question: AskedQuestion }) {
  const said = signal('')
  const answer = async (text: string) => {
    try {
      const { message } = await post<{ message: string }>(`sessions/${card.key}/answer`, {
        question: asked.question,
        answer: text,
      })
      said.value = message
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      said.value = error.message
    }
  }
  return (
    <form
      class="question"
      onSubmit={event => {
        event.preventDefault()
        const field = event.currentTarget.elements.namedItem('answer')
        if (field instanceof HTMLTextAreaElement && field.value.trim() !== '') void answer(field.value)
      }}
    >
      <p>
        <b>{asked.question}</b> {asked.text}
      </p>
      <div class="choices">
        {asked.options.map(option => (
          <button key={option} type="button" onClick={() => void answer(option)}>
            {option}
          </button>
        ))}
      </div>
      <label>
        {TEXTS.ownWords}
        <textarea name="answer" rows={2} />
      </label>
      <button type="submit">{TEXTS.answer}</button>
      <p class="quiet">{TEXTS.ifNobody(asked.assumption)}</p>
      <p role="status">{said}</p>
    </form>
  )
}
