import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { titleLine } from '../../../../tell/words/safe-text.ts'
import { post } from '../client.ts'
import { askNow, Inbox, LaterButton, PendingOf } from '../inbox.tsx'
import { type Card, cards, hasUnchecked, isWhole, maySteer, me } from '../model.ts'
import { wordsOf } from '../now.tsx'
import { Field, LimitFields, limitsIn, loaded, now, Outcome, type Saying, textIn, useSaying } from '../parts.tsx'
import { TEXTS } from '../texts.ts'
import { LiveView } from './live.tsx'
import { SessionStream } from './stream.ts'

type PartName = keyof typeof TEXTS.tabs

const Rounds = loaded(async () => (await import('./rounds.tsx')).Rounds)
const Tasks = loaded(async () => (await import('./rounds.tsx')).Tasks)
const Queue = loaded(async () => (await import('./queue.tsx')).Queue)
const Changes = loaded(async () => (await import('./changes.tsx')).Changes)
const Report = loaded(async () => (await import('./report.tsx')).Report)
const Proof = loaded(async () => (await import('./report.tsx')).Proof)

/** How long one that has just begun may not be known, ms. */
const NEW_MS = 6_000

/** A session: as it happens, and all that is known of it. */
export function SessionPage({ place, part, query }: { place: string; part: string | null; query: URLSearchParams }) {
  const card = cards.value?.find(({ key }) => key === place) ?? null
  const stream = useMemo(() => new SessionStream(place), [place])
  // One that is gone on with is followed again.
  const standing = card?.standing ?? null
  useEffect(() => {
    if (standing === null) return
    const over = new AbortController()
    void stream.follow(over.signal)
    return () => over.abort()
  }, [stream, standing])
  const begun = useMemo(() => Date.now(), [])
  const opensOn = useRef<PartName | null>(null)
  // One that was begun just now is not among them yet.
  if (card === null)
    return (
      <p class="quiet">
        {isWhole.value && now.value - begun > NEW_MS ? 'The files of this session were deleted.' : TEXTS.reading}
      </p>
    )
  // One that ends while it is looked at stays where it is.
  opensOn.current ??= card.outcome === null || query.get('q') !== null ? 'live' : 'report'
  const shown: PartName = part !== null && part in TEXTS.tabs ? (part as PartName) : opensOn.current
  const meant = query.get('q')
  return (
    <div class={`session of-${shown}`}>
      <Head card={card} isShort={shown !== 'live'} />
      {shown !== 'live' && <Waiting card={card} />}
      {stream.next.value !== '' && (
        <a class="asks" href={`#/s/${stream.next.value}`}>
          It ends, and the queue continues with the next one
        </a>
      )}
      <nav class="tabs" aria-label="Parts of the session">
        {(Object.keys(TEXTS.tabs) as PartName[]).map(each => (
          <a key={each} href={`#/s/${place}/${each}`} aria-current={each === shown ? 'page' : undefined}>
            {TEXTS.tabs[each]}
          </a>
        ))}
      </nav>
      {shown === 'live' ? (
        <div class="live-body">
          <LiveView stream={stream} />
          <div class="asked">
            <Inbox card={card} meant={meant} isFolded />
          </div>
          <div class="side">
            <Plan card={card} />
            {maySteer() && <Steering card={card} stream={stream} />}
          </div>
        </div>
      ) : (
        <Shown card={card} part={shown} query={query} />
      )}
    </div>
  )
}

function Shown({ card, part, query }: { card: Card; part: Exclude<PartName, 'live'>; query: URLSearchParams }) {
  switch (part) {
    case 'work':
      return <Work card={card} />
    case 'changes':
      return <Changes card={card} query={query} />
    case 'proof':
      return <Proof card={card} />
    case 'report':
      return <Report card={card} />
  }
}

/** What is planned, what was done round by round, and what waits behind it. */
function Work({ card }: { card: Card }) {
  return (
    <>
      <h2>{TEXTS.tasks}</h2>
      <Tasks card={card} />
      <h2>{TEXTS.rounds}</h2>
      <Rounds card={card} />
      <h2>{TEXTS.queue}</h2>
      <Queue card={card} />
    </>
  )
}

function Head({ card, isShort }: { card: Card; isShort: boolean }) {
  const { words, state, tone } = wordsOf(card)
  return (
    <section class={`head ${tone} ${isShort ? 'short' : ''}`} aria-label={card.id}>
      <h1>{titleLine(card.goal, 300)}</h1>
      <p class="state">{state}</p>
      {words !== null && (
        <>
          <p class="facts">{words.facts.join(' · ')}</p>
          {words.wait !== '' && <p class="wait">{words.wait}</p>}
          {words.ahead !== '' && <p class="quiet">{words.ahead}</p>}
        </>
      )}
      <p class="quiet where">
        {card.worktree === null ? '' : `${card.worktree} · `}
        {card.directory} · {card.id}
      </p>
    </section>
  )
}

/** Says on the other parts that something waits for a person on the first one. */
function Waiting({ card }: { card: Card }) {
  const count = card.questions.length + (card.report?.decision == null ? 0 : 1)
  if (count === 0) return null
  return (
    <a class="asks" href={`#/s/${card.key}/live`}>
      {hasUnchecked(card) ? TEXTS.check(count) : TEXTS.asks(count)}
    </a>
  )
}

/** The agent's plan of its round. */
function Plan({ card: { report } }: { card: Card }) {
  const steps = report?.plan ?? []
  if (steps.length === 0) return null
  const done = steps.filter(({ status }) => status === 'completed').length
  return (
    <details class="plan">
      <summary>
        Plan of the round <span class="count">{`${done} / ${steps.length}`}</span>
      </summary>
      <ol>
        {steps.map(({ step, status }) => (
          <li key={step} class={status}>
            {step} <span class="quiet">({TEXTS.steps[status]})</span>
          </li>
        ))}
      </ol>
    </details>
  )
}

/** What a person tells the session, and how they hold, change or end it. */
function Steering({ card, stream }: { card: Card; stream: SessionStream }) {
  const said = useSaying()
  const isRunning = card.standing === 'running'
  if (card.call !== null || (!isRunning && !canResume(card))) return null
  return (
    <section class="steering" aria-label={TEXTS.actions}>
      {isRunning ? <Running card={card} stream={stream} said={said} /> : <Resume card={card} said={said} />}
      <PendingOf of={`${card.key} ask`} />
      <Outcome of={said} />
    </section>
  )
}

function Running({ card: { key, report }, stream, said }: { card: Card; stream: SessionStream; said: Saying }) {
  const agents = stream.agents.value.split('\n').filter(each => each !== '')
  const [agent, setAgent] = useState('')
  const isAgent = agents.includes(agent)
  const isPaused = report?.pausedAt != null || report?.hold != null
  return (
    <>
      <form
        onSubmit={event => {
          event.preventDefault()
          const form = event.currentTarget
          const text = textIn(form, 'text')
          if (text.trim() === '') return
          const body = isAgent ? { type: 'steer-agent', agent, text } : { type: 'steer', text }
          void askNow(key, body, said).then(isTaken => isTaken && form.reset())
        }}
      >
        {agents.length > 0 && (
          <Field label="Whom">
            <select value={agent} onChange={event => setAgent(event.currentTarget.value)}>
              <option value="">{TEXTS.theRound}</option>
              {agents.map(each => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </Field>
        )}
        <div class="line">
          <Field label={isAgent ? `Tell ${agent}` : 'Tell the agent'}>
            <textarea name="text" rows={1} placeholder={isAgent ? `Tell ${agent}` : 'Tell the agent'} />
          </Field>
          <button type="submit" class="primary">
            Send
          </button>
        </div>
      </form>
      <div class="choices">
        <button type="button" onClick={() => void askNow(key, { type: isPaused ? 'unpause' : 'pause' }, said)}>
          {isPaused ? 'Continue' : 'Pause'}
        </button>
        {report?.waiting != null && (
          <button type="button" onClick={() => void askNow(key, { type: 'retry' }, said)}>
            Retry now
          </button>
        )}
        <LaterButton place={key} label="Stop after this round" body={{ type: 'stop', now: false }} said={said} />
        <details class="more">
          <summary>{TEXTS.more}</summary>
          <div class="choices">
            <LaterButton place={key} label="Interrupt" body={{ type: 'interrupt' }} said={said} />
            <LaterButton place={key} label="Skip to the next in the queue" body={{ type: 'skip' }} said={said} />
            <LaterButton place={key} label="Stop now" body={{ type: 'stop', now: true }} said={said} />
            {agents.map(each => (
              <LaterButton
                key={each}
                place={key}
                label={`End ${each}`}
                body={{ type: 'stop-agent', agent: each }}
                said={said}
              />
            ))}
          </div>
          <Replan place={key} said={said} />
          <Limits place={key} said={said} />
        </details>
      </div>
    </>
  )
}

function Replan({ place, said }: { place: string; said: Saying }) {
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const form = event.currentTarget
        const text = textIn(form, 'text')
        const go = form.elements.namedItem('go')
        const goesOn = go instanceof HTMLInputElement && go.checked
        if (text.trim() === '') return
        const body = { type: 'replan', text, ...(goesOn ? { go: true } : {}) }
        void askNow(place, body, said).then(isTaken => isTaken && form.reset())
      }}
    >
      <Field label="What should change?">
        <textarea name="text" rows={2} />
      </Field>
      <label class="check">
        <input type="checkbox" name="go" /> Continue with the changed plan
      </label>
      <button type="submit">Change the plan</button>
    </form>
  )
}

function Limits({ place, said }: { place: string; said: Saying }) {
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const form = event.currentTarget
        const limits = limitsIn(form)
        if (limits === null) return said.say(TEXTS.wrongLimit, true)
        void askNow(place, { type: 'limits', ...limits }, said).then(isTaken => isTaken && form.reset())
      }}
    >
      <fieldset>
        <legend>New total limit, from the next round on</legend>
        <LimitFields />
        <button type="submit">Change</button>
      </fieldset>
    </form>
  )
}

function canResume({ outcome, standing }: Card): boolean {
  return outcome?.kind !== 'done' && standing !== 'broken' && me.value !== null
}

function Resume({ card, said }: { card: Card; said: Saying }) {
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const limits = limitsIn(event.currentTarget)
        if (limits === null) return said.say(TEXTS.wrongLimit, true)
        void said.do(async () => {
          const { session } = await post<{ session: string | null }>(`sessions/${card.key}/resume`, limits)
          return session === null ? TEXTS.slow : TEXTS.started
        })
      }}
    >
      <details>
        <summary>{TEXTS.limits}</summary>
        <p class="quiet">New total limit; empty: keep the old one</p>
        <LimitFields />
      </details>
      <button type="submit" class="primary" disabled={said.isBusy.value}>
        {TEXTS.resume}
      </button>
    </form>
  )
}
