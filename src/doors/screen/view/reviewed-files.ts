import { messageOf, UserError, withCode } from '../../../base/errors.ts'
import type { Comparison, OpenComparison } from '../../../project/diff/comparison.ts'
import type { Keymap } from '../../../project/settings/keys.ts'
import { formatNumber } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { Theme } from '../terminal/theme.ts'
import { DiffLines } from './diff-lines.ts'
import type { Stage, ViewNotice } from './full-view.ts'
import { ListView } from './list.ts'

/** A file that was changed. */
export type ReviewedFile = Comparison['files'][number]
type Tell = (notice: ViewNotice) => void

/** What is reviewed, and how it is drawn. */
export interface ReviewOptions {
  /** What is compared; let go when the view is closed. */
  source: Pick<
    OpenComparison,
    'read' | 'lines' | 'protectedPaths' | 'beforePutBack' | 'keptLast' | 'putBack' | typeof Symbol.asyncDispose
  >
  /** What was read of it just now; left out: nothing. */
  read?: Comparison
  theme: Theme
  keymap: Keymap
  /** Opens a file of the work directory in the person's editor, on the stage's terminal; resolves with why it could not, else null. */
  edit(file: string, stage: Stage): Promise<string | null>
}

/** How many lines of diffs are kept beside the one that is shown. */
const MOST_KEPT_LINES = 100_000

/** What is compared, as far as it has been read, and what is done to its files. */
export class Review {
  readonly options: ReviewOptions
  protectedPaths: ReadonlySet<string> = new Set()
  #comparison: Comparison | null = null
  #problem: string | null = null
  readonly #diffs = new Map<string, DiffLines | null>()
  readonly #undos: { file: ReviewedFile; kept: string }[] = []
  /** What is being put back: an undo waits for it. */
  #putting: Promise<void> = Promise.resolve()
  #hasPutBack = false
  #changed: () => void = () => {}
  #over = new AbortController()

  constructor(options: ReviewOptions) {
    this.options = options
    this.#comparison = options.read ?? null
  }

  get files(): readonly ReviewedFile[] {
    return this.#comparison?.files ?? NO_FILES
  }

  /** The state that is compared with. */
  get from(): string {
    return oneLine(this.#comparison?.from ?? '', 80)
  }

  get title(): string {
    if (this.#comparison === null) return 'Changes'
    const { to, added, removed, count, files } = this.#comparison
    const between = `${this.from} ${this.options.theme.symbols ? '→' : 'to'} ${oneLine(to, 80)}`
    const cut = count > files.length ? ` · of ${formatNumber(count)} files the first` : ''
    return `Changes +${formatNumber(added)} −${formatNumber(removed)} · ${between}${cut}`
  }

  /** What is said where no file is listed. */
  get emptyWords(): string {
    if (this.#problem !== null) return this.#problem
    if (this.#comparison === null) return 'Loading changes …'
    return `Nothing differs between ${this.from} and ${oneLine(this.#comparison.to, 80)}.`
  }

  hints(): string[] {
    const { keymap } = this.options
    return [
      `${keymap.label('put_back')} put back`,
      ...(this.#undos.length > 0 ? [`${keymap.label('undo_put_back')} undo`] : []),
      `${keymap.label('edit_file')} edit`,
    ]
  }

  /** Reads what changed, and calls the listener whenever there is more of it; returns what ends that. */
  follow(changed: () => void): () => void {
    this.#changed = changed
    void (this.#comparison === null ? this.#read() : this.#lookAtProtected())
    return () => {
      this.#over.abort()
      // Only a copy of the index goes with it.
      this.options.source[Symbol.asyncDispose]().catch(() => {})
    }
  }

  /** The diff of a file; null until it has been read. */
  diffOf(file: ReviewedFile): DiffLines | null {
    const known = this.#diffs.get(file.path)
    if (known !== undefined) return known
    this.#diffs.set(file.path, null)
    const { source, theme } = this.options
    const signal = this.#over.signal
    const read = source
      .lines(file, signal)
      .catch(error => [{ kind: 'note' as const, before: null, after: null, text: sentenceOf(error) }])
    void read.then(lines => {
      if (signal.aborted) return
      this.#makeRoom(lines.length)
      const shown = [...remarksOf(file), ...lines]
      const words =
        shown.length > 0 ? shown : [{ kind: 'note' as const, before: null, after: null, text: 'It is empty.' }]
      this.#diffs.set(file.path, new DiffLines(words, file.path, theme))
      this.#changed()
    })
    return null
  }

  /** Asks whether a file is to be put back, unless that is refused now; does it then. */
  askToPutBack(file: ReviewedFile | null, stage: Stage, tell: Tell): null {
    if (file === null) return null
    const { source, theme, keymap } = this.options
    const name = nameOf(file, theme)
    let found: LookedBefore | null = null
    const looking = source.beforePutBack(file, this.#over.signal).then(
      (since): LookedBefore => ({ since, problem: null }),
      (error): LookedBefore => ({ since: null, problem: sentenceOf(error) }),
    )
    const answer = (isYes: boolean, over: Stage) => {
      const known = found
      over.close()
      if (!isYes || (known !== null && known.problem !== null)) return null
      const act = async () => {
        const { since, problem } = known ?? (await looking)
        if (problem !== null) tell({ text: problem, role: 'bad' })
        else if (since !== null && known === null)
          tell({
            text: `Changed since ${since}; ${keymap.label('put_back')} asks again: ${name}`,
            role: 'warning',
          })
        else await this.#putBack(file, undefined, tell)
      }
      over.start(act())
      return null
    }
    const question = new ListView<(typeof ANSWERS)[number] | typeof REFUSED>({
      title: () => found?.problem ?? `Restore ${name} as it was at ${this.from}?`,
      isQuestion: true,
      theme,
      keymap,
      rows: () =>
        found === null ? ANSWERS : found.problem !== null ? [REFUSED] : found.since === null ? ANSWERS : CAREFUL,
      columns: [
        {
          get head() {
            return headOf(found, keymap)
          },
          cell: ({ words }) => words,
        },
      ],
      textOf: ({ words }) => words,
      idOf: ({ id }) => id,
      empty: '',
      open: ({ id }, over) => void answer(id === 'yes', over),
      actions: { yes: (_, over) => answer(true, over), no: (_, over) => answer(false, over) },
      search: 'asked',
      hints: () =>
        found !== null && found.problem !== null
          ? [`${keymap.label('close')} back`]
          : [
              `${keymap.label('open')} answers`,
              `${keymap.label('yes')}/${keymap.label('no')}`,
              `${keymap.label('close')} leaves it`,
            ],
    })
    void looking.then(looked => {
      found = looked
      stage.changed()
    })
    stage.open(question)
    return null
  }

  /** Undoes what was put back last, once that is done. */
  undo(stage: Stage, tell: Tell): null {
    stage.start(this.#undo(tell))
    return null
  }

  async #undo(tell: Tell): Promise<void> {
    await this.#putting
    const last = this.#undos.pop()
    if (last !== undefined) return await this.#putBack(last.file, last.kept, tell)
    if (this.#hasPutBack) return tell({ text: 'Nothing else was restored here.', role: 'accent' })
    const kept = await this.options.source.keptLast().catch(() => null)
    const words =
      kept === null ? 'Nothing was restored here.' : `Nothing restored here; codemachine rewind ${kept} undoes the last`
    tell({ text: words, role: 'accent' })
  }

  edit(file: ReviewedFile | null, stage: Stage, tell: Tell): string | null {
    if (file === null) return null
    if (file.how === 'deleted') return `The file is gone; ${this.options.keymap.label('put_back')} restores it.`
    const edited = async () => {
      const problem = await this.options.edit(file.path, stage)
      if (problem !== null) tell({ text: problem, role: 'warning' })
      await this.#read()
    }
    stage.start(edited())
    return null
  }

  /** @param kept the savepoint with what it was before it was put back; left out: it is put back now */
  #putBack(file: ReviewedFile, kept: string | undefined, tell: Tell): Promise<void> {
    this.#putting = this.#carryOut(file, kept, tell)
    return this.#putting
  }

  async #carryOut(file: ReviewedFile, kept: string | undefined, tell: Tell): Promise<void> {
    const { source, theme, keymap } = this.options
    const name = nameOf(file, theme)
    tell({ text: kept === undefined ? `Putting ${name} back …` : `Undoing the restore: ${name} …`, role: 'dim' })
    this.#changed()
    const done = await source.putBack(file, kept).then(
      undo => ({ undo }),
      error => ({ problem: sentenceOf(error) }),
    )
    if ('problem' in done) {
      // It can be undone still.
      if (kept !== undefined) this.#undos.push({ file, kept })
      tell({ text: done.problem, role: 'bad' })
      return
    }
    if (done.undo === null) tell({ text: `${name} is already as it was at ${kept ?? this.from}.`, role: 'warning' })
    else if (kept !== undefined) tell({ text: `${name} is as it was before.`, role: 'good' })
    else {
      this.#hasPutBack = true
      this.#undos.push({ file, kept: done.undo })
      const undo = `${keymap.label('undo_put_back')} undoes it`
      tell({ text: `Restored as at ${this.from}; ${undo}. Saved as ${done.undo}: ${name}`, role: 'good' })
    }
    await this.#read()
  }

  async #read(): Promise<void> {
    const { source } = this.options
    const { signal } = this.#over
    if (signal.aborted) return
    try {
      this.#comparison = await source.read(signal)
      this.#problem = null
      this.#diffs.clear()
    } catch (error) {
      this.#problem = sentenceOf(error)
    }
    if (signal.aborted) return
    this.#changed()
    await this.#lookAtProtected()
  }

  async #lookAtProtected(): Promise<void> {
    // Only a mark is missing where they cannot be told.
    this.protectedPaths = await this.options.source.protectedPaths(this.files).catch(() => new Set<string>())
    if (!this.#over.signal.aborted) this.#changed()
  }

  /** Lets the diffs go that were read first. */
  #makeRoom(lines: number): void {
    let kept = [...this.#diffs.values()].reduce((sum, diff) => sum + (diff?.count ?? 0), lines)
    for (const [path, diff] of this.#diffs) {
      if (kept <= MOST_KEPT_LINES) return
      if (diff === null) continue
      kept -= diff.count
      this.#diffs.delete(path)
    }
  }
}

const NO_FILES: readonly ReviewedFile[] = []
const ANSWERS = [
  { id: 'yes', words: 'Yes, restore it' },
  { id: 'no', words: 'No, leave it' },
] as const
/** Where work of a later session would go, too, Enter leaves it. */
const CAREFUL = ANSWERS.toReversed()
const REFUSED = { id: 'no', words: 'Go back' } as const

/** What was found before a file is put back: since which state it has changed again, or why it cannot be put back now. */
interface LookedBefore {
  since: string | null
  problem: string | null
}

function headOf(found: LookedBefore | null, keymap: Keymap): string {
  if (found === null) return 'Checking …'
  if (found.problem !== null) return ''
  if (found.since === null) return 'The current version is kept, so you can undo this.'
  return `Changed since ${oneLine(found.since, 80)}: this is undone, too. ${keymap.label('undo_put_back')} restores it.`
}

/** The name of a file on one line, of a renamed one both. */
export function nameOf({ path, from }: ReviewedFile, theme: Theme): string {
  const name = oneLine(path, MOST_NAME)
  return from === null ? name : `${oneLine(from, MOST_NAME)} ${theme.symbols ? '→' : 'to'} ${name}`
}

const MOST_NAME = 300

/** What is to be said of a file beside its lines. */
function remarksOf({ how, from, path, modeBefore, modeAfter }: ReviewedFile) {
  const words = [
    ...(from === null ? [] : [`Renamed: ${oneLine(from, MOST_NAME)} to ${oneLine(path, MOST_NAME)}`]),
    ...(how === 'added' || how === 'deleted' || modeBefore === modeAfter
      ? []
      : [`Mode: ${modeWords(modeBefore)} to ${modeWords(modeAfter)}`]),
    ...([modeBefore, modeAfter].includes(LINK) && modeBefore !== modeAfter
      ? ['The line of a link shows its target.']
      : []),
  ]
  return words.map(text => ({ kind: 'note' as const, before: null, after: null, text }))
}

const LINK = '120000'

function modeWords(mode: string): string {
  if (mode === LINK) return 'a link'
  if (mode === '100755') return 'executable'
  return mode === '100644' ? 'a plain file' : mode
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof UserError)) return oneLine(messageOf(error), 600)
  return oneLine(`${withCode(error)} ${error.hint ?? ''}`.trimEnd(), 600)
}
