import { createContext, runInContext } from 'node:vm'
import { clipEnd } from '../base/text.ts'
import type { SessionOutcome } from '../core/events/outcome.ts'
import {
  type AskedAnswer,
  MOST_ANSWER_REFUSALS,
  parseAnswer,
  refusedAnswer,
  refusedAnswerNote,
} from '../core/rules/answer.ts'
import { contractInInput } from '../core/rules/contract.ts'
import { nextOutput, type Output, type OutputKind, withMaterials } from '../core/rules/outputs.ts'
import type { FolderFiles, Parsed } from '../core/shapes/memory.ts'
import { fileOfWords, needsFile, personsWordsOf, wordsInInput } from '../core/state/persons-words.ts'
import type { SessionState } from '../core/state/state.ts'
import { type InputPart, inTemplate, type RoundSpec, type Template } from '../core/template.ts'
import type { Redactor } from '../secrets/redactor.ts'
import { contractPath } from './proof/contract/contract-path.ts'
import type { Outputs } from './records/outputs.ts'
import type { SessionLog } from './session-log.ts'

interface AnswersOptions {
  log: SessionLog
  outputs: Outputs
  redactor: Redactor
  template: Pick<Template, 'answerProblem'>
  folder: Pick<FolderFiles, 'writeGoal'> | null
}

/** Input of a turn. `asked`: the template's part of it. */
export interface TurnInput {
  input: string
  asked: string
}

/** Further rules for an answer that fits its schema. */
interface Judging<T> {
  /** Returns the parsed value, or the reason for a refusal. */
  read(value: unknown): Parsed<T> & { kind?: string }
  /** True if the template judged it by its own rules; undefined: it has not. */
  isJudged?: boolean
  /** Returns true if the answer no longer counts, so that nothing is journaled; undefined: it counts. */
  isStale?(): boolean
}

/** Longest input of one turn, in characters. Codex fails a turn above 1,048,576; a cut input says so. */
const MOST_INPUT_CHARACTERS = 1_048_500
/** Longest value that is journaled, as characters of JSON; a longer one is only in its output. */
const MOST_VALUE_CHARACTERS = 64 * 1024

/** Gives rounds the earlier words of the session, and keeps and parses their last messages as answers. */
export class Answers {
  readonly #options: AnswersOptions
  /** Texts of the outputs for the next round, by file. */
  #atHand = new Map<string, string>()
  /** The file with all words of the person, written for the next round; `path` null: the write failed. */
  #wordsFile: { text: string; path: string | null } | null = null

  constructor(options: AnswersOptions) {
    this.#options = options
  }

  /** Returns true if all materials of a round are read. */
  isReadyFor(round: RoundSpec): boolean {
    if (
      !allOf(round)
        .flatMap(outputsFor)
        .every(({ file }) => this.#atHand.has(file))
    )
      return false
    return !this.#needsFile(round) || this.#wordsFile?.text === this.#fileText
  }

  /** Reads or writes the materials of a round. */
  async makeReady(round: RoundSpec): Promise<void> {
    for (const each of allOf(round)) await this.#fetch(each)
    if (!this.#needsFile(round)) return
    const text = this.#fileText
    this.#wordsFile = { text, path: (await this.#options.folder?.writeGoal(text)) ?? null }
  }

  /** Forgets the file of the words, so that the next round writes it again: others may have changed it. */
  forgetFile(): void {
    this.#wordsFile = null
  }

  #needsFile(round: RoundSpec): boolean {
    return needsFile(personsWordsOf(this.#options.log.state), round)
  }

  get #fileText(): string {
    return fileOfWords(personsWordsOf(this.#options.log.state))
  }

  async #fetch(round: Pick<RoundSpec, 'input' | 'materials'>): Promise<void> {
    for (const output of outputsFor(round)) {
      if (!this.#atHand.has(output.file)) this.#atHand.set(output.file, await this.#options.outputs.read(output))
    }
  }

  /**
   * Returns the inputs of a round and of the work beside it, each cut to a turn's limit: the person's words, the template's
   * request (`asked`) with the reason of an earlier refusal, and the materials.
   */
  inputsOf(round: RoundSpec): { own: TurnInput; beside: readonly TurnInput[] } {
    const own = this.#inputOf(round)
    const beside = (round.beside ?? []).map(each => this.#inputOf(each))
    this.#atHand = new Map()
    this.#wordsFile = null
    return { own, beside }
  }

  #inputOf(round: RoundSpec): TurnInput {
    const { answer, materials = [], materialsMost } = round
    const { state } = this.#options.log
    const refusal = answer && refusedAnswer(state, answer.name)
    const note = answer && refusal ? `\n\n${refusedAnswerNote(refusal.problem, answer)}` : ''
    const told = wordsInInput(personsWordsOf(state), this.#wordsFile?.path ?? null, round)
    const contract = contractInInput(state.scope === null ? state.contract : null, contractPath(state.id))
    const words = [told, contract].map(text => (text === '' ? '' : `${text}\n\n`)).join('')
    const asked = `${this.#textOf(round.input, MOST_INPUT_CHARACTERS - words.length - note.length)}${note}`
    const given = materials.map(({ name, output }) => ({ name, text: this.#atHand.get(output.file) ?? '' }))
    const input = withMaterials(`${words}${asked}`, given, { most: MOST_INPUT_CHARACTERS, together: materialsMost })
    return { input, asked }
  }

  /** Returns the input of a round that a template gives in parts as one text, cut to `most` characters. */
  async textOf(input: RoundSpec['input'], most: number): Promise<string> {
    await this.#fetch({ input })
    return this.#textOf(input, most)
  }

  #textOf(input: RoundSpec['input'], most: number): string {
    if (typeof input === 'string') return clipEnd(input, most)
    // A text may occur a thousand times: find it once, and never build the whole.
    const members = new Map<string, string>()
    const textOf = ({ output, member }: Exclude<InputPart, string>) => {
      const text = this.#atHand.get(output.file) ?? ''
      if (member === undefined) return text
      const key = JSON.stringify([output.file, member])
      const value = members.get(key) ?? memberOf(text, member)
      members.set(key, value)
      return value
    }
    let [text, left] = ['', 0]
    for (const part of input) {
      const next = typeof part === 'string' ? part : textOf(part)
      const fits = next.slice(0, most - text.length)
      text += fits
      left += next.length - fits.length
    }
    return left === 0 ? text : `${text.toWellFormed()}\n[… ${left} more characters]`
  }

  /**
   * Keeps and judges the last message of a round that has worked, if the round asks for that.
   * @param isStale whether nothing of it counts any more, so that nothing is journaled
   */
  async take(spec: RoundSpec, round: number, message: string | null, isStale: () => boolean): Promise<void> {
    const { log, redactor } = this.#options
    const { answer, keep } = spec
    if (answer !== undefined) await this.takeAnswer(answer, round, message, { ...this.#judging(spec), isStale })
    if (keep === undefined || message === null || isStale()) return
    const output = await this.keep(keep, 'md', redactor.text(message))
    if (!isStale()) log.emit({ type: 'output-kept', round, output })
  }

  /** Returns the judging rules of the template, or none. */
  #judging(spec: RoundSpec): Judging<unknown> {
    const { log, template } = this.#options
    const problemOf = (value: unknown) => template.answerProblem?.(spec, value, log.state) ?? null
    return {
      read: value => {
        const problem = inTemplate(log.state.template, 'answerProblem', () => problemOf(value))
        if (problem === null) return { ok: true, value }
        return typeof problem === 'string' ? { ok: false, problem } : { ok: false, ...problem }
      },
      isJudged: template.answerProblem !== undefined,
    }
  }

  /** Parses a message as an answer and journals it. Returns null if it was refused. */
  async takeAnswer<T>(
    asked: AskedAnswer,
    round: number,
    message: string | null,
    { read, isJudged = false, isStale = () => false }: Judging<T>,
  ): Promise<T | null> {
    const { log, redactor } = this.#options
    const { name } = asked
    const parsed = await readAnswer(asked, message, redactor)
    const made = parsed.ok ? read(parsed.value) : parsed
    if (isStale()) return null
    if (!made.ok) {
      const kind = 'kind' in made && typeof made.kind === 'string' ? { kind: made.kind } : {}
      log.emit({ type: 'answer-refused', round, name, problem: made.problem, ...kind })
      return null
    }
    const value = parsed.ok ? parsed.value : null
    const output = await this.keep(name, 'json', `${JSON.stringify(value, null, 2)}\n`)
    const fits = JSON.stringify(value).length <= MOST_VALUE_CHARACTERS
    if (isStale()) return null
    log.emit({
      type: 'answer-given',
      round,
      name,
      output,
      ...(fits ? { value } : {}),
      ...(isJudged && { judged: true }),
    })
    return made.value
  }

  /** Stores a text as the next output of the session. */
  async keep(name: string, kind: OutputKind, text: string): Promise<Output> {
    const { log, outputs } = this.#options
    return await outputs.keep({ n: nextOutput(log.state.outputs), name, kind, text })
  }
}

/** A round, and the work beside it. */
function allOf(round: RoundSpec): readonly RoundSpec[] {
  return [round, ...(round.beside ?? [])]
}

/** Returns the outputs that have to be read before a round. */
function outputsFor({ input, materials = [] }: Pick<RoundSpec, 'input' | 'materials'>): readonly Output[] {
  const parts = typeof input === 'string' ? [] : input.filter(part => typeof part !== 'string')
  return [...parts, ...materials].map(({ output }) => output)
}

/** Returns the value at a path in a JSON text: a string as it is, another value as JSON, a missing one as ''. */
export function memberOf(text: string, path: readonly string[]): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return ''
  }
  for (const name of path) {
    // Skip non-enumerable properties, such as the length of a list.
    if (typeof value !== 'object' || value === null || !Object.prototype.propertyIsEnumerable.call(value, name))
      return ''
    value = (value as Record<string, unknown>)[name]
  }
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Parses an answer, removes its secrets, and checks it against its schema. */
export async function readAnswer(
  { schema, accepts = schema }: Pick<AskedAnswer, 'schema' | 'accepts'>,
  message: string | null,
  redactor: Redactor,
): Promise<Parsed<unknown>> {
  const parsed = parseAnswer(message === null ? null : redactor.line(message), schema)
  if (!parsed.ok) return parsed
  // An escape sequence may have hidden a secret.
  const value: unknown = JSON.parse(redactor.line(JSON.stringify(parsed.value)))
  const { schemaProblem } = await import('../core/rules/answer-schema.ts')
  const problem = withinTime(() => schemaProblem(value, accepts))
  return problem === null ? { ok: true, value } : { ok: false, problem }
}

/** Longest time for the check of an answer, ms. */
const CHECK_MS = 2_000

/** Runs the check in a context with a timeout: a foreign pattern may take years, and nothing else ends it. */
function withinTime(check: () => string | null): string | null {
  try {
    return runInContext('check()', createContext({ check }), { timeout: CHECK_MS })
  } catch (error) {
    // The error comes from the other context, so `instanceof` does not work.
    if ((error as { code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    return `It could not be checked within ${CHECK_MS / 1000} seconds: a pattern of its JSON Schema takes too long for what was answered.`
  }
}

/** Returns the outcome if the answer was refused too often in a row; null if it may be asked for again. */
export function endOfRefusals(state: SessionState, answer: AskedAnswer | undefined): SessionOutcome | null {
  const refusal = answer && refusedAnswer(state, answer.name)
  if (!refusal || refusal.refusals < (answer.mostRefusals ?? MOST_ANSWER_REFUSALS)) return null
  const [first = ''] = refusal.problem.split('\n')
  return {
    kind: 'needs-person',
    reason: `The answer "${answer.name}" could not be used, ${refusal.refusals} times in a row. ${first.replace(/^- /, '')}`,
    hint: { do: 'choose-model' },
    goalOnly: true,
  }
}
