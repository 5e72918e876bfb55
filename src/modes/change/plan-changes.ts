import { inlineCode } from '../../base/markdown.ts'
import { truncate } from '../../base/text.ts'
import type { Plan } from './plan.ts'

/**
 * Returns what a version of a plan does otherwise than the one before, a sentence each, as Markdown: `Added step 3: Log it.`,
 * `Step 2: Answer 429.`, `Removed risk: …`. Empty: nothing. Pure.
 */
export function planChanges(before: Plan, after: Plan): string[] {
  const [were, are] = [linesOf(before.description), linesOf(after.description)]
  const files = (plan: Plan) => plan.files.map(({ path, change }): Part => [`file ${inlineCode(path)}`, change])
  const commands = (plan: Plan) => plan.verification.map(({ run, why }): Part => [`check ${inlineCode(run)}`, why])
  return [
    ...partChanges(were.steps, are.steps, true),
    ...listChanges(were.others, are.others, 'line'),
    ...partChanges(files(before), files(after)),
    ...partChanges(commands(before), commands(after)),
    ...listChanges(before.risks, after.risks, 'risk'),
    ...listChanges(before.questions, after.questions, 'question'),
  ]
}

/** A part of a plan by its name in a sentence, and its text. */
type Part = [name: string, text: string]

/** The numbered steps of a description, and its other lines. */
function linesOf(description: string): { steps: Part[]; others: string[] } {
  const lines = description.split('\n').filter(line => line.trim() !== '')
  const steps = lines.flatMap((line): Part[] => {
    const [, number, text = ''] = /^(\d{1,4})[.)]\s+(.+)$/.exec(line) ?? []
    return number === undefined ? [] : [[`step ${number}`, text]]
  })
  return { steps, others: lines.filter(line => !/^\d{1,4}[.)]\s/.test(line)) }
}

/** @param areNumbered a part that only has another number now is no change */
function partChanges(before: readonly Part[], after: readonly Part[], areNumbered = false): string[] {
  const [were, are] = [new Map(before), new Map(after)]
  const textsOf = (parts: readonly Part[]) => new Set(areNumbered ? parts.map(([, text]) => text) : [])
  const [textsBefore, textsAfter] = [textsOf(before), textsOf(after)]
  return [
    ...after.flatMap(([name, text]) => {
      const old = were.get(name)
      if (old === text || textsBefore.has(text)) return []
      return [
        old === undefined || textsAfter.has(old) ? `Added ${sentence(name, text)}` : capital(sentence(name, text)),
      ]
    }),
    ...before.flatMap(([name, text]) => {
      const now = are.get(name)
      const isThere = textsAfter.has(text) || (now !== undefined && !textsBefore.has(now))
      return isThere ? [] : [`Removed ${sentence(name, text)}`]
    }),
  ]
}

function listChanges(before: readonly string[], after: readonly string[], name: string): string[] {
  const [were, are] = [new Set(before), new Set(after)]
  return [
    ...[...are].filter(text => !were.has(text)).map(text => `Added ${sentence(name, text)}`),
    ...[...were].filter(text => !are.has(text)).map(text => `Removed ${sentence(name, text)}`),
  ]
}

/** The most of a text in a sentence, characters: the plan below has it in full. */
const MOST_TEXT = 300

function sentence(name: string, text: string): string {
  return `${name}: ${truncate(text.replace(/\s+/g, ' '), MOST_TEXT)}`
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
