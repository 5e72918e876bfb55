import { StringDecoder } from 'node:string_decoder'
import type { Clock } from '../../../base/clock.ts'
import type { CliContext } from '../cli-context.ts'

/** What a person typed; `left`: they typed nothing that counts, by these keys or because the program is asked to end. */
export type HiddenText = { kind: 'typed'; text: string } | { kind: 'left'; by: 'ctrl-c' | 'ctrl-d' | 'signal' }

/** What is asked for. */
interface HiddenField {
  /** Stands before the cursor. */
  prompt: string
  /** The most bytes of a text in UTF-8. */
  mostBytes: number
  /** What is wrong with a text, a sentence without any of it: it is asked for again; null: nothing is. */
  problemOf(text: string): string | null
  /** That it may be taken back while it is typed; left out: it is not. */
  takenBack?: TakenBack
}

/** How a field is taken back: of what was typed nothing is kept, and what is typed on is not shown either. */
export interface TakenBack {
  /** Aborted once it is; the cursor stands at the beginning of a line then. */
  signal: AbortSignal
  /** Told to whoever was typing, whose keys are taken up to Enter, Ctrl+C or Ctrl+D, or for a minute. */
  note: string
  clock: Clock
}

const REST_MS = 60_000

const PASTES_IN_BRACKETS = '\x1b[?2004h'
const PASTES_PLAIN = '\x1b[?2004l'

/**
 * Asks for a text on a plain terminal, which shows nothing of it. Whoever calls has the terminal; afterwards it is as it was
 * before, however this ends. What is pasted keeps its line ends, as `\n`.
 */
export async function askHidden(
  { stdin, stdout, signal, host, env }: Pick<CliContext, 'stdin' | 'stdout' | 'signal' | 'host' | 'env'>,
  { prompt, mostBytes, problemOf, takenBack }: HiddenField,
): Promise<HiddenText> {
  const setRawMode = (isRaw: boolean) => {
    if ('setRawMode' in stdin) (stdin as NodeJS.ReadStream).setRawMode(isRaw)
  }
  const isDumb = env.TERM === 'dumb'
  const after = isDumb ? '' : PASTES_PLAIN
  if (signal.aborted || takenBack?.signal.aborted) return { kind: 'left', by: 'signal' }
  const forget = host.beforeCrash(() => {
    host.writeNow(`${after}\n`)
    host.rawModeOff()
  })
  const { promise, resolve } = Promise.withResolvers<HiddenText>()
  const decoder = new StringDecoder('utf8')
  let typing = new HiddenTyping(mostBytes)
  const onData = (chunk: Buffer | string) => {
    const end = typing.take(typeof chunk === 'string' ? chunk : decoder.write(chunk))
    if (end === null) return
    if (takenBack?.signal.aborted) return onSignal()
    if (end.kind === 'left') return resolve(end)
    const problem = end.isTooLong ? `It is longer than ${mostBytes / 1024} KiB.` : problemOf(end.text)
    if (problem === null) return resolve({ kind: 'typed', text: end.text })
    typing = new HiddenTyping(mostBytes)
    stdout.write(`\n${problem}\n${prompt}`)
  }
  const onEnd = () => resolve({ kind: 'left', by: 'ctrl-d' })
  const onSignal = () => resolve({ kind: 'left', by: 'signal' })
  const over = new AbortController()
  const onTakenBack = () => {
    if (takenBack === undefined || typing.isEmpty) return onSignal()
    stdout.write(`${takenBack.note}\n`)
    void takenBack.clock.wait(REST_MS, over.signal).then(onSignal)
  }
  try {
    setRawMode(true)
    // Not before the terminal's own echo is off.
    stdout.write(`${isDumb ? '' : PASTES_IN_BRACKETS}${prompt}`)
    signal.addEventListener('abort', onSignal)
    takenBack?.signal.addEventListener('abort', onTakenBack)
    stdin.on('data', onData).on('end', onEnd).on('close', onEnd)
    stdin.resume()
    return await promise
  } finally {
    over.abort()
    signal.removeEventListener('abort', onSignal)
    takenBack?.signal.removeEventListener('abort', onTakenBack)
    stdin.off('data', onData).off('end', onEnd).off('close', onEnd)
    // Else the program would not end while the terminal is read.
    stdin.pause()
    // Whoever takes it back has ended the line.
    stdout.write(takenBack?.signal.aborted ? after : `\n${after}`)
    setRawMode(false)
    forget()
  }
}

/** How a text that is typed hidden came to its end. `isTooLong`: `text` is only a part of it. */
export type TypedEnd = { kind: 'typed'; text: string; isTooLong: boolean } | { kind: 'left'; by: 'ctrl-c' | 'ctrl-d' }

const PASTE_BEGINS = '\x1b[200~'
const PASTE_ENDS = '\x1b[201~'
const ESC = '\x1b'
/** What stands behind Esc of a key that only steers: CSI and SS3, as a terminal sends them for keys. */
const SEQUENCE = /^(?:\[\[[A-E]|\[[0-9;?<=>]*[ -/]*[@-~]|O[@-~])/
/** The beginning of such a key, the rest of which the next read has. */
const UNFINISHED = /^(?:\[[0-9;?<=>]*[ -/]*|O)$/
const KEYS = { interrupt: '\x03', end: '\x04', backspace: '\x7f', erase: '\b', line: '\x15', word: '\x17' }

/**
 * A text that is typed and not shown: what the keys of a terminal in raw mode do to it. It keeps no more than its bound.
 * Outside of a paste a line end is the end of the text, but for one with more behind it in the same read: a terminal that
 * does not mark what is pasted has sent several lines.
 */
export class HiddenTyping {
  readonly #mostBytes: number
  #text = ''
  #bytes = 0
  #isTooLong = false
  #isPasting = false
  /** The end of the last read that is not understood without the next one. */
  #rest = ''
  /** Whether the last read ended with Esc, which begins the mark of a paste only if the next one goes on so. */
  #isBehindEsc = false

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** Whether nothing of it has been typed. */
  get isEmpty(): boolean {
    return this.#text === '' && !this.#isTooLong && !this.#isPasting
  }

  /** Takes one read of the terminal; null: it goes on. */
  take(read: string): TypedEnd | null {
    let left = `${this.#rest}${read}`
    if (this.#isBehindEsc && left.startsWith(PASTE_BEGINS.slice(1))) left = `${ESC}${left}`
    this.#rest = ''
    this.#isBehindEsc = false
    while (left !== '') {
      if (this.#isPasting) left = this.#paste(left)
      else {
        const next = this.#key(left)
        if (typeof next !== 'string') return next
        left = next
      }
    }
    return null
  }

  /** Takes a text as it is, whatever keys it may look like, with its line ends as `\n`. */
  takeText(text: string): null {
    this.#add(withLineEnds(text))
    return null
  }

  /** What is pasted is text, whatever it holds; returns what stands behind it. */
  #paste(left: string): string {
    const end = left.indexOf(PASTE_ENDS)
    if (end !== -1) {
      this.#add(withLineEnds(left.slice(0, end)))
      this.#isPasting = false
      return left.slice(end + PASTE_ENDS.length)
    }
    const kept = beginsAtEnd(left)
    this.#add(withLineEnds(left.slice(0, left.length - kept)))
    this.#rest = left.slice(left.length - kept)
    return ''
  }

  /** Takes the first key of what was typed; returns what stands behind it. */
  #key(left: string): string | TypedEnd {
    if (left.startsWith(PASTE_BEGINS)) {
      this.#isPasting = true
      return left.slice(PASTE_BEGINS.length)
    }
    if (left.startsWith(ESC)) return this.#sequence(left.slice(1))
    const key = String.fromCodePoint(left.codePointAt(0) ?? 0)
    const rest = left.slice(key.length)
    if (key === KEYS.interrupt) return { kind: 'left', by: 'ctrl-c' }
    if (key === KEYS.end) return { kind: 'left', by: 'ctrl-d' }
    if (key === '\r' || key === '\n') {
      const behind = key === '\r' && rest.startsWith('\n') ? rest.slice(1) : rest
      if (behind === '') return { kind: 'typed', text: this.#text, isTooLong: this.#isTooLong }
      this.#add('\n')
      return behind
    }
    if (key === KEYS.backspace || key === KEYS.erase) this.#keep(this.#text.length - lastSign(this.#text).length)
    else if (key === KEYS.line) this.#keep(0)
    else if (key === KEYS.word) this.#keep(beginOfWord(this.#text))
    else if (key >= ' ') this.#add(key)
    return rest
  }

  /** Takes what stands behind Esc; returns what comes after it. */
  #sequence(left: string): string {
    if (left === '') this.#isBehindEsc = true
    else if (UNFINISHED.test(left)) this.#rest = `${ESC}${left}`
    else return left.slice(SEQUENCE.exec(left)?.[0].length ?? 0)
    return ''
  }

  /** Takes back what stands behind so many UTF-16 units. */
  #keep(length: number): void {
    this.#bytes -= Buffer.byteLength(this.#text.slice(length))
    this.#text = this.#text.slice(0, length)
    if (length === 0) this.#isTooLong = false
  }

  #add(text: string): void {
    const bytes = this.#bytes + Buffer.byteLength(text)
    this.#isTooLong ||= bytes > this.#mostBytes
    if (this.#isTooLong) return
    this.#text += text
    this.#bytes = bytes
  }
}

function withLineEnds(pasted: string): string {
  return pasted.replaceAll(/\r\n?/g, '\n')
}

function beginOfWord(text: string): number {
  const word = text.trimEnd()
  return Math.max(...[' ', '\n', '\t'].map(space => word.lastIndexOf(space))) + 1
}

/** How much of the mark at the end of a paste stands at the end of a read, or of `\r\n`. */
function beginsAtEnd(read: string): number {
  if (read.endsWith('\r')) return 1
  for (let length = PASTE_ENDS.length - 1; length > 0; length--) {
    if (read.endsWith(PASTE_ENDS.slice(0, length))) return length
  }
  return 0
}

/** The last sign of a text as a person sees it, which can be of several code points. */
function lastSign(text: string): string {
  const near = text.slice(-MOST_UNITS_OF_SIGN)
  return [...new Intl.Segmenter().segment(near)].at(-1)?.segment ?? ''
}

const MOST_UNITS_OF_SIGN = 64
