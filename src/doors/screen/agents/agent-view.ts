import type { Clock } from '../../../base/clock.ts'
import type { Recorded } from '../../../core/events/events.ts'
import { isTaken, type Reply } from '../../../core/shapes/reply.ts'
import { emptyState, type SessionState } from '../../../core/state/state.ts'
import type { Ask } from '../../../project/library.ts'
import type { Keymap } from '../../../project/settings/keys.ts'
import { eachEvent } from '../../../session/records/journal.ts'
import { cutLine, widthOf } from '../../../tell/words/cells.ts'
import { formatTokens } from '../../../tell/words/numbers.ts'
import { isDelegation } from '../../../tell/words/plan.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import { eventLines } from '../blocks/event-lines.ts'
import type { Key } from '../composer/keys.ts'
import { liveLines } from '../live.ts'
import { Pager } from '../pager/pager.ts'
import { LineBuffer, type PagerSource } from '../pager/source.ts'
import type { SessionPane } from '../screen/session-pane.ts'
import type { Theme } from '../terminal/theme.ts'
import {
  type FullView,
  type Pointer,
  type Stage,
  type ViewFrame,
  type ViewNotice,
  viewChord,
} from '../view/full-view.ts'
import { type AgentRow, agentRows, STANDINGS } from './agent-rows.ts'

/** The session whose agents are looked at, and who reaches them. */
export interface AgentsPlace {
  pane: Pick<SessionPane, 'state' | 'items' | 'itemsOf' | 'subscribe'>
  theme: Theme
  keymap: Keymap
  clock: Pick<Clock, 'now' | 'wait'>
  /** Whether another process runs the session. */
  isWatching: boolean
  /** Width of the terminal, in cells. */
  columns(): number
  /** The path of the journal of a session. */
  journal(session: string): string
  ask(ask: Ask): Promise<Reply>
  /** Adds a text to the prompts sent before. */
  remember(text: string): void
  /** Called with what reading the journal has failed with. */
  onFailure(error: unknown): void
}

/** Calls the listener after each event and each second, for the clocks that are shown; returns what ends that. */
export function followPane(
  { pane, clock }: Pick<AgentsPlace, 'pane' | 'clock'>,
  listener: (event: Recorded | null) => void,
): () => void {
  const left = new AbortController()
  const unsubscribe = pane.subscribe(listener)
  const tick = async () => {
    while (!left.signal.aborted) {
      await clock.wait(1_000, left.signal)
      listener(null)
    }
  }
  void tick()
  return () => {
    unsubscribe()
    left.abort()
  }
}

/** The most characters that an agent is told at once. */
const MOST_TOLD = 16_000
const GRAPHEMES = new Intl.Segmenter()

/**
 * One agent: what it has done in a pager, and below that what it does and says just now. It can be told something, and ended;
 * once it has ended, it stays. Fills the terminal.
 */
export class AgentView implements FullView {
  readonly #place: AgentsPlace
  readonly #instance: string | null
  readonly #session: string
  readonly #lines: AgentLines
  readonly #pager: Pager
  /** As it was seen last. */
  #row: AgentRow
  #asking: { kind: 'tell' | 'tell main'; text: string } | { kind: 'stop' } | null = null
  /** What was typed and not sent. */
  #unsent = ''
  #notice: ViewNotice | null = null

  constructor(place: AgentsPlace, row: AgentRow) {
    const { pane, theme, keymap } = place
    this.#place = place
    this.#row = row
    this.#instance = row.instance
    this.#session = pane.state?.id ?? ''
    this.#lines = new AgentLines(place, row.instance)
    const hints = () => this.#hints()
    this.#pager = new Pager({ title: row.name, source: this.#lines, theme, keymap, at: 'end', hints })
  }

  attach(stage: Stage): () => void {
    const detach = this.#pager.attach(stage)
    const unfollow = followPane(this.#place, event => {
      if (event?.session === this.#session) this.#lines.add(event)
      stage.changed()
    })
    return () => {
      detach()
      unfollow()
      this.#lines.close()
    }
  }

  workOn(): boolean {
    return this.#pager.workOn()
  }

  /** Has the person type what the agent is to know. */
  tell(): void {
    const problem = this.#whyOver()
    if (problem === null) this.#asking = { kind: 'tell', text: this.#unsent }
    else this.#notTaken(this.#unsent, problem)
  }

  /** Asks the person whether the agent is to end. */
  stop(): void {
    const problem = this.#whyOver() ?? (this.#instance === null ? NEVER_STOPPED : null)
    if (problem === null) this.#asking = { kind: 'stop' }
    else this.#notice = { text: problem, role: 'warning' }
  }

  frame({ columns, rows }: { columns: number; rows: number }): ViewFrame {
    const { pane, theme, clock } = this.#place
    const head = rows < 3 ? [] : this.#head(columns).slice(0, rows < 8 ? 1 : 2)
    const room = rows - head.length - 1
    // An agent that was started is told above, once.
    const items = this.#isShown ? pane.itemsOf(this.#instance).filter(({ item }) => !isDelegation(item)) : []
    const live = room < 2 ? [] : liveLines(items, { columns, rows: Math.floor(room / 2), theme, now: clock.now() })
    const { lines, caret } = this.#pager.frame({ columns, rows: rows - head.length - live.length })
    const done = lines.slice(0, -1)
    // What it does now stands right below what it has done.
    const end = done.findLastIndex(line => line !== '') + 1
    const last = this.#lastLine(columns) ?? { line: lines.at(-1) ?? '', x: caret?.x ?? null }
    return {
      lines: [...head, ...done.slice(0, end), ...live, ...done.slice(end), last.line].slice(-rows),
      caret: last.x === null ? null : { x: last.x, y: rows - 1 },
    }
  }

  press(key: Key, stage: Stage): void {
    this.#notice = null
    const chord = viewChord(key)
    const action = this.#pager.isTyping ? null : this.#place.keymap.inView('list', chord)
    if (this.#asking !== null) this.#answer(key, chord, stage)
    else if (action === 'tell_here') this.tell()
    else if (action === 'stop_here') this.stop()
    else if (action === 'back') stage.close()
    else this.#pager.press(key, stage)
  }

  paste(text: string): void {
    if (this.#asking === null) this.#pager.paste(text)
    else this.#type(text)
  }

  point(pointer: Pointer): void {
    this.#pager.point(pointer)
  }

  /** Whether the session that is shown is still that of the agent. */
  get #isShown(): boolean {
    return this.#place.pane.state?.id === this.#session
  }

  /** Why nobody of its session can be told anything, in words; null if one can. */
  #whySessionOver(): string | null {
    const { state } = this.#place.pane
    return !this.#isShown || state === null || state.ended !== null ? 'Its session has ended' : null
  }

  /** Why it can be neither told anything nor ended, in words; null if it can. */
  #whyOver(): string | null {
    const over = this.#whySessionOver()
    if (over !== null) return over
    const agents = this.#place.pane.state?.agents ?? []
    const isAtWork = this.#instance === null || agents.some(({ instance }) => instance === this.#instance)
    return isAtWork ? null : `${this.#row.name} has ended`
  }

  #answer(key: Key, chord: string, stage: Stage): void {
    const asking = this.#asking
    const isLeft = asking?.kind === 'tell main' && this.#place.keymap.inView('list', chord) === 'close'
    if (isLeft || chord === 'escape' || chord === 'ctrl+c') {
      if (asking !== null && asking.kind !== 'stop') this.#unsent = asking.text
      this.#asking = null
    } else if (chord === 'return') this.#send(stage)
    else if (asking?.kind !== 'tell') return
    else if (chord === 'backspace') asking.text = withoutLast(asking.text)
    else if (chord === 'ctrl+u') asking.text = ''
    else if (chord === 'ctrl+w') asking.text = asking.text.replace(/\S+\s*$/, '')
    else if (key.name === null && !key.ctrl && !key.meta) this.#type(key.input)
  }

  #type(text: string): void {
    if (this.#asking?.kind === 'tell') this.#asking.text = (this.#asking.text + text).slice(0, MOST_TOLD).toWellFormed()
  }

  #send(stage: Stage): void {
    const asking = this.#asking
    const agent = this.#instance
    if (asking !== null && asking.kind !== 'stop') {
      const { kind, text } = asking
      const to = kind === 'tell' ? agent : null
      const problem = to === null ? this.#whySessionOver() : this.#whyOver()
      if (problem !== null) this.#notTaken(text, problem)
      else if (text.trim() !== '') {
        this.#unsent = ''
        this.#place.remember(to === null ? text : `/steer ${to} ${text}`)
        stage.start(this.#ask(to === null ? { type: 'steer', text } : { type: 'steer-agent', agent: to, text }, text))
      }
    } else if (asking?.kind === 'stop' && agent !== null) stage.start(this.#ask({ type: 'stop-agent', agent }, null))
  }

  /** @param text what the person typed, which stays in its line if it was not taken */
  async #ask(ask: Ask, text: string | null): Promise<void> {
    this.#asking = null
    const reply = await this.#place.ask(ask)
    if (text === null || isTaken(reply))
      this.#notice = { text: reply.message, role: isTaken(reply) ? 'good' : 'warning' }
    else if (reply.code === 'agent-ended' || reply.code === 'unknown-agent')
      this.#notTaken(text, `${this.#row.name} has ended`)
    else {
      this.#notice = { text: reply.message, role: 'warning' }
      this.#asking ??= { kind: 'tell', text }
    }
  }

  /** Keeps a text that cannot be told, and offers to tell it the main agent where that is at work. */
  #notTaken(text: string, problem: string): void {
    this.#unsent = text
    this.#asking = null
    const isTyped = text.trim() !== ''
    if (isTyped && this.#instance !== null && this.#whySessionOver() === null)
      this.#asking = { kind: 'tell main', text }
    else {
      if (isTyped) this.#place.remember(text)
      const kept = isTyped ? '; in the field, ↑ brings back what you typed' : ''
      this.#notice = { text: `${problem}${kept}`, role: 'warning' }
    }
  }

  /** Who it is and what it does, and below that what it was asked for. */
  #head(columns: number): string[] {
    const { theme, pane, clock, isWatching } = this.#place
    const state = this.#isShown ? pane.state : null
    const found = state && agentRows(state, pane.items, clock.now()).find(({ instance }) => instance === this.#instance)
    if (found) this.#row = found
    const { name, tasks, standing, activity, time, tokens, request } = this.#row
    const { sign, role } = found ? STANDINGS[standing] : STANDINGS.terminated
    const facts = [time, tokens === null ? '' : formatTokens(tokens), found ? activity : wordsIfOver(state, this.#row)]
    const parts = [
      `${theme.symbols ? theme.paint(role, `${sign} `) : ''}${theme.paint('strong', name)}`,
      ...(tasks === '' ? [] : [theme.paint('accent', tasks)]),
      theme.paint(role, facts.filter(fact => fact !== '').join(theme.symbols ? ' · ' : ', ')),
    ]
    const below = isWatching && state?.kind?.isCall === true ? NOT_SHARED : oneLine(request, MOST_REQUEST)
    return [cutLine(parts.join('  '), columns), theme.paint('dim', cutLine(below, columns))]
  }

  /** What is asked or said in place of the pager's last line, and the column of the cursor; null: nothing. */
  #lastLine(columns: number): { line: string; x: number | null } | null {
    const { theme } = this.#place
    const asking = this.#asking
    const said = this.#notice
    if (said !== null) return { line: theme.paint(said.role, cutLine(oneLine(said.text, 500), columns)), x: null }
    if (asking?.kind === 'tell') {
      let shown = `Tell ${this.#row.name}: ${oneLine(asking.text, MOST_TOLD)}${/\s$/.test(asking.text) ? ' ' : ''}`
      // Typing happens at the end.
      while (widthOf(shown) > columns - 1) shown = shown.slice(Math.max(1, shown.length - columns))
      const problem = this.#whyOver()
      const keys = `   ${problem ?? 'Enter sends it'} · Esc goes back`
      const line = widthOf(shown + keys) < columns ? shown + theme.paint('dim', keys) : shown
      return { line, x: widthOf(shown) }
    }
    if (asking === null) return null
    const { name } = this.#row
    const [question, short] =
      asking.kind === 'stop'
        ? [`Stop ${name}? The round continues. Enter stops it · Esc goes back`, 'Stop it? Enter · Esc back']
        : [`${name} has ended; Enter tells the main agent instead · Esc leaves`, 'Enter: main agent · Esc leaves']
    const line = widthOf(question) <= columns ? question : cutLine(short, columns)
    return { line: theme.paint('warning', line), x: null }
  }

  #hints(): readonly string[] {
    const { keymap } = this.#place
    const ofAgent =
      this.#whyOver() !== null
        ? []
        : [
            `${keymap.label('tell_here')} tell it`,
            ...(this.#instance === null ? [] : [`${keymap.label('stop_here')} stop it`]),
          ]
    return [...ofAgent, `${keymap.label('find')} search`, `${keymap.label('close')} back`]
  }
}

const NEVER_STOPPED =
  'The main agent ends with its round. /stop ends the session after this round; Esc on the main screen interrupts the round'
const NOT_SHARED =
  'This terminal does not show a message while the agent still writes it. Finished messages appear here.'
const MOST_REQUEST = 500

/** Of an agent that is none of the running round any more. */
function wordsIfOver(state: SessionState | null, { standing, activity }: AgentRow): string {
  if (state === null) return 'its session is over'
  return standing === 'at-work' ? 'has ended with its round' : activity
}

function withoutLast(text: string): string {
  return Array.from(GRAPHEMES.segment(text), ({ segment }) => segment)
    .slice(0, -1)
    .join('')
}

/** What an agent has done: from the journal, and from there on as it happens. */
class AgentLines implements PagerSource {
  readonly #place: AgentsPlace
  readonly #instance: string | null
  readonly #session: string
  /** The round from whose start on the round's own agent is shown; null: from the beginning. */
  readonly #round: number | null
  readonly #listeners = new Set<(gone: number) => void>()
  #lines: LineBuffer<Recorded>
  #reading = new AbortController()
  /** What has happened while the journal was read; null: it has been. */
  #meanwhile: Recorded[] | null = null
  #hasBegun = false

  constructor(place: AgentsPlace, instance: string | null) {
    const { state } = place.pane
    this.#place = place
    this.#instance = instance
    this.#session = state?.id ?? ''
    this.#round = state?.running?.round ?? state?.last?.round ?? null
    this.#lines = this.#read(place.columns())
  }

  get count(): number {
    return this.#lines.count
  }

  line(index: number): string {
    return this.#lines.line(index)
  }

  onGrow(listener: (gone: number) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  resize(columns: number): void {
    this.#reading.abort()
    this.#lines = this.#read(columns)
  }

  /** Adds what has just happened in the session. */
  add(event: Recorded): void {
    if (this.#meanwhile !== null) this.#meanwhile.push(event)
    else if (this.#isOf(event)) this.#lines.add(event)
  }

  close(): void {
    this.#reading.abort()
  }

  #read(columns: number): LineBuffer<Recorded> {
    const { pane, theme, journal, onFailure } = this.#place
    this.#reading = new AbortController()
    const { signal } = this.#reading
    this.#hasBegun = this.#instance !== null || this.#round === null
    const lines = new LineBuffer<Recorded>({
      render: event => {
        const state = pane.state ?? emptyState(this.#session)
        return eventLines(asOwn(event), { ...state, checking: null }, { columns, theme, full: true })
      },
    })
    lines.onGrow(gone => {
      for (const listener of this.#listeners) listener(gone)
    })
    const meanwhile: Recorded[] = []
    this.#meanwhile = meanwhile
    const seen = new Set<string>()
    const reading = eachEvent(
      journal(this.#session),
      event => {
        signal.throwIfAborted()
        if (!this.#isOf(event)) return
        seen.add(keyOf(event))
        lines.add(event)
      },
      { wholeLines: true, ...(this.#instance === null ? {} : { only: this.#instance }) },
    )
    reading
      .then(() => {
        if (signal.aborted) return
        this.#meanwhile = null
        for (const event of meanwhile) if (this.#isOf(event) && !seen.has(keyOf(event))) lines.add(event)
      })
      .catch((error: unknown) => {
        if (!signal.aborted) onFailure(error)
      })
    return lines
  }

  /** Whether an event is shown: of the agent, or of the round's own from the start of its round on. */
  #isOf(event: Recorded): boolean {
    if (this.#instance === null) {
      this.#hasBegun ||= event.type === 'round-started' && event.round === this.#round
      return this.#hasBegun && !(event.type === 'item-completed' && event.instance !== undefined)
    }
    switch (event.type) {
      case 'item-completed':
      case 'agent-started':
      case 'agent-ended':
        return event.instance === this.#instance
      case 'steered':
      case 'stop-asked':
      case 'question-asked':
        return event.agent === this.#instance
      default:
        return false
    }
  }
}

/** An item of an agent as one of the round's own is drawn: whose it is stands above all of them. */
function asOwn(event: Recorded): Recorded {
  if (event.type !== 'item-completed' || event.instance === undefined) return event
  const { instance: _, ...own } = event
  return own
}

/** What tells the events of an agent apart. */
function keyOf(event: Recorded): string {
  return `${event.at} ${event.type} ${event.type === 'item-completed' ? event.item.id : ''}`
}
