import { batch, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { titleLine } from '../../words/safe-text.ts'
import { cardInWords } from '../../words/status.ts'
import type { StreamPart, StreamRow } from '../session-hub.ts'
import { follow, post, Refused, type Told } from './client.ts'
import { type Card, cards, now, Question } from './now.tsx'
import { TEXTS } from './texts.ts'

/** So many of the last rows are drawn; those before are asked for. */
const MOST_ROWS = 400
/** Text that is being written is kept to this length, from its end. */
const MOST_LIVE = 20_000

/** What is written or printed just now. */
interface Live {
  key: string
  kind: 'words' | 'output'
  text: string
}

/** One session as it happens. */
class SessionModel {
  readonly rows = signal<readonly StreamRow[]>([])
  readonly live = signal<readonly Live[]>([])
  readonly problem = signal('')
  #n: number | null = null
  /** What has come since the last frame. */
  #due: StreamPart[] = []
  #frame: number | null = null
  readonly #key: string

  constructor(key: string) {
    this.#key = key
  }

  async follow(over: AbortSignal): Promise<void> {
    const path = () => `sessions/${this.#key}/stream${this.#n === null ? '' : `?after=${this.#n}`}`
    await follow<StreamPart>(path, told => this.#told(told), over)
  }

  /** Drawn at most once a frame, however much comes. */
  #told({ data }: Told<StreamPart>): void {
    this.#due.push(data)
    this.#frame ??= requestAnimationFrame(() => this.#draw())
  }

  #draw(): void {
    this.#frame = null
    const due = this.#due
    this.#due = []
    batch(() => {
      for (const part of due) this.#take(part)
    })
  }

  #take(part: StreamPart): void {
    this.#n = Math.max(this.#n ?? 0, part.n)
    switch (part.kind) {
      case 'begin':
        this.rows.value = part.rows.slice(-MOST_ROWS)
        this.live.value = []
        break
      case 'row':
        this.rows.value = [...this.rows.value, part.row].slice(-MOST_ROWS)
        this.#end(part.row)
        break
      case 'live':
        this.#passing(part.event)
        break
      case 'problem':
        this.problem.value = part.problem
        break
      case 'next-session':
        location.hash = `#/s/${this.#key.replace(/[^/]+$/, part.id)}`
        break
      default:
        this.live.value = []
    }
  }

  #passing(event: Extract<StreamPart, { kind: 'live' }>['event']): void {
    if (event.type !== 'text-delta' && event.type !== 'output-delta') return
    const key = `${'instance' in event ? event.instance : ''} ${event.item}`
    const before = this.live.value.find(each => each.key === key)
    const kind = event.type === 'text-delta' ? 'words' : 'output'
    const text = ((before?.text ?? '') + event.text).slice(-MOST_LIVE)
    this.live.value = [...this.live.value.filter(each => each.key !== key), { key, kind, text }]
  }

  /** What is journaled is not written any more. */
  #end({ item, instance, type }: StreamRow): void {
    if (type === 'round-ended') this.live.value = []
    else if (item !== undefined) {
      const key = `${instance ?? ''} ${item.id}`
      this.live.value = this.live.value.filter(each => each.key !== key)
    }
  }
}

/** A session as it happens, and what can be told it. */
export function SessionPage({ place }: { place: string }) {
  const model = models.get(place) ?? new SessionModel(place)
  models.clear()
  models.set(place, model)
  useEffect(() => {
    const over = new AbortController()
    void model.follow(over.signal)
    return () => over.abort()
  }, [model])
  const card = cards.value?.find(({ key }) => key === place)
  return (
    <>
      <p>
        <a href="#/">{TEXTS.back}</a>
      </p>
      {card !== undefined && <Head card={card} />}
      <ol class="rows">
        {model.rows.value.map(row => (
          <li key={row.n} class={row.said.tone}>
            <time dateTime={row.at}>
              {new Date(row.at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}
            </time>
            <span>{row.said.text}</span>
            {row.said.more.length > 0 && <pre>{row.said.more.join('\n')}</pre>}
          </li>
        ))}
      </ol>
      {model.live.value.map(({ key, kind, text }) => (
        <pre key={key} class={`live ${kind}`}>
          {text}
        </pre>
      ))}
      <p role="status">{model.problem.value}</p>
      {card !== undefined && <Steering place={place} isRunning={card.standing === 'running'} />}
    </>
  )
}

const models = new Map<string, SessionModel>()

function Head({ card }: { card: Card }) {
  const words = card.report === null ? null : cardInWords(card.report, now.value)
  return (
    <>
      <h1>{titleLine(card.goal, 300)}</h1>
      {words !== null && (
        <>
          <p class="state">{words.state}</p>
          <p class="facts">{words.facts.join(' · ')}</p>
          {words.wait !== '' && <p class="wait">{words.wait}</p>}
          {words.ahead !== '' && <p class="quiet">{words.ahead}</p>}
        </>
      )}
      {card.questions.map(question => (
        <Question key={question.question} card={card} question={question} />
      ))}
    </>
  )
}

const said = signal('')

async function ask(place: string, body: object): Promise<void> {
  try {
    const { message } = await post<{ message: string }>(`sessions/${place}/ask`, body)
    said.value = message
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    said.value = error.message
  }
}

/** What a person tells the session, and how they hold or end it. */
function Steering({ place, isRunning }: { place: string; isRunning: boolean }) {
  if (!isRunning) return null
  return (
    <form
      class="steering"
      onSubmit={event => {
        event.preventDefault()
        const field = event.currentTarget.elements.namedItem('text')
        if (!(field instanceof HTMLTextAreaElement) || field.value.trim() === '') return
        void ask(place, { type: 'steer', text: field.value })
        field.value = ''
      }}
    >
      <label>
        {TEXTS.tell}
        <textarea name="text" rows={2} />
      </label>
      <div class="choices">
        <button type="submit">{TEXTS.send}</button>
        <button type="button" onClick={() => void ask(place, { type: 'pause' })}>
          {TEXTS.pause}
        </button>
        <button type="button" onClick={() => void ask(place, { type: 'unpause' })}>
          {TEXTS.unpause}
        </button>
        <button type="button" onClick={() => void ask(place, { type: 'stop', now: false })}>
          {TEXTS.stop}
        </button>
      </div>
      <p role="status">{said}</p>
    </form>
  )
}
