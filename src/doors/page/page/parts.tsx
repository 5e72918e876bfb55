import { signal } from '@preact/signals'
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import type { ComponentChildren, ComponentType, JSX, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'
import { parseDuration } from '../../../base/text.ts'
import { connection, get, post, Refused } from './client.ts'
import { TEXTS } from './texts.ts'

/** The time, by the second; Unix time, ms. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, 1000)

/** A sentence of what came of something; `isBad`: it was refused. */
interface Said {
  text: string
  isBad: boolean
}

/** Where a part of the page says what came of what a person did there. */
export class Saying {
  readonly said = signal<Said>({ text: '', isBad: false })
  readonly isBusy = signal(false)

  say(text: string, isBad = false): void {
    this.said.value = { text, isBad }
  }

  /** Does something, and says what it was refused with; true if it was not. One thing at a time. */
  async do(action: () => Promise<string | null>): Promise<boolean> {
    if (this.isBusy.value) return false
    this.isBusy.value = true
    try {
      this.say((await action()) ?? '')
      return true
    } catch (error) {
      if (!(error instanceof Refused)) throw error
      this.say(error.text, true)
      return false
    } finally {
      this.isBusy.value = false
    }
  }
}

/** One that lasts as long as the component. */
export function useSaying(): Saying {
  return useMemo(() => new Saying(), [])
}

/** Aborts when the component is gone. */
export function useOver(): AbortController {
  const over = useMemo(() => new AbortController(), [])
  useEffect(() => () => over.abort(), [over])
  return over
}

/** What came of it, said to screen readers, too. */
export function Outcome({ of }: { of: Saying }) {
  const { text, isBad } = of.said.value
  return (
    <p role="status" class={`outcome ${isBad ? 'bad' : ''}`}>
      {text}
    </p>
  )
}

/** Something that is read from the server: null as long as it is read. `again` reads it anew. */
export function useRead<T>(path: string | null): { value: T | null; problem: string; again: () => void } {
  const [, redraw] = useReducer((n: number) => n + 1, 0)
  const state = useRef<{ path: string | null; value: T | null; problem: string; asked: number }>({
    path: null,
    value: null,
    problem: '',
    asked: 0,
  })
  const [asked, again] = useReducer((n: number) => n + 1, 0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is read again when that is asked for
  useEffect(() => {
    const { current } = state
    // What was read before is not shown again: a report can be fetched only once.
    if (current.path !== path) Object.assign(current, { path, value: null, problem: '' })
    if (path === null) return
    const over = new AbortController()
    get<T>(path, over.signal).then(
      value => {
        if (over.signal.aborted) return
        Object.assign(current, { value, problem: '' })
        redraw(undefined)
      },
      (error: unknown) => {
        if (over.signal.aborted || !(error instanceof Refused)) return
        current.problem = error.text
        redraw(undefined)
      },
    )
    return () => over.abort()
  }, [path, asked])
  // What could not be read is read when the connection is there again.
  useEffect(
    () =>
      connection.subscribe(is => {
        if (is === 'open' && state.current.problem !== '') again(undefined)
      }),
    [],
  )
  const { path: of, value, problem } = state.current
  return of === path
    ? { value, problem, again: () => again(undefined) }
    : { value: null, problem: '', again: () => again(undefined) }
}

/** Reads it anew when `news`, a text of what it is about, is another. */
export function useAgainOn(news: string, again: () => void): void {
  const known = useRef(news)
  useEffect(() => {
    if (known.current !== news) again()
    known.current = news
  }, [news, again])
}

/** Instead of what is being read, or cannot be. */
export function Reading({ problem }: { problem: string }) {
  return <p class={problem === '' ? 'quiet' : 'outcome bad'}>{problem === '' ? TEXTS.reading : problem}</p>
}

/** Sends a command to a session; resolves with what it answers, rejects with `Refused` where it does not take it. */
export async function ask(place: string, body: object): Promise<string> {
  const { code, message } = await post<{ code: string; message: string }>(`sessions/${place}/ask`, body)
  if (code === 'done' || code === 'kept') return message
  throw new Refused({ problem: message })
}

interface VirtualListProps<T> {
  items: readonly T[]
  keyOf: (item: T, index: number) => string | number
  /** About how high one is, px. */
  height: number
  label: string
  class?: string
  /** Whether it stays at its end while it is there and more comes. */
  sticksToEnd?: boolean
  /** Told when its beginning is in sight. */
  onBegin?: (() => void) | undefined
  /** Told which are seen. */
  onRange?: (from: number, to: number) => void
  children: (item: T, index: number) => ComponentChildren
}

/** Which rows of a list are seen, and where they lie. */
function useVirtual<T>(
  { items, keyOf, height, sticksToEnd = false }: VirtualListProps<T>,
  frame: RefObject<HTMLDivElement | null>,
  atEnd: { readonly current: boolean },
): Virtualizer<HTMLDivElement, HTMLElement> {
  const [, redraw] = useReducer((n: number) => n + 1, 0)
  const list = useRef<Virtualizer<HTMLDivElement, HTMLElement> | null>(null)
  const options = {
    count: items.length,
    getScrollElement: () => frame.current,
    estimateSize: () => height,
    overscan: 8,
    getItemKey: (index: number) => {
      const item = items[index]
      return item === undefined ? index : keyOf(item, index)
    },
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(undefined),
    // What comes before the rows that are read does not move them.
    anchorTo: sticksToEnd ? ('end' as const) : ('start' as const),
  }
  list.current ??= new Virtualizer<HTMLDivElement, HTMLElement>(options)
  const virtual = list.current
  virtual.setOptions(options)
  useLayoutEffect(() => virtual._didMount(), [virtual])
  useLayoutEffect(() => virtual._willUpdate())
  useLayoutEffect(() => {
    if (sticksToEnd && atEnd.current && items.length > 0) virtual.scrollToIndex(items.length - 1, { align: 'end' })
  })
  return virtual
}

/** A list of which only what is seen is in the page. It scrolls in itself. */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { items, label, sticksToEnd = false, onBegin, onRange, children } = props
  const frame = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const [isAway, setAway] = useState(false)
  const virtual = useVirtual(props, frame, atEnd)
  const shown = virtual.getVirtualItems()
  const [first, last] = [shown[0]?.index ?? 0, shown.at(-1)?.index ?? 0]
  // biome-ignore lint/correctness/useExhaustiveDependencies: told when what is seen is another, and not when who is told is
  useEffect(() => {
    onRange?.(first, last)
    if (first === 0 && items.length > 0 && !atEnd.current) onBegin?.()
  }, [first, last, items.length])
  const rows = (
    <section
      ref={frame}
      class={`virtual ${props.class ?? ''}`}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls in itself is reached by the keyboard
      tabIndex={0}
      onScroll={event => {
        const { scrollTop, clientHeight, scrollHeight } = event.currentTarget
        atEnd.current = scrollHeight - scrollTop - clientHeight < 40
        setAway(sticksToEnd && scrollHeight - scrollTop - clientHeight > 400)
      }}
    >
      <ol style={{ height: `${virtual.getTotalSize()}px` }}>
        {shown.map(({ key, index, start }) => {
          const item = items[index]
          return item === undefined ? null : (
            <li
              key={String(key)}
              data-index={index}
              aria-posinset={index + 1}
              aria-setsize={items.length}
              style={{ transform: `translateY(${start}px)` }}
              ref={element => virtual.measureElement(element)}
            >
              {children(item, index)}
            </li>
          )
        })}
      </ol>
    </section>
  )
  if (!sticksToEnd) return rows
  return (
    <div class="log">
      {rows}
      {isAway && (
        <button type="button" class="to-end" onClick={() => virtual.scrollToIndex(items.length - 1, { align: 'end' })}>
          ↓ Newest
        </button>
      )}
    </div>
  )
}

/** A field with its label above it. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: JSX.Element }) {
  return (
    // The field stands in it.
    // biome-ignore lint/a11y/noLabelWithoutControl: see above
    <label class="field">
      <span>{label}</span>
      {children}
      {hint !== undefined && <small>{hint}</small>}
    </label>
  )
}

/** What a session may take, as it is typed; null: one of it is none. */
interface TypedLimits {
  rounds?: number
  timeMs?: number
  tokens?: number
  cost?: number
}

/** Limits of a form; null if one cannot be read. */
export function limitsIn(form: HTMLFormElement): TypedLimits | null {
  const typed = (name: string) => {
    const field = form.elements.namedItem(name)
    return field instanceof HTMLInputElement ? field.value.trim() : ''
  }
  const found: TypedLimits = {}
  const read = (name: keyof TypedLimits, parse: (text: string) => number | null): boolean => {
    const text = typed(name)
    if (text === '') return true
    const value = parse(text)
    if (value !== null) found[name] = value
    return value !== null
  }
  const isRight = [read('rounds', countOf), read('timeMs', timeOf), read('tokens', countOf), read('cost', costOf)]
  return isRight.every(Boolean) ? found : null
}

function countOf(text: string): number | null {
  const [, digits = '', unit = ''] = /^(\d+(?:\.\d+)?) ?([kKmM]?)$/.exec(text) ?? []
  const value = Math.round(Number(digits) * (unit === '' ? 1 : unit.toLowerCase() === 'k' ? 1e3 : 1e6))
  return digits !== '' && value >= 1 ? value : null
}

function timeOf(text: string): number | null {
  const ms = parseDuration(text)
  return ms !== null && ms >= 1_000 ? ms : null
}

function costOf(text: string): number | null {
  const value = Number(text.replace(',', '.'))
  return Number.isFinite(value) && value >= 0.01 ? value : null
}

/** The fields of `limitsIn`. */
export function LimitFields() {
  return (
    <div class="limits">
      <Field label="Rounds">
        <input name="rounds" inputMode="numeric" autocomplete="off" />
      </Field>
      <Field label="Time (8h, 90m)">
        <input name="timeMs" autocomplete="off" />
      </Field>
      <Field label="Tokens (5M)">
        <input name="tokens" autocomplete="off" />
      </Field>
      <Field label="Cost">
        <input name="cost" inputMode="decimal" autocomplete="off" />
      </Field>
    </div>
  )
}

/** The text of a field of a form, by its name; empty if there is none. */
export function textIn(form: HTMLFormElement, name: string): string {
  const field = form.elements.namedItem(name)
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement || field instanceof HTMLSelectElement)
    return field.value
  return ''
}

/** A part of the page that is loaded when it is shown first. */
export function loaded<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let part: ComponentType<Props> | null = null
  return function Loaded(props: Props) {
    const [problem, setProblem] = useState('')
    const [Part, setPart] = useState<{ it: ComponentType<Props> } | null>(part && { it: part })
    useEffect(() => {
      if (Part !== null) return
      load().then(
        it => {
          part = it
          setPart({ it })
        },
        () => setProblem(TEXTS.oldPage),
      )
    }, [Part])
    return Part === null ? <Reading problem={problem} /> : <Part.it {...props} />
  }
}
