import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { post, Refused } from './client.ts'
import { type AskedQuestion, type Card, cards, maySteer, me } from './model.ts'
import { ask, Field, now, Outcome, type Saying, textIn, useSaying } from './parts.tsx'
import { TEXTS } from './texts.ts'

/** How long what was tapped can be taken back, ms. */
const UNDO_MS = 10_000

interface Pending {
  what: string
  /** When it is sent; null: it is being sent. Unix time, ms. */
  at: number | null
  /** Why it could not be sent; empty: that is not so. */
  problem: string
  send(): Promise<string>
  said: Saying
}

/** What was tapped and is sent in a moment, by what it answers. It outlives the part of the page that it was tapped in. */
const pending = signal<ReadonlyMap<string, Pending>>(new Map())
const timers = new Map<string, ReturnType<typeof setTimeout>>()

/** Sends something in ten seconds, unless it is taken back; what is asked for once more takes its place. */
function sendLater(key: string, what: string, said: Saying, send: () => Promise<string>): void {
  clearTimeout(timers.get(key))
  put(key, { what, at: Date.now() + UNDO_MS, problem: '', send, said })
  timers.set(
    key,
    setTimeout(() => void sendNow(key), UNDO_MS),
  )
}

function put(key: string, entry: Pending): void {
  pending.value = new Map(pending.value).set(key, entry)
}

function takeBack(key: string): void {
  clearTimeout(timers.get(key))
  timers.delete(key)
  const left = new Map(pending.value)
  left.delete(key)
  pending.value = left
}

/** What cannot be sent stays, and says why. */
async function sendNow(key: string): Promise<void> {
  const entry = pending.value.get(key)
  if (entry === undefined || entry.at === null) return
  clearTimeout(timers.get(key))
  const sending = { ...entry, at: null, problem: '' }
  put(key, sending)
  // Something else may have been tapped meanwhile that is to be sent in its turn.
  const isStill = () => pending.value.get(key) === sending
  try {
    const words = await entry.send()
    if (isStill()) takeBack(key)
    entry.said.say(words)
  } catch (error) {
    if (isStill()) put(key, { ...entry, problem: sentenceOf(error) })
    else entry.said.say(TEXTS.notSent(entry.what, sentenceOf(error)), true)
    if (!(error instanceof Refused)) throw error
  }
}

function sentenceOf(error: unknown): string {
  return error instanceof Refused ? error.text : String(error)
}

function sendWhatWaits(): void {
  for (const [key, { problem }] of pending.value) if (problem === '') void sendNow(key)
}

// Who leaves the page has not taken it back; of a page that a phone has put away no timer may run any more.
addEventListener('pagehide', sendWhatWaits)
addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden') sendWhatWaits()
})

/** What was tapped and could not be sent, wherever that was: it may not be asked there any more. */
export function Unsent() {
  const failed = [...pending.value].filter(([, { problem }]) => problem !== '')
  if (failed.length === 0) return null
  return (
    <section class="unsent" aria-label="Not sent">
      {failed.map(([key, { what, problem }]) => (
        <p key={key} class="pending">
          <span role="status">{TEXTS.notSent(what, problem)}</span>
          <button type="button" onClick={() => void sendNow(key)}>
            Send again
          </button>
          <button type="button" onClick={() => takeBack(key)}>
            Leave it
          </button>
        </p>
      ))}
    </section>
  )
}

/** Something that a tap sends in ten seconds: what, and how to take it back; null: nothing is pending. */
export function PendingOf({ of }: { of: string }) {
  const found = pending.value.get(of)
  if (found === undefined || found.problem !== '') return null
  const { what, at, said } = found
  const undo = (
    <button
      type="button"
      onClick={() => {
        takeBack(of)
        said.say('Nothing was sent.')
      }}
    >
      {TEXTS.undo(Math.max(0, Math.ceil(((at ?? 0) - now.value) / 1000)))}
    </button>
  )
  return (
    <p class="pending">
      <span role="status">{`Sent in a moment: ${what}`}</span>
      {at !== null && undo}
    </p>
  )
}

/** A button that asks something of a session which cannot be taken back there: it is sent in ten seconds. */
export function LaterButton({
  place,
  label,
  body,
  said,
}: {
  place: string
  label: string
  body: object
  said: Saying
}) {
  return (
    <button type="button" onClick={() => sendLater(`${place} ask`, label, said, () => ask(place, body))}>
      {label}
    </button>
  )
}

/** Scrolls to what a notification has led to. */
function useMeant(of: string, isMeant: boolean): string {
  const id = `q-${of}`
  useEffect(() => {
    if (!isMeant) return
    const part = document.getElementById(id)
    part?.scrollIntoView({ block: 'center' })
    part?.focus()
  }, [id, isMeant])
  return id
}

/** A question of an agent, with its choices: one tap answers. */
function Question({ card, asked, isMeant = false, isFolded = false }: Meant & { card: Card; asked: AskedQuestion }) {
  const said = useSaying()
  const key = `${card.key} ${asked.question}`
  const id = useMeant(key, isMeant)
  const answer = (text: string) =>
    sendLater(key, text, said, async () => {
      const body = { question: asked.question, answer: text }
      return (await post<{ message: string }>(`sessions/${card.key}/answer`, body)).message
    })
  return (
    <form
      id={id}
      tabIndex={-1}
      class="question"
      onSubmit={event => {
        event.preventDefault()
        const text = textIn(event.currentTarget, 'answer')
        if (text.trim() !== '') answer(text)
      }}
    >
      <Context
        isFolded={isFolded}
        title={
          <>
            <b>{asked.question}</b> {asked.text}
          </>
        }
      >
        <p class="quiet">{`Assumed meanwhile: ${asked.assumption}`}</p>
      </Context>
      {maySteer() && (
        <div class="choices">
          {asked.options.map(option => (
            <button key={option} type="button" onClick={() => answer(option)}>
              {option}
            </button>
          ))}
          <details open={asked.options.length === 0}>
            <summary>{asked.options.length === 0 ? TEXTS.answer : TEXTS.ownWords}</summary>
            <Field label={`${TEXTS.answer}: ${asked.question}`}>
              <textarea name="answer" rows={2} />
            </Field>
            <button type="submit">{TEXTS.answer}</button>
          </details>
        </div>
      )}
      <PendingOf of={key} />
      <Outcome of={said} />
    </form>
  )
}

/** What was assumed in a session that has ended: a person accepts it, or has a new session do it otherwise. */
function Assumption({ card, asked, isMeant = false, isFolded = false }: Meant & { card: Card; asked: AskedQuestion }) {
  const said = useSaying()
  const key = `${card.key} ${asked.question}`
  const id = useMeant(key, isMeant)
  const answer = async (text: string | null) =>
    (await post<{ message: string }>(`sessions/${card.key}/answer`, { question: asked.question, answer: text })).message
  const doOtherwise = (text: string) => {
    let queued: string | null = null
    sendLater(key, text, said, async () => {
      queued ??= await answer(text)
      const isRunning = cards.value?.some(({ place, standing }) => place === card.place && standing === 'running')
      if (isRunning === true) return queued
      await post(`places/${card.place}/queue/run`, {})
      return TEXTS.started
    })
  }
  return (
    <section id={id} tabIndex={-1} class="question" aria-label={`Assumption ${asked.question}`}>
      <Context
        isFolded={isFolded}
        title={
          <>
            <b>Assumed</b> {asked.assumption}
          </>
        }
      >
        <p class="quiet">
          {asked.question} {asked.text}
        </p>
      </Context>
      {maySteer() && (
        <div class="choices">
          <button type="button" onClick={() => sendLater(key, TEXTS.fine, said, () => answer(null))}>
            {TEXTS.fine}
          </button>
          <details>
            <summary>{TEXTS.otherwise}</summary>
            <form
              onSubmit={event => {
                event.preventDefault()
                const text = textIn(event.currentTarget, 'otherwise').trim()
                if (text !== '') doOtherwise(text)
              }}
            >
              <Field label={TEXTS.instead(asked.question)} hint={TEXTS.beginsSession(card.queued)}>
                <textarea name="otherwise" rows={3} required />
              </Field>
              <button type="submit">{TEXTS.beginSession}</button>
            </form>
          </details>
        </div>
      )}
      <PendingOf of={key} />
      <Outcome of={said} />
    </section>
  )
}

interface Meant {
  /** Whether a notification has led to it. */
  isMeant?: boolean
  /** Whether its context is one line until a person opens it. */
  isFolded?: boolean
}

/** What a choice is about. */
function Context({
  title,
  isFolded,
  children,
}: {
  title: ComponentChildren
  isFolded: boolean
  children: ComponentChildren
}) {
  if (!isFolded)
    return (
      <>
        <p>{title}</p>
        {children}
      </>
    )
  return (
    <details class="context">
      <summary>
        <span>{title}</span>
      </summary>
      {children}
    </details>
  )
}

type Decision = NonNullable<NonNullable<Card['report']>['decision']>

/** What a session asks a person to decide. */
function DecisionPart({
  card,
  decision,
  isMeant = false,
  isFolded = false,
}: Meant & { card: Card; decision: Decision }) {
  const said = useSaying()
  const key = `${card.key} ${decision.id} ${decision.since}`
  const id = useMeant(key, isMeant)
  const decide = (choice: string, label: string, text?: string) => {
    const body = {
      type: 'decide',
      choice,
      decision: decision.id,
      session: card.id,
      since: decision.since,
      ...(text ? { text } : {}),
    }
    sendLater(key, label, said, () => ask(card.key, body))
  }
  const byDefault = decision.choices.find(({ id: each }) => each === decision.default)
  return (
    <section id={id} tabIndex={-1} class="question" aria-label="Your decision">
      <Context isFolded={isFolded} title={<b>{decision.title}</b>}>
        {decision.body !== '' && <pre class="body">{decision.body}</pre>}
        {byDefault !== undefined && <p class="quiet">{`If nobody answers: ${byDefault.label}`}</p>}
      </Context>
      {maySteer() && decision.secret === undefined && (
        <div class="choices">
          {decision.choices.map(choice => (
            <Choice key={choice.id} choice={choice} decide={decide} />
          ))}
        </div>
      )}
      {maySteer() && decision.secret !== undefined && (
        <SecretPart card={card} decision={decision} decide={decide} said={said} />
      )}
      <PendingOf of={key} />
      <Outcome of={said} />
    </section>
  )
}

function Choice({
  choice: { id, label, hint, text, opensFile },
  decide,
}: {
  choice: Decision['choices'][number]
  decide: (choice: string, label: string, text?: string) => void
}) {
  if (opensFile)
    return <p class="quiet">This choice opens a file in an editor. Use codemachine decide on your machine.</p>
  if (text === undefined)
    return (
      <button type="button" title={hint ?? undefined} onClick={() => decide(id, label)}>
        {label}
      </button>
    )
  return (
    <details>
      <summary>{label}</summary>
      <form
        onSubmit={event => {
          event.preventDefault()
          const said = textIn(event.currentTarget, 'text').trim()
          if (said !== '' || text === 'may') decide(id, label, said)
        }}
      >
        <Field label={`${label}: say what`}>
          <textarea name="text" rows={3} required={text === 'must'} />
        </Field>
        <button type="submit">{label}</button>
      </form>
    </details>
  )
}

/** A secret is stored, and never shown again. */
function SecretPart({
  card,
  decision,
  decide,
  said,
}: {
  card: Card
  decision: Decision
  decide: (choice: string, label: string, text?: string) => void
  said: Saying
}) {
  const key = decision.secret?.key ?? ''
  const rest = decision.choices
    .filter(({ id }) => id !== 'give')
    .map(choice => <Choice key={choice.id} choice={choice} decide={decide} />)
  if (me.value?.isPrivate !== true)
    return (
      <>
        <p class="quiet">Enter secrets only on this machine or by https: nobody else can read that connection.</p>
        <div class="choices">{rest}</div>
      </>
    )
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const form = event.currentTarget
        const value = textIn(form, 'value')
        if (value === '') return
        void said.do(async () => {
          const { message } = await post<{ message: string }>(`sessions/${card.key}/secret`, { key, value })
          form.reset()
          return message
        })
      }}
    >
      <Field label={`Value of ${key}`}>
        <input name="value" type="password" autocomplete="off" />
      </Field>
      <div class="choices">
        <button type="submit">Store and continue</button>
        {rest}
      </div>
    </form>
  )
}

/** All that a session waits for a person for. `meant`: which of it a notification has led to. */
export function Inbox({
  card,
  meant = null,
  isFolded = false,
}: {
  card: Card
  meant?: string | null
  isFolded?: boolean
}) {
  const decision = card.report?.decision ?? null
  return (
    <>
      {decision !== null && (
        <DecisionPart card={card} decision={decision} isMeant={meant === 'decision'} isFolded={isFolded} />
      )}
      {card.questions.map(asked => {
        const Part = card.outcome === null ? Question : Assumption
        return (
          <Part key={asked.question} card={card} asked={asked} isMeant={meant === asked.question} isFolded={isFolded} />
        )
      })}
      {card.outcome?.kind === 'needs-person' && <NeedsPerson card={card} />}
    </>
  )
}

/** Of a session that ended for want of a person: what the review found, and the button that goes on once that is mended. */
function NeedsPerson({ card: { key, call, report } }: { card: Card }) {
  const said = useSaying()
  const findings = report?.reviews.findings ?? 0
  const goOn = () =>
    said.do(async () => {
      const { session } = await post<{ session: string | null }>(`sessions/${key}/resume`, {})
      return session === null ? TEXTS.slow : TEXTS.started
    })
  return (
    <div class="choices">
      {findings > 0 && (
        <a class="of-round" href={`#/s/${key}/report`}>
          Show the findings of the review
        </a>
      )}
      {maySteer() && call === null && (
        <button type="button" disabled={said.isBusy.value} onClick={() => void goOn()}>
          {TEXTS.resume}
        </button>
      )}
      <Outcome of={said} />
    </div>
  )
}

/** Sends at once what a person has just asked for; what is refused is said. */
export async function askNow(place: string, body: object, said: Saying): Promise<boolean> {
  return await said.do(() => ask(place, body))
}
